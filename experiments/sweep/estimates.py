"""How long runs will take, from those that are finished."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence
import statistics

from experiments import data
from experiments import training
from experiments.sweep import index

_START_SECONDS = 2.


class Estimates:
  """Seconds a run, learnt from finished runs.

  Args:
    entries: of finished runs.
  """

  def __init__(self, entries: Iterable[index.Entry] = ()):
    self._seconds = {}  # kind -> [(seconds per epoch, seconds beside them)]
    self._medians = {}  # kind -> the same; of the kinds that were asked for
    for entry in entries:
      self._learn(entry)

  def add(self, result: training.Result) -> None:
    """Learns from a finished run."""
    self._learn(index.entry_of(result))

  def _learn(self, entry: index.Entry) -> None:
    if entry.epoch_seconds is not None:
      for kind in _kinds(*entry.kind):
        self._seconds.setdefault(kind, []).append(
            (entry.epoch_seconds, entry.beside_seconds))
        self._medians.pop(kind, None)

  def seconds(self, run: training.Run) -> float:
    """Of the same data set, network and method, or of the next best."""
    for kind in _kinds(run.dataset, run.model, run.method):
      if kind in self._seconds:
        if kind not in self._medians:
          self._medians[kind] = tuple(
              map(statistics.median, zip(*self._seconds[kind])))
        epoch, beside = self._medians[kind]
        return run.epochs * epoch + beside
    return _START_SECONDS + run.epochs * data.traits(run.dataset).epoch_seconds

  def all_seconds(self, runs: Sequence[training.Run], slots: int) -> float:
    """Of several runs, so many at a time."""
    return sum(map(self.seconds, runs)) / min(slots, max(1, len(runs)))

  def knows(self, run: training.Run) -> bool:
    """Whether an estimate comes from finished runs."""
    return _kinds(run.dataset, run.model, run.method)[-1] in self._seconds


def _kinds(dataset: str, model: str, method: str) -> list[tuple[str, ...]]:
  """What runs of similar duration have in common, the closest first."""
  return [(dataset, model, method), (dataset, model)]


def duration(seconds: float) -> str:
  """Seconds for a person: '4 min'."""
  if seconds < 60:
    return f'{seconds:.0f} s'
  if seconds < 3600:
    return f'{seconds / 60:.0f} min'
  if seconds < 48 * 3600:
    return f'{seconds / 3600:.1f} h'
  return f'{seconds / 86400:.0f} days'

"""How long runs will take, from those that are finished."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence
import statistics

from experiments import data
from experiments import training

_START_SECONDS = 2.


class Estimates:
  """Seconds a run, learnt from finished runs.

  Args:
    results: of finished runs.
  """

  def __init__(self, results: Iterable[training.Result] = ()):
    self._seconds = {}  # kind -> [(seconds per epoch, seconds beside them)]
    for result in results:
      self.add(result)

  def add(self, result: training.Result) -> None:
    """Learns from a finished run."""
    epochs, spent = result.seconds['epochs'], sum(result.seconds['epochs'])
    if epochs:
      for kind in _kinds(training.Run.from_dict(result.run)):
        self._seconds.setdefault(kind, []).append(
            (spent / len(epochs), result.seconds['wall'] - spent))

  def seconds(self, run: training.Run) -> float:
    """Of the same data set, network and method, or of the next best."""
    for kind in _kinds(run):
      if kind in self._seconds:
        epoch, beside = map(statistics.median, zip(*self._seconds[kind]))
        return run.epochs * epoch + beside
    return _START_SECONDS + run.epochs * data.traits(run.dataset).epoch_seconds

  def all_seconds(self, runs: Sequence[training.Run], slots: int) -> float:
    """Of several runs, so many at a time."""
    return sum(map(self.seconds, runs)) / min(slots, max(1, len(runs)))

  def knows(self, run: training.Run) -> bool:
    """Whether an estimate comes from finished runs."""
    return _kinds(run)[-1] in self._seconds


def _kinds(run: training.Run) -> list[tuple[str, ...]]:
  """What runs of similar duration have in common, the closest first."""
  return [(run.dataset, run.model, run.method), (run.dataset, run.model)]


def duration(seconds: float) -> str:
  """Seconds for a person: '4 min'."""
  if seconds < 60:
    return f'{seconds:.0f} s'
  if seconds < 3600:
    return f'{seconds / 60:.0f} min'
  if seconds < 48 * 3600:
    return f'{seconds / 3600:.1f} h'
  return f'{seconds / 86400:.0f} days'

"""The runs of tables and searches: generators of frozen dataclasses."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import statistics
from typing import Any

from experiments import data
from experiments import methods as methods_lib
from experiments import training
from experiments.paper import published

Place = tuple[str, str]  # (row, column) of a table
Cells = dict[Place, list['training.Run']]

_LAST_EPOCHS = 10
CALIBRATION_METHODS = ('Het-tau-Sigma', 'CE', 'GCE', 'NAN', 'LN')


def points(run: training.Run, method: str) -> Iterator[methods_lib.Method]:
  """The points of the search for a method (Appendix C)."""
  yield from type(methods_lib.get(method)).grid(data.traits(run.dataset))


def seeded(
    chosen: Mapping[Place, training.Run], seeds: Sequence[int]) -> Cells:
  """The runs of each cell: the chosen one with all seeds."""
  return {
      place: [dataclasses.replace(run, seed=seed) for seed in seeds]
      for place, run in chosen.items()}


def flat(cells: Mapping[Any, Iterable[training.Run]]) -> list[training.Run]:
  """All runs of a table or figure."""
  return [run for runs in cells.values() for run in runs]


def winners(
    points: Mapping[Place, Iterable[training.Run]],
    results: Mapping[str, training.Result]) -> dict[Place, training.Run]:
  """The point of each place with the best noisy validation accuracy at the end.

  On a small validation set many are equal; of those the one with the best mean
  over the last ten epochs, and then the first. A place of which no point has
  finished has none.
  """
  def merit(run):
    result = results[run.key]
    last = result.history['validation_accuracy_noisy'][-_LAST_EPOCHS:]
    return (result.metrics['validation_accuracy_noisy'],
            statistics.fmean(last))

  best = {}
  for place, runs in points.items():
    finished = [run for run in runs if run.key in results
                and results[run.key].status == 'finished']
    if finished:
      best[place] = max(finished, key=merit)
  return best


def serves_calibration(run: training.Run) -> bool:
  """Whether the calibration table needs the weights of a run."""
  return (run.dataset in ('digits', 'cifar10') and run.noise == 'none'
          and run.method in CALIBRATION_METHODS)


def paper_accuracy(
    table: str, dataset: str) -> dict[Place, published.Number]:
  """The paper's numbers of a data set by (method, noise)."""
  return {
      (method, noise): number
      for (name, method, noise), number in published.accuracy(table).items()
      if name == dataset}

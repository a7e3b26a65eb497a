"""Hyperparameters: the points of the searches, their winners, tuned values.

Tuned values are the paper's, `numbers/hyperparameters_*.csv`, and our own where
the paper has none: those of a directory, `OUTPUT_DIR/tuned/*.csv`, as
`python -m experiments.hyperparameters` writes the winners of its search, and
then `tuned/*.csv` here.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import csv
import dataclasses
import functools
import io
import pathlib
import statistics
from typing import Any

from experiments import data
from experiments import methods
from experiments import training
from experiments.cli import pairs
from experiments.paper import grids
from experiments.paper import published
from experiments.sweep import csv_files
from experiments.training import results as results_lib

DIRECTORY = pathlib.Path(__file__).resolve().parent / 'tuned'
_MNIST_LAMBDA = .316
_LAST_EPOCHS = 10

# (data set, method or row of the ablation, noise) -> values by name.
Values = dict[tuple[str, str, str], dict[str, Any]]


class NotTunedError(ValueError):
  """There are no tuned hyperparameters for what was asked."""


def method(
    name: str, dataset: str, noise: str, *, printed_lambda: bool = False,
    directory: pathlib.Path | None = None) -> methods.Method:
  """A method with the hyperparameters tuned for a data set and noise.

  Args:
    name: of the method.
    dataset: of the data set.
    noise: as in `training.Run`.
    printed_lambda: take LN's lambda on MNIST as the paper's table prints it.
      By default its 0.1 is read as lambda^2, see docs/protocol.md.
    directory: with winners of a search of one's own, read before ours.
  """
  first, *others = type(methods.get(name)).grid(data.traits(dataset))
  if not others:
    return first  # nothing to tune
  values = hyperparameters(
      name, dataset, noise, printed_lambda=printed_lambda,
      directory=directory)
  return dataclasses.replace(first, **values)


def hyperparameters(
    name: str, dataset: str, noise: str, *, printed_lambda: bool = False,
    directory: pathlib.Path | None = None) -> dict[str, Any]:
  """The tuned hyperparameters alone; `name` may be a row of the ablation.

  Raises `NotTunedError` where there are none.
  """
  noise = str(data.parse_noise(noise))
  key = data.traits(dataset).tuned_as or dataset, name, noise
  if key in printed():
    values = dict(printed()[key])
    if values.get('min_scale') == .1 and not printed_lambda:
      values['min_scale'] = _MNIST_LAMBDA  # only MNIST's block has it
    return values
  for winners in (read(directory) if directory else {}, ours()):
    if key in winners:
      return winners[key]
  raise NotTunedError(
      f'{name} has no tuned hyperparameters for {dataset} with noise '
      f'{noise}; search for them with --search.')


def is_reinterpreted(run: training.Run) -> bool:
  """Whether a run has 0.316 for the lambda that the paper prints as 0.1."""
  key = (data.traits(run.dataset).tuned_as or run.dataset, run.method,
         run.noise)
  return printed().get(key, {}).get('min_scale') == .1 and (
      run.resolve_method().min_scale == _MNIST_LAMBDA)


@functools.cache
def printed() -> Values:
  """The winners of the paper's search, as it prints them."""
  return _values(
      row for table in ('synthetic_noise', 'natural_noise')
      for row in published.read(f'hyperparameters_{table}'))


@functools.cache
def ours() -> Values:
  """The winners of our search."""
  return read(DIRECTORY)


def read(directory: pathlib.Path) -> Values:
  """The winners of the searches of a directory."""
  winners = {}
  for file in results_lib.listed(directory, '.csv'):
    winners |= _values(csv_files.lines(
        file, ('dataset', 'method', 'noise', 'hyperparameters')))
  return winners


def _values(rows: Iterable[Mapping[str, str]]) -> Values:
  return {(row['dataset'], row['method'], row['noise']):
          pairs.parse(row['hyperparameters']) for row in rows}


def points(
    run: training.Run, method: str,
    grid: str = 'paper') -> Iterator[methods.Method]:
  """The points of the search for a method: those of Appendix C, or 'ratio'."""
  kind = type(methods.get(method))
  chosen = kind.grid if grid == 'paper' else kind.ratio_grid
  yield from chosen(data.traits(run.dataset))


def winners(
    points: Mapping[grids.Place, Iterable[training.Run]],
    results: Mapping[str, training.Result]) -> dict[grids.Place, training.Run]:
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


def to_csv(
    points: Mapping[grids.Place, Sequence[training.Run]],
    winners: Mapping[grids.Place, training.Run],
    results: Mapping[str, training.Result]) -> str:
  """The winners of a search in the form that is read here.

  Args:
    points: the runs of the search, by (method or row, noise).
    winners: those with the highest validation accuracy.
    results: by key of the run.
  """
  stream = io.StringIO()
  writer = csv.writer(stream, lineterminator='\n')
  writer.writerow([
      'dataset', 'method', 'noise', 'hyperparameters', 'validation_accuracy'])
  for (name, noise), run in winners.items():
    if len(points[name, noise]) > 1:
      accuracy = results[run.key].metrics['validation_accuracy_noisy']
      writer.writerow([
          run.dataset, name, noise,
          pairs.write(searched(run, points[name, noise])),
          f'{100 * accuracy:.2f}'])
  return stream.getvalue()


def searched(
    run: training.Run, points: Sequence[training.Run]) -> dict[str, Any]:
  """The hyperparameters of a run in which the points of its search differ."""
  values = [point.resolve_method().hyperparameters() for point in points]
  return {
      name: value
      for name, value in run.resolve_method().hyperparameters().items()
      if any(other[name] != value for other in values)}

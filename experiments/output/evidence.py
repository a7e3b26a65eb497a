"""What is known: the numbers behind tables and figures of a directory.

Every number is computed here from the stored results of its runs; the CSV file
of a table and the JSON file of a figure only say which runs those are.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import functools
import itertools
import math
import os
import pathlib

from experiments import training
from experiments.cli import pairs
from experiments.cli import recipes
from experiments.output import figures
from experiments.output import measurements
from experiments.output import tables
from experiments.paper import claims
from experiments.paper import published
from experiments.paper import tuned
from experiments.sweep import csv_files
from experiments.sweep import store
from experiments.training import results as results_lib


class Facts:
  """The facts in an output directory.

  Args:
    output_dir: where results, tables and figures are.

  Attributes:
    results: all results by key.
    problems: files that should be results or records and are not.
    tables: the tables by name, such as 'synthetic_noise-digits'.
    records: the records of the figures by name.
    pictures: the figures themselves, as PNG.
    searches: the points of the searches by name, a line each.
    basis: what is behind the numbers asked for since it was last cleared.
  """

  def __init__(self, output_dir: str | os.PathLike):
    directory = pathlib.Path(output_dir)
    self._tuned_dir = directory / 'tuned'
    self.results, problems = store.Store(directory).everything
    self.problems = list(problems)
    self.basis = claims.Basis()
    self.tables: dict[str, tables.Table] = {}
    self.records: dict[str, figures.Record] = {}
    self.pictures: dict[str, bytes] = {}
    self.searches: dict[str, list[dict[str, str]]] = {}
    for file in results_lib.listed(directory / 'tables', '.csv'):
      if file.stem.startswith('hyperparameters-'):
        self._try(self.searches, file, csv_files.lines)
      else:
        self._try(self.tables, file, self._read_table)
    for file in results_lib.listed(directory / 'figures', '.json'):
      self._try(self.records, file, figures.read_record)
    for file in results_lib.listed(directory / 'figures', '.png'):
      self._try(self.pictures, file, lambda file: results_lib.read_bounded(
          file, results_lib.MAX_BYTES))

  def _try(self, found, file, read):
    try:
      found[file.stem] = read(file)
    except (AttributeError, KeyError, OSError, TypeError,
            ValueError) as error:
      self.problems.append(
          f'{file}: {str(error).removeprefix(f"{file}: ")}')

  def _read_table(self, file: pathlib.Path) -> tables.Table:
    """Builds a table anew from the results of the runs its file names."""
    kind, _, dataset = file.stem.partition('-')
    lines = csv_files.lines(file)
    cells = {(line['row'], line['column']): cell(line, file, self.results.get)
             for line in lines}
    columns = dict.fromkeys(line['column'] for line in lines)
    calibration = kind == 'calibration'
    return tables.Table(
        title=f'{kind} on {dataset}',
        rows=list(dict.fromkeys(line['row'] for line in lines)),
        columns=[tables.Column(key, 'NLL') if calibration
                 else tables.noise_column(key, dataset) for key in columns],
        cells=cells, lower_is_better=calibration)

  def cells(self, table: str, dataset: str) -> claims.Cells:
    """The numbers of a table of which all runs have finished."""
    name = f'{table}-{dataset}'
    if name not in self.tables:
      raise claims.NotRun(f'{table} was not run')
    numbers, why_not = {}, {}
    for place, cell in self.tables[name].cells.items():
      if len(cell.values) == len(cell.keys) > 0:
        numbers[place] = claims.Number(
            cell.mean, cell.std, len(cell.values),
            self.settings(cell.keys, tuned_ones=table != 'ablation'))
      else:
        why_not[place] = cell.remark() or cell.numbers(0)
    return claims.Cells(numbers, self.basis, why_not)

  def figure(self, name: str, *noises: str) -> list[training.Result]:
    """The results behind a figure; all of them have to be there.

    Args:
      name: of the figure.
      *noises: those that it has to show, and no others.
    """
    record = self._record(name)
    missing = [key for key in record.runs if key not in self.results]
    if missing:
      raise claims.NotRun(f'{missing[0]} is missing')
    found = [self.results[key] for key in record.runs]
    diverged = [each.key for each in found if each.status != 'finished']
    if diverged:
      raise claims.NotRun(f'{diverged[0]} diverged')
    shown = {result.run['noise'] for result in found}
    if shown != set(noises):
      raise claims.NotRun(
          f'the figure is of {", ".join(sorted(shown))}, not of '
          f'{", ".join(noises)}')
    self.basis.seeds.add(len({result.run['seed'] for result in found}))
    self.basis.settings |= self.settings(record.runs)
    return found

  def numbers(self, name: str, *noises: str) -> dict[str, float]:
    """The numbers noted with a figure, whose runs have to be there."""
    self.figure(name, *noises)
    return dict(self._record(name).numbers)

  def settings(
      self, keys: Iterable[str], tuned_ones: bool = False) -> frozenset[str]:
    """How runs were trained: by the recipe, or what was different.

    Args:
      keys: of the runs.
      tuned_ones: whether they are meant to have tuned hyperparameters.
    """
    runs = {dataclasses.replace(
        training.Run.from_dict(self.results[key].run), seed=0)
            for key in keys if key in self.results}
    found = {_settings(run) for run in runs}
    if tuned_ones:
      found |= {_untuned(run, self._tuned_dir) for run in runs} - {''}
    return frozenset(found)

  def _record(self, name):
    if name not in self.records:
      raise claims.NotRun('the figure was not drawn')
    return self.records[name]


def cell(
    line: Mapping[str, str], file: pathlib.Path,
    find: Callable[[str], training.Result | None]) -> tables.Cell:
  """A cell of a table, from the results of the runs that its file names.

  Args:
    line: of the CSV file of the table.
    file: that file.
    find: the result of a run by its key.
  """
  keys = tuple(line['runs'].split())
  found = [result for result in map(find, keys) if result is not None]
  done = [result for result in found if result.status == 'finished']
  paper = None
  if line['paper_mean']:
    paper = published.Number(
        float(line['paper_mean']), float(line['paper_std']),
        line['paper_bold'] == '1')
  value = tables.accuracy
  if file.stem.partition('-')[0].endswith('_chosen'):
    value = tables.chosen_accuracy
  if file.stem.startswith('calibration'):
    measured = lambda result: (
        file.parent.parent / 'calibration' / f'{result.key}.json')
    done = [result for result in done if measured(result).exists()
            and measurements.stands(
                measurements.code_in_json(measured(result)), result)]
    value = lambda result: measured_mean(measured(result))
  return tables.Cell(
      values=tuple(map(value, done)), keys=keys,
      diverged=sum(result.status == 'diverged' for result in found),
      published=paper)


def measured_mean(file: pathlib.Path) -> float:
  """The mean of a measurement; raises `ValueError` where it is none."""
  try:
    mean = results_lib.read_json(file)['mean']
    if not isinstance(mean, (int, float)) or not math.isfinite(mean):
      raise ValueError(f'its mean is {mean!r:.40}')
  except (KeyError, OSError, OverflowError, TypeError, ValueError) as error:
    raise ValueError(
        f'{file} is not what was measured, move it away: {error}') from error
  return mean


def whole_table(
    table: tables.Table, file: pathlib.Path,
    find: Callable[[str], training.Result | None]) -> tables.Table:
  """A table with the cells that earlier calls have left in its CSV file.

  Args:
    table: that of this call.
    file: the CSV file, which has its cells, too.
    find: the result of a run by its key.
  """
  lines = {(line['row'], line['column']): line
           for line in csv_files.lines(file)}
  own = {place for place, there in table.cells.items()
         if place in lines and lines[place]['runs'].split() == [*there.keys]}
  if own == set(lines):
    return table
  dataset = file.stem.partition('-')[2]
  columns = {column.key: column for column in table.columns}
  rows, keys = (list(dict.fromkeys(each)) for each in zip(*lines))
  cells = {place: table.cells[place] if place in own
           else cell(lines[place], file, find) if place in lines
           else tables.Cell()
           for place in itertools.product(rows, keys)}
  used = lambda some: [result for result in map(find, sorted({
      key for each in some for key in each.keys})) if result is not None]
  before, after = (
      tables.provenance(some, used(some))
      for some in (table.cells.values(), cells.values()))
  return dataclasses.replace(
      table, rows=rows, cells=cells, columns=[
          columns.get(key) or tables.noise_column(key, dataset)
          for key in keys],
      notes=[note for note in table.notes if note not in before] + after)


@functools.cache
def _settings(run: training.Run) -> str:
  notes = recipes.deviations(run)
  return notes[0].rstrip('.') if notes else f'recipe of {run.dataset}'


@functools.cache
def _untuned(run: training.Run, directory: pathlib.Path) -> str:
  """The hyperparameters of a run that are not the tuned ones."""
  try:
    expected = tuned.method(
        run.method, run.dataset, run.noise,
        directory=directory).hyperparameters()
  except tuned.NotTunedError:
    return ''
  values = run.resolve_method().hyperparameters()
  changed = {name: value for name, value in values.items()
             if value != expected[name]}
  if not changed:
    return ''
  return f'{run.method} on {run.noise} with {pairs.write(changed)}'

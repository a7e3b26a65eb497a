"""Tables made from results: ours, with the paper's numbers beside them."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import functools
import math
import re
import statistics

from etils import epy
import numpy as np

from experiments import data
from experiments import training
from experiments.paper import published as published_lib
from experiments.training import fingerprint

with epy.lazy_imports():
  from scipy import stats

SIGNIFICANCE = .05
MISSING = 'not run'
PROTOCOLS = {'paper': "the paper's text", 'authors': "the authors' code"}


@dataclasses.dataclass(frozen=True)
class Column:
  """A column of a table, below the heading of its group."""
  key: str
  label: str
  group: str = ''


@dataclasses.dataclass(frozen=True)
class Cell:
  """What the runs of one cell gave.

  Attributes:
    values: one for each finished run.
    keys: the runs, finished or not.
    diverged: how many of them diverged.
    published: the paper's number, or None.
  """
  values: tuple[float, ...] = ()
  keys: tuple[str, ...] = ()
  diverged: int = 0
  published: published_lib.Number | None = None

  @functools.cached_property
  def mean(self) -> float | None:
    return statistics.fmean(self.values) if self.values else None

  @functools.cached_property
  def std(self) -> float | None:
    """The sample standard deviation; None of fewer than two values."""
    return statistics.stdev(self.values) if len(self.values) > 1 else None

  @property
  def missing(self) -> int:
    """Runs that neither finished nor diverged."""
    return len(self.keys) - len(self.values) - self.diverged

  @property
  def difference(self) -> float | None:
    """Ours less the paper's."""
    if self.published is None or not self.values:
      return None
    return self.mean - self.published.mean

  def numbers(self, digits: int, sign: str = '±') -> str:
    """Mean and standard deviation, or why there are none."""
    if not self.values:
      return 'diverged' if self.diverged else MISSING
    text = f'{self.mean:.{digits}f}'
    if self.std is not None:
      text += f' {sign} {self.std:.{digits}f}'
    return text

  def paper(self, digits: int, sign: str = '±') -> str:
    """The paper's mean and standard deviation, or nothing."""
    if self.published is None:
      return ''
    return (f'{self.published.mean:.{digits}f} {sign} '
            f'{self.published.std:.{digits}f}')

  def change(self, digits: int) -> str:
    """The difference, or nothing."""
    difference = self.difference
    return '' if difference is None else f'{difference:+.{digits}f}'

  def remark(self) -> str:
    """What is wrong with a cell that has numbers, for it to be shown."""
    remarks = []
    if self.values and self.diverged:
      remarks.append(f'{self.diverged} diverged')
    if self.values and self.missing:
      remarks.append(f'{self.missing} {MISSING}')
    return ', '.join(remarks)


@dataclasses.dataclass(frozen=True)
class Table:
  """Rows and columns of cells; `experiments.render` writes it.

  Attributes:
    title: one line.
    rows: keys of the rows.
    columns: the columns.
    cells: by (row, key of the column).
    corner: heading of the rows.
    digits: after the decimal point.
    lower_is_better: the best mean is the least.
    notes: lines below the table.
  """
  title: str
  rows: Sequence[str]
  columns: Sequence[Column]
  cells: Mapping[tuple[str, str], Cell]
  corner: str = 'Method'
  digits: int = 2
  lower_is_better: bool = False
  notes: Sequence[str] = ()

  def bold(self) -> set[tuple[str, str]]:
    """The cells that are not significantly worse than their column's best."""
    found = set()
    for column in self.columns:
      cells = [self.cells[row, column.key] for row in self.rows]
      best = not_worse(
          [(cell.mean, cell.std, len(cell.values)) for cell in cells],
          self.lower_is_better)
      found |= {(row, column.key) for row, is_best in zip(self.rows, best)
                if is_best}
    return found


def not_worse(
    entries: Sequence[tuple[float | None, float | None, int]],
    lower_is_better: bool = False) -> list[bool]:
  """Which means are not significantly worse than the best one.

  The rule of bold print: Welch's t-test (two-sided) against the best mean has
  p >= 0.05. Where a side has a single value there is no test, and only the best
  mean itself counts.

  Args:
    entries: (mean, standard deviation, number of values); mean None for none.
    lower_is_better: the best mean is the least.
  """
  sign = -1. if lower_is_better else 1.
  means = [-math.inf if mean is None else sign * mean
           for mean, _, _ in entries]
  if not means or max(means) == -math.inf:
    return [False] * len(means)
  best = entries[int(np.argmax(means))]
  return [
      mean == max(means) or (
          mean > -math.inf and p_value(entry, best) >= SIGNIFICANCE)
      for mean, entry in zip(means, entries)]


def p_value(
    one: tuple[float, float | None, int],
    other: tuple[float, float | None, int]) -> float:
  """Of Welch's t-test between two (mean, standard deviation, number)."""
  if one[1] is None or other[1] is None:
    return 0.
  if one[1] == other[1] == 0.:
    return float(one[0] == other[0])
  return float(stats.ttest_ind_from_stats(
      *one, *other, equal_var=False).pvalue)


def accuracy(result: training.Result) -> float:
  """Test accuracy at the end of training, in percent."""
  return 100. * result.metrics['test_accuracy']


def chosen_accuracy(result: training.Result) -> float:
  """Test accuracy at the epoch that the run's stopping rule chose."""
  return 100. * result.chosen['metrics']['test_accuracy']


def build(
    title: str, rows: Sequence[str], columns: Sequence[Column],
    runs: Mapping[tuple[str, str], Sequence[training.Run]],
    results: Mapping[str, training.Result], *,
    value: Callable[[training.Result], float] = accuracy,
    published: Mapping[tuple[str, str], published_lib.Number] | None = None,
    notes: Iterable[str] = (), **options) -> Table:
  """A table from results.

  Args:
    title: one line.
    rows: keys of the rows.
    columns: the columns.
    runs: the runs of each cell, by (row, key of the column).
    results: by key of the run; a run without one is shown as not run.
    value: the number of a result.
    published: the paper's numbers, by (row, key of the column).
    notes: lines below the table; n, hardware and versions are added.
    **options: of `Table`.
  """
  cells = {}
  for row in rows:
    for column in columns:
      place = row, column.key
      found = [results[run.key] for run in runs.get(place, ())
               if run.key in results]
      cells[place] = Cell(
          values=tuple(value(result) for result in found
                       if result.status == 'finished'),
          keys=tuple(run.key for run in runs.get(place, ())),
          diverged=sum(result.status == 'diverged' for result in found),
          published=(published or {}).get(place))
  keys = {key for cell in cells.values() for key in cell.keys}
  used = [results[key] for key in sorted(keys) if key in results]
  return Table(
      title, list(rows), list(columns), cells,
      notes=[*notes, *provenance(cells.values(), used)], **options)


def noise_column(noise: str, dataset: str = '') -> Column:
  """The column of a label noise, in the groups of the paper's tables."""
  parsed = data.parse_noise(noise)
  given_name = data.traits(dataset).given_name
  if given_name and parsed.kind == 'none':
    return Column(noise, given_name)
  if parsed.kind == 'human':
    # random1 -> Random 1
    label = re.sub(r'(\d+)$', r' \1', parsed.name).capitalize()
    return Column(noise, label, 'Human labels')
  if parsed.kind == 'none':
    return Column(noise, '0 %', 'No noise')
  group = {'sym': 'Symmetric', 'asym': 'Asymmetric'}[parsed.kind]
  return Column(noise, f'{100 * parsed.rate:g} %', group)


def provenance(
    cells: Iterable[Cell], results: Sequence[training.Result]) -> list[str]:
  """n, and with what the numbers were computed: devices, versions, code."""
  counts = sorted({len(cell.values) for cell in cells if cell.values})
  if not counts:
    return []
  spread = 'mean' if counts == [1] else 'mean and standard deviation'
  epochs = sorted({result.run['epochs'] for result in results})
  devices = sorted({result.device['name'] for result in results})
  versions = sorted(
      {result.versions['tensorflow'] for result in results})
  whose = sorted({PROTOCOLS[result.run['protocol']] for result in results})
  return [
      f'n = {_join(counts)} ({spread} over seeds), {_join(epochs)} epochs.',
      f'Protocol: {_join(whose)} (docs/protocol.md).',
      f'{_join(devices)}, TensorFlow {_join(versions)}.',
      *fingerprint.notes(results)]


def _join(values: Sequence[object]) -> str:
  return ' or '.join(map(str, values))

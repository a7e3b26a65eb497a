"""Mean ranks of methods over the columns of a table, and when they differ.

Demsar, "Statistical comparisons of classifiers over multiple data sets", JMLR
2006: Friedman's test over all methods, then Nemenyi's critical difference of
two mean ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
import math

from etils import epy

from experiments.output import tables

with epy.lazy_imports():
  from scipy import stats


@dataclasses.dataclass(frozen=True)
class Ranks:
  """Mean ranks; 1 is the best.

  Attributes:
    means: of each row that has numbers in all these columns.
    columns: how many columns they are over.
    critical: the least difference that is significant (p < 0.05); None of
      fewer than two columns.
    p_value: of Friedman's test; None of fewer than three rows or two columns.
  """
  means: dict[str, float]
  columns: int
  critical: float | None
  p_value: float | None

  def not_worse(self) -> list[str]:
    """The rows that are within the critical difference of the best."""
    if self.critical is None:
      return []
    limit = min(self.means.values()) + self.critical
    return [row for row, mean in self.means.items() if mean <= limit]


def rank(table: tables.Table) -> Ranks | None:
  """The mean ranks of a table's rows; None where there is nothing to compare.

  Rows with a gap have no rank: they are compared over the columns of the row
  that has most numbers.
  """
  filled = {
      row: {column.key for column in table.columns
            if table.cells[row, column.key].values} for row in table.rows}
  most = max(filled.values(), key=len, default=set())
  rows = [row for row in table.rows if filled[row] == most]
  if len(rows) < 2 or not most:
    return None
  sign = 1. if table.lower_is_better else -1.
  columns = [column.key for column in table.columns if column.key in most]
  values = [[sign * table.cells[row, column].mean for column in columns]
            for row in rows]
  ranked = stats.rankdata(values, axis=0).mean(axis=1)
  several = len(columns) > 1
  return Ranks(
      dict(zip(rows, map(float, ranked))), len(columns),
      critical_difference(len(rows), len(columns)) if several else None,
      _friedman(values) if several and len(rows) > 2 else None)


def critical_difference(rows: int, columns: int, level: float = .05) -> float:
  """Nemenyi's critical difference of two mean ranks."""
  quantile = stats.studentized_range.ppf(1. - level, rows, math.inf)
  return float(
      quantile / math.sqrt(2.) * math.sqrt(rows * (rows + 1) / (6. * columns)))


def _friedman(values: Sequence[Sequence[float]]) -> float | None:
  if all(row == values[0] for row in values):
    return None  # nothing differs
  return float(stats.friedmanchisquare(*values).pvalue)

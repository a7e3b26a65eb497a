"""Tables: CSV files as people write them, and Parquet files."""

import codecs
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import csv
import dataclasses
import os
from typing import Any

import numpy as np

from ln_tfp.audit.files import dataset
from ln_tfp.audit.review import spreadsheet

_SEPARATORS = ',;\t|'
_LONGEST_CELL = 10_000_000
# Headers that are understood, in the order of preference.
_LABEL_NAMES = ('label', 'labels', 'class', 'target', 'category', 'y', 'given')
_FILE_NAMES = ('file', 'filename', 'file_name', 'path', 'filepath',
               'file_path', 'image', 'image_path', 'id')
_ID_NAMES = ('id', 'key', 'index')
PARQUET = ('.parquet', '.pq')
# By which the audit's own labels.csv is known, whose cells are made safe.
OWN = frozenset(('id', 'given', 'quality'))


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
  """Columns of equal length.

  Attributes:
    path: where they come from, for messages.
    columns: from each name to its N cells: texts, or what Parquet has.
    separator: of the CSV file.
    encoding: to write it in: with a mark, by which spreadsheets know Unicode,
      if there was one.
  """
  path: os.PathLike
  columns: Mapping[str, Sequence[Any]]
  separator: str = ','
  encoding: str = 'utf-8'

  def __len__(self):
    return len(next(iter(self.columns.values())))

  def find(self, wanted: str | None, kind: str) -> str:
    """Returns the name of a column.

    Args:
      wanted: what the user calls it, or None to go by usual names.
      kind: 'label' or 'file'.
    """
    names = ', '.join(self.columns)
    if wanted is not None:
      if wanted not in self.columns:
        raise dataset.InputError(
            f'{self.path}: there is no column {wanted!r}; there are {names}.')
      return wanted
    found = _first(
        self.columns, _LABEL_NAMES if kind == 'label' else _FILE_NAMES)
    if found is None:
      raise dataset.InputError(
          f'{self.path}: the header must name the column {kind}; there are '
          f'{names}.' + (' Say --label=NAME.' if kind == 'label' else ''))
    return found

  def ids(self, wanted: str | None = None) -> tuple[np.ndarray, str | None]:
    """Returns what the rows are called, and the column that says so.

    Args:
      wanted: a column; by default one called id whose cells are all different,
        or else rows are called by their positions.
    """
    name = self.find(wanted, 'label') if wanted else _first(
        self.columns, _ID_NAMES)
    if name is not None:
      cells = [str(cell) for cell in self.columns[name]]
      if len(set(cells)) == len(cells) and all(cells):
        return np.array(cells), name
      if wanted:
        raise dataset.InputError(
            f'{self.path}: the cells of {wanted} must be different.')
    return np.arange(len(self)), None

  def rows(self) -> 'Rows':
    """Returns the rows, from column to text."""
    return Rows(self.columns)


def file_column(table: Table) -> str | None:
  """Returns the column of names of files, if there is one."""
  return _first(table.columns, _FILE_NAMES)


class Rows(Sequence):
  """Rows of columns, made when they are asked for."""

  def __init__(self, columns: Mapping[str, Sequence[Any]]):
    self._columns = columns

  def __len__(self):
    return len(next(iter(self._columns.values())))

  def __getitem__(self, i):
    return {name: '' if is_missing(cells[i]) else str(cells[i])
            for name, cells in self._columns.items()}


def is_missing(cell: Any) -> bool:
  """Whether a cell of a table says nothing."""
  if isinstance(cell, str):
    return cell.strip().lower() in ('', 'na', 'n/a', 'nan', 'null', 'none')
  return cell is None or (isinstance(cell, float) and cell != cell)


def is_unlabelled(cell: Any) -> bool:
  """Whether a cell of labels says nothing."""
  # People have classes of this name; what is missing in Parquet is None.
  is_name = isinstance(cell, str) and cell.strip().lower() in ('none', 'null')
  return is_missing(cell) and not is_name


def read(path: str | os.PathLike) -> Table:
  """Reads a CSV file (separated by comma, semicolon, tab or bar) or Parquet."""
  path = dataset.regular_file(path, in_memory=True)
  if path.suffix.lower() in PARQUET:
    return _read_parquet(path)
  limit = csv.field_size_limit(_LONGEST_CELL)
  try:
    encoding, is_marked = _encoding(path)
    with open(path, newline='', encoding=encoding) as file:
      separator = _separator(file.readline(_LONGEST_CELL))
      file.seek(0)
      header, *rows = _lines(path, csv.reader(file, delimiter=separator))
  except (OSError, UnicodeError, csv.Error, ValueError) as error:
    if isinstance(error, dataset.InputError):
      raise
    raise dataset.InputError(
        f'{path}: not readable ({dataset.reason(error)}).') from error
  finally:
    csv.field_size_limit(limit)
  if not rows:
    raise dataset.InputError(f'{path}: there are no rows.')
  columns = dict(zip(header, map(list, zip(*rows))))
  if set(header) >= OWN:
    columns = {name: [spreadsheet.plain(cell) for cell in cells]
               for name, cells in columns.items()}
  return Table(
      path, columns, separator, 'utf-8-sig' if is_marked else 'utf-8')


def _lines(path, reader) -> Iterator[list[str]]:
  """Yields the header and the rows; all have the same length."""
  header = [name.strip() for name in next(reader, [])]
  if not any(header):
    raise dataset.InputError(f'{path}: the file is empty.')
  if len(set(header)) < len(header):
    raise dataset.InputError(
        f'{path}: the names of the columns must be different; there are '
        f'{", ".join(header)}.')
  yield header
  for row in reader:
    if not row:
      continue
    if len(row) != len(header):
      size = 'short' if len(row) < len(header) else 'long'
      raise dataset.InputError(
          f'{path}: line {reader.line_num} is too {size}; it has {len(row)} '
          f'cells instead of {len(header)}.')
    yield row


def _encoding(path):
  """Returns the encoding, and whether the file begins with a mark."""
  with open(path, 'rb') as file:
    start = file.read(len(codecs.BOM_UTF8))
  if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
    return 'utf-16', True
  return 'utf-8-sig', start == codecs.BOM_UTF8


def _separator(header):
  """Returns the separator that the header has most of."""
  return max(_SEPARATORS, key=lambda separator: len(
      next(csv.reader([header], delimiter=separator), [])))


def _first(columns, names):
  """Returns the first column that has one of the names, in any case."""
  lowered = {name.lower(): name for name in reversed(list(columns))}
  return next((lowered[name] for name in names if name in lowered), None)


def _read_parquet(path):
  try:
    from pyarrow import parquet
  except ImportError as error:
    raise dataset.InputError(
        f'{path}: Parquet files need pyarrow: pip install pyarrow.') from error
  try:
    content = parquet.read_table(path)
  except Exception as error:  # pyarrow has errors of its own
    raise dataset.InputError(
        f'{path}: not readable ({dataset.reason(error)}).') from error
  if not content.num_rows:
    raise dataset.InputError(f'{path}: there are no rows.')
  return Table(path, {
      name: _parquet_cells(content.column(name), content.num_rows)
      for name in content.column_names})


def _parquet_cells(column, num_rows):
  """Returns numbers as an array, `[N]` or of lists `[N, F]`, else a list."""
  from pyarrow import types
  kind = column.type
  if types.is_list(kind) or types.is_fixed_size_list(kind):
    values = column.combine_chunks().flatten()
    if types.is_floating(values.type) and not len(values) % num_rows:
      return values.to_numpy(zero_copy_only=False).reshape(num_rows, -1)
  if types.is_floating(kind) or types.is_integer(kind) and (
      not column.null_count):
    return column.to_numpy()
  return column.to_pylist()

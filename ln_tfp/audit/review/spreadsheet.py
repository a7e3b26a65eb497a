"""CSV files that a spreadsheet can open without running what is in them.

A spreadsheet takes a cell that begins with = + - @ (or a tab or return) for a
formula, and a name of a file or a class may begin so. Such cells are written
with an apostrophe in front, and so are those that would then look like one of
them; `plain` is the exact inverse of `safe`. Numbers stay numbers.
"""

from collections.abc import Iterable
from collections.abc import Sequence
import csv
import io
import os
import re
from typing import Any

from ln_tfp import files

LARGEST = 2**29  # bytes of a file that is read; ten million labels
_DANGEROUS = re.compile(r"'*[=+\-@\t\r]")
_NUMBER = re.compile(r'[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?', re.IGNORECASE)


def safe(cell: Any) -> Any:
  """Returns a cell that no spreadsheet executes; `plain` takes it back."""
  if isinstance(cell, str) and _DANGEROUS.match(cell) and not (
      _NUMBER.fullmatch(cell)):
    return f"'{cell}"
  return cell


def plain(cell: str) -> str:
  """Returns what a cell was before `safe`."""
  if cell.startswith("'") and _DANGEROUS.match(cell):
    return cell[1:]
  return cell


def write(path: str | os.PathLike, header: Iterable[str],
          rows: Iterable[Sequence[Any]]) -> None:
  """Writes a CSV file of safe cells, whole or not at all."""
  files.write_atomically(path, to_text(header, rows).encode())


def to_text(header: Iterable[str], rows: Iterable[Sequence[Any]]) -> str:
  """Returns the text of such a file."""
  file = io.StringIO()
  writer = csv.writer(file, lineterminator='\n')
  writer.writerow(map(safe, header))
  writer.writerows(map(safe, row) for row in rows)
  return file.getvalue()


def read(path: str | os.PathLike) -> list[dict[str, str]]:
  """Returns the rows of a file that `write` wrote, as they were before."""
  content = files.read_bounded(path, LARGEST).decode('utf-8-sig')
  with io.StringIO(content, newline='') as file:
    reader = csv.reader(file)
    header = [plain(name) for name in next(reader, [])]
    rows = []
    try:
      for row in filter(None, reader):
        if len(row) != len(header):
          raise ValueError(f'{path}: line {reader.line_num} has {len(row)} '
                           f'cells instead of {len(header)}.')
        rows.append(dict(zip(header, map(plain, row))))
    except csv.Error as error:  # such as a cell without end
      raise ValueError(f'{path}: {error}.') from error
  return rows

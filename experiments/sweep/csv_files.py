"""CSV files of an output directory: read with a limit, merged under a lock."""

from __future__ import annotations

from collections.abc import Sequence
import csv
import io
import itertools
import os
import pathlib
import sys

from etils import epy

from experiments.sweep import locks
from experiments.training import results

with epy.lazy_imports():
  from ln_tfp import files


def lines(
    file: str | os.PathLike, needed: Sequence[str] = ()) -> list[dict]:
  """The lines of a file; raises `ValueError` where it is none of ours.

  Args:
    file: the file; what somebody has cut short is no line.
    needed: columns that it must have.
  """
  try:
    found, whole, _ = _parse(results.read_bounded(file, results.MAX_BYTES))
  except OSError as error:
    raise ValueError(f'{file}: {error.strerror or error}.') from error
  except (UnicodeDecodeError, csv.Error) as error:
    raise ValueError(f'{file}: {error}.') from error
  for name in needed:
    if name not in found:
      raise ValueError(f'{file}: it has no column {name}.')
  return whole


def _parse(content: bytes) -> tuple[list[str], list[dict], bool]:
  """The header, the lines that have all its columns, and whether all have."""
  reader = csv.DictReader(io.StringIO(content.decode(), newline=''))
  every = list(reader)
  whole = [line for line in every if None not in (*line, *line.values())]
  return reader.fieldnames or [], whole, len(whole) == len(every)


def write(
    output_dir: str | os.PathLike, name: str, text: str,
    keys: Sequence[str]) -> pathlib.Path:
  """Writes a file below a directory, with the lines that are there already.

  Where those have other columns, or are cut short, they are kept beside it.

  Args:
    output_dir: the directory.
    name: of the file.
    text: its new lines, with a header.
    keys: the columns that tell lines apart.
  """
  file = pathlib.Path(output_dir) / name
  # Two programs at once would each miss what the other one adds.
  with locks.wait(output_dir, name.replace('/', '-')):
    if os.path.lexists(file):
      old = results.read_bounded(file, results.MAX_BYTES)
      text, is_whole = merge(old, text, keys)
      if not is_whole:
        print(f'{file} had lines of another form: it is kept as '
              f'{_keep(file, old)}.', file=sys.stderr)
    files.write_atomically(file, text.encode())
  return file


def _keep(file: pathlib.Path, content: bytes) -> pathlib.Path:
  """Writes a copy under a name that is free."""
  copy = next(
      name for number in itertools.count(1)
      if not os.path.lexists(name := file.with_name(f'{file.name}.{number}')))
  files.write_atomically(copy, content)
  return copy


def merge(old: bytes, new: str, keys: Sequence[str]) -> tuple[str, bool]:
  """The lines of two files; of lines with equal keys the new one.

  But an old one stays that has more runs, all of the new one's among them.

  Returns:
    The text, and whether nothing else of the old file is missing in it.
  """
  there, before, is_whole = _parse(old)
  names, after, _ = _parse(new.encode())
  if there != names:
    return new, False
  before, after = (
      {tuple(line[key] for key in keys): line for line in some}
      for some in (before, after))
  runs = lambda line: set(line.get('runs', '').split())
  kept = {key: line for key, line in before.items()
          if key not in after or runs(line) > runs(after[key])}
  order = dict.fromkeys(
      itertools.chain(*sorted((before, after), key=len, reverse=True)))
  merged = after | kept
  stream = io.StringIO()
  writer = csv.DictWriter(stream, names, lineterminator='\n')
  writer.writeheader()
  writer.writerows(merged[key] for key in order)
  return stream.getvalue(), is_whole

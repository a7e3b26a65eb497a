"""What is known of the files of a directory without reading them again.

`OUTPUT_DIR/.locks/index.json` has a line for each result that was read and
checked. It is a convenience: a file that is newer than its line is read again,
an index that is damaged, or cannot be written, does no harm.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import pathlib
from typing import Any

from experiments.training import results

_VERSION = 2  # one more where results are checked for more
_MAX_BYTES = 2**28
# Files; fewer are read in no time.
_WORTH_IT = 200

# What tells a file from a newer one of the same name.
Signature = tuple[int, ...]


def signature(file: str | os.PathLike) -> Signature:
  """The signature of a file; raises `OSError`."""
  found = os.stat(file)
  return found.st_ino, found.st_size, found.st_mtime_ns


@dataclasses.dataclass(frozen=True)
class Entry:
  """What a sweep needs to know of a result that it does not show.

  Attributes:
    problem: why the file is no result, or ''.
    kind: data set, network and method.
    epoch_seconds: the mean of its epochs; None where it had none.
    beside_seconds: what it took beside its epochs.
  """
  problem: str = ''
  kind: tuple[str, ...] = ()
  epoch_seconds: float | None = None
  beside_seconds: float = 0.


def entry_of(result: results.Result) -> Entry:
  """The entry of a result."""
  epochs, spent = result.seconds['epochs'], sum(result.seconds['epochs'])
  kind = tuple(result.run[name] for name in ('dataset', 'model', 'method'))
  if not epochs:
    return Entry(kind=kind)
  return Entry('', kind, spent / len(epochs), result.seconds['wall'] - spent)


def _entry(
    problem: str, kind: list[str], epoch: float | None,
    beside: float) -> Entry:
  """An entry that was read; raises `ValueError` where it is none."""
  numbers = (beside,) if epoch is None else (beside, epoch)
  if not (isinstance(problem, str)
          and (len(kind) == 3 or not kind and epoch is None)
          and {str}.issuperset(map(type, kind))
          and {int, float}.issuperset(map(type, numbers))
          and all(map(math.isfinite, numbers))):
    raise ValueError('not an entry')
  return Entry(problem, tuple(kind), epoch, beside)


class Index:
  """The entries of a directory.

  Args:
    directory: that of the results.
  """

  def __init__(self, directory: pathlib.Path):
    self._file = directory / '.locks' / 'index.json'
    self._new = 0
    try:
      document = json.loads(results.read_bounded(self._file, _MAX_BYTES))
      self._entries = {
          name: (tuple(sign), _entry(*values))
          for name, (sign, *values) in document[str(_VERSION)].items()}
    except (OSError, AttributeError, KeyError, OverflowError, TypeError,
            ValueError, RecursionError):
      self._entries = {}

  def get(self, name: str, sign: Signature) -> Entry | None:
    """The entry of a file that has not changed since."""
    known, entry = self._entries.get(name, (None, None))
    return entry if known == sign else None

  def put(self, name: str, sign: Signature, entry: Entry) -> None:
    """Notes what was found in a file."""
    self._entries[name] = sign, entry
    self._new += 1

  def save(self) -> None:
    """Writes the index where that is worth it, and possible."""
    if self._new < _WORTH_IT:
      return
    document: dict[str, Any] = {str(_VERSION): {
        name: (sign, entry.problem, entry.kind, entry.epoch_seconds,
               entry.beside_seconds)
        for name, (sign, entry) in self._entries.items()}}
    partial = self._file.with_name(f'index.{os.getpid()}.tmp')
    with contextlib.suppress(OSError):
      self._file.parent.mkdir(parents=True, exist_ok=True)
      partial.write_text(json.dumps(document), encoding='utf-8')
      os.replace(partial, self._file)
    self._new = 0

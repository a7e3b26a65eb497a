"""Examples to audit, wherever they come from."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import os
import pathlib
from typing import Any

import numpy as np

from ln_tfp import files


class InputError(ValueError):
  """The input cannot be audited; the message is one line for the user."""


@dataclasses.dataclass(frozen=True, eq=False)
class Dataset:
  """Labelled examples.

  Attributes:
    inputs: `[N, ...]`, an array, or an `ImageFolder`, which reads its images
      when they are asked for.
    labels: int32 `[N]`.
    ids: `[N]`, positions or names.
    class_names: the names of the classes.
    clean_labels: int32 `[N]` where they are known, else None.
    rows: of a table, its N rows from column to cell, else None.
    notes: what the user should know of how the input was read.
  """
  inputs: Any
  labels: np.ndarray
  ids: np.ndarray
  class_names: tuple[str, ...]
  clean_labels: np.ndarray | None = None
  rows: Sequence[Mapping[str, str]] | None = None
  notes: tuple[str, ...] = ()

  def __len__(self):
    return len(self.labels)


def regular_file(
    path: str | os.PathLike, in_memory: bool = False) -> pathlib.Path:
  """Returns a path that can be read to its end: no folder, no pipe.

  Args:
    path: of the file.
    in_memory: whether the content will be held in memory, and has to fit.
  """
  path = pathlib.Path(path)
  try:
    files.open_regular(path, memory() if in_memory else None).close()
  except FileNotFoundError:
    raise InputError(f'{path}: there is no such file or folder.') from None
  except (OSError, ValueError) as error:
    raise InputError(f'{path}: not readable ({reason(error)}).') from error
  return path


def memory() -> int:
  """Returns the bytes of physical memory, of a large machine if unknown."""
  try:
    return os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
  except (AttributeError, ValueError, OSError):
    return 2**40


def check_memory(what: str, size: int) -> None:
  """Refuses what needs more memory than there is, before the work begins."""
  if size > memory():
    raise InputError(f'{what} need {size / 2**30:,.1f} GB of memory, there are '
                     f'{memory() / 2**30:.1f} GB.')


def reason(error: BaseException) -> str:
  """Returns an error as part of a line."""
  text = getattr(error, 'strerror', None) or str(error) or type(error).__name__
  return ' '.join(text.split())[:200].rstrip('.')

"""Examples to audit, wherever they come from."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import os
import pathlib
import stat
from typing import Any

import numpy as np


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


def regular_file(path: str | os.PathLike) -> pathlib.Path:
  """Returns a path that can be read to its end: no folder, no pipe."""
  path = pathlib.Path(path)
  try:
    mode = path.stat().st_mode
  except FileNotFoundError:
    raise InputError(f'{path}: there is no such file or folder.') from None
  except (OSError, ValueError) as error:
    raise InputError(f'{path}: not readable ({reason(error)}).') from error
  if not stat.S_ISREG(mode):
    raise InputError(f'{path}: not readable (it is no regular file).')
  return path


def reason(error: BaseException) -> str:
  """Returns an error as part of a line."""
  text = getattr(error, 'strerror', None) or str(error) or type(error).__name__
  return ' '.join(text.split())[:200].rstrip('.')

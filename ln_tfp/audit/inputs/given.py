"""The labels that an audit is given: of any type, soft, or missing."""

from collections.abc import Sequence
import dataclasses
from typing import Any

import numpy as np

MISSING = -1


@dataclasses.dataclass(frozen=True, eq=False)
class Given:
  """N labels of K classes.

  Attributes:
    classes: int32 `[N]`, the likeliest class of soft labels, -1 for none.
    class_names: the K names.
    shares: `[N, K]`, soft labels; None if each label is one class.
  """
  classes: np.ndarray
  class_names: tuple[str, ...]
  shares: np.ndarray | None = None

  def __len__(self) -> int:
    return len(self.classes)

  @property
  def is_labelled(self) -> np.ndarray:
    """bool `[N]`."""
    return self.classes != MISSING


def read(
    labels: Any, class_names: Sequence[str] | None = None,
    ignore_class: Any = None, argument: str = 'labels') -> Given:
  """Reads labels.

  Args:
    labels: `[N]` or `[N, 1]`, numbers or names, where None and NaN are missing;
      or one-hot or soft rows `[N, K]`, where a row of zeros is missing.
    class_names: of all classes; numbers are then 0 to K - 1. By default the
      labels that there are, in their order; False and True for those.
    ignore_class: the label that stands for none, such as -1.
    argument: what the labels are called, for errors.
  """
  labels = np.asarray(labels)
  if labels.ndim == 2 and labels.shape[1] == 1:
    labels = labels[:, 0]
  if class_names is not None:
    class_names = tuple(map(str, class_names))
    if len(set(class_names)) != len(class_names):
      raise ValueError('Argument `class_names` must have different names. '
                       f'Received: class_names={class_names}.')
  if labels.ndim == 2:
    return _read_rows(labels, class_names, ignore_class, argument)
  if labels.ndim != 1:
    raise ValueError(
        f'Argument `{argument}` must have the shape [N], [N, 1] or [N, K]. '
        f'Received: shape={labels.shape}.')
  missing = _is_missing(labels)
  if ignore_class is not None:
    missing |= labels == ignore_class
  present = labels[~missing]
  if not len(present):
    raise ValueError(f'Argument `{argument}` must hold at least one label. '
                     f'Received: {len(labels)} of which all are missing.')
  if present.dtype.kind == 'O':
    present = _one_kind(present, argument)
  if present.dtype.kind not in 'iufbU':
    raise ValueError(
        f'Argument `{argument}` must hold whole numbers or names. Received: '
        f'dtype={present.dtype}, such as {present[0]!r}.')
  numeric = present.dtype.kind != 'U'
  if present.dtype.kind == 'b' and class_names is None:
    class_names = ('False', 'True')
  if numeric:
    _check_whole(present, np.flatnonzero(~missing), argument)
    present = present.astype(np.int64)
  if class_names is None:
    known = np.unique(present)
    class_names = tuple(map(str, known))
  else:
    known = np.arange(len(class_names)) if numeric else np.array(class_names)
  order = np.argsort(known, kind='stable')
  at = np.searchsorted(known, present, sorter=order)
  numbers = order[np.minimum(at, len(known) - 1)] if len(known) else at
  unknown = (known[numbers] != present) if len(known) else np.ones_like(
      present, bool)
  if unknown.any():
    first = int(np.argmax(unknown))
    position = np.flatnonzero(~missing)[first]
    raise ValueError(
        f'Argument `{argument}` must hold classes of {_shorten(known)}. '
        f'Received: {present[first]} at position {position}.')
  classes = np.full(len(labels), MISSING, np.int32)
  classes[~missing] = numbers
  return Given(classes, class_names)


def _read_rows(rows, class_names, ignore_class, argument):
  """Reads one-hot and soft labels."""
  size = rows.shape[1]
  if class_names is None:
    class_names = tuple(map(str, range(size)))
  if len(class_names) != size or rows.dtype.kind not in 'iufb':
    raise ValueError(
        f'Argument `{argument}` of two dimensions must hold one-hot or soft '
        f'rows [N, {len(class_names)}]. Received: shape={rows.shape}, '
        f'dtype={rows.dtype}.')
  sums = rows.sum(axis=1)
  valid = np.all(rows >= 0, axis=1) & (
      (np.abs(sums - 1.) < 1e-3) | (sums == 0))
  if not valid.all():
    first = int(np.argmin(valid))
    raise ValueError(
        f'Argument `{argument}` must hold rows that are not negative and sum '
        'to one, or to zero for no label; several annotators are for '
        f'`ln_tfp.consensus`. Received: {rows[first]} at position {first}.')
  classes = np.where(sums == 0, MISSING, rows.argmax(axis=1)).astype(np.int32)
  if ignore_class is not None:
    classes[classes == ignore_class] = MISSING
  hard = np.all((rows == 0) | (rows == 1))
  return Given(classes, class_names,
               None if hard else rows.astype(np.float32))


def _is_missing(labels):
  if labels.dtype.kind == 'f':
    return np.isnan(labels)
  if labels.dtype.kind != 'O':
    return np.zeros(len(labels), bool)
  return np.array([
      label is None or type(label).__name__ == 'NAType' or
      isinstance(label, float) and label != label for label in labels], bool)


def _one_kind(labels, argument):
  """Returns labels of an array of objects, which are all numbers or names.

  As text the number 1 and the name '1' would be the same.
  """
  for first in labels:
    if isinstance(first, str) != isinstance(labels[0], str):
      raise ValueError(
          f'Argument `{argument}` must hold numbers or names, not both. '
          f'Received: {labels[0]!r} and {first!r}.')
  return np.array(labels.tolist())


def _check_whole(labels, positions, argument):
  # Beyond 2^53 floating numbers are not told apart, beyond 2^63 int64 ends.
  largest = 2.**53 if labels.dtype.kind == 'f' else 2**63 - 1
  if labels.dtype.kind == 'f' and labels.dtype.itemsize < 8:
    labels = labels.astype(np.float64)  # float16 takes the largest for infinite
  whole = (labels >= 0) & (labels == np.floor(labels)) & (labels <= largest)
  if not whole.all():
    first = int(np.argmin(whole))
    raise ValueError(
        f'Argument `{argument}` must hold whole numbers that are not negative, '
        f'nor too large, or names. Received: {labels[first]} at position '
        f'{positions[first]}. '
        'If it stands for no label, say so by `ignore_class`.')


def _shorten(known):
  names = [str(name) for name in known[:5]]
  return ', '.join(names) + (', ...' if len(known) > 5 else '')

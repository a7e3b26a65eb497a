"""Labelled examples: in batches, as classes, and the few that are kept."""

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

# So many examples are kept for the gallery of a report.
_KEPT = 300


def batches(x: Any, y: Any, batch_size: int) -> Iterator[tuple[Any, Any]]:
  """Returns batches of examples and labels, after a check of the arguments."""
  if isinstance(x, tf.data.Dataset):
    if y is not None:
      raise ValueError('Argument `y` must be None if `x` is a dataset, which '
                       'brings its labels.')
    spec = x.element_spec
    if not isinstance(spec, tuple) or len(spec) != 2:
      raise ValueError('Argument `x` must be a dataset of pairs (examples, '
                       f'labels). Received: element_spec={spec}.')
    if x.cardinality() == tf.data.INFINITE_CARDINALITY:
      raise ValueError('Argument `x` must be a dataset that ends; this one is '
                       'repeated for ever.')
    return iter(x)
  if y is None:
    raise ValueError('Argument `y` must be given unless `x` is a dataset. '
                     'Received: y=None.')
  if batch_size < 1:
    raise ValueError('Argument `batch_size` must be positive. '
                     f'Received: batch_size={batch_size}.')
  y = np.asarray(y)
  x = keras.tree.map_structure(np.asarray, x) if isinstance(
      x, (dict, tuple)) else np.asarray(x)
  lengths = {len(array) for array in keras.tree.flatten(x)}
  if y.ndim == 0 or lengths != {len(y)}:
    raise ValueError(
        'Arguments `x` and `y` must have the same length. Received: '
        f'{", ".join(map(str, sorted(lengths)))} examples and '
        f'{len(y) if y.ndim else "a single"} labels.')
  return (
      (keras.tree.map_structure(lambda a, s=start: a[s:s + batch_size], x),
       y[start:start + batch_size])
      for start in range(0, len(y), batch_size))


def to_classes(labels: Any, num_classes: int, start: int = 0) -> np.ndarray:
  """Returns labels `[N]`, `[N, 1]` or one-hot rows `[N, K]` as int32 `[N]`.

  Args:
    labels: the labels.
    num_classes: K.
    start: position of the first of them in the data, for errors.
  """
  labels = np.asarray(labels)
  if labels.dtype.kind not in 'iufb':
    raise ValueError('Argument `y` must hold numbers. Received: '
                     f'dtype={labels.dtype}.')
  if labels.ndim == 2 and labels.shape[1] == num_classes > 1:
    ones = (labels == 1).sum(axis=1)
    wrong = (ones != 1) | ((labels != 0).sum(axis=1) != 1)
    if wrong.any():
      first = int(np.argmax(wrong))
      raise ValueError(
          'Argument `y` must hold labels or one-hot rows; soft labels cannot '
          f'be audited. Received: {labels[first]} at position '
          f'{start + first}.')
    return labels.argmax(axis=1).astype(np.int32)
  if labels.ndim == 2 and labels.shape[1] == 1:
    labels = labels[:, 0]
  if labels.ndim != 1:
    raise ValueError(
        'Argument `y` must hold labels of shape [N] or [N, 1], or one-hot rows '
        f'[N, {num_classes}]. Received: shape={labels.shape}.')
  valid = (labels >= 0) & (labels < num_classes) & (labels == np.floor(labels))
  if not valid.all():
    first = int(np.argmin(valid))
    raise ValueError(
        f'Argument `y` must hold whole labels from 0 to {num_classes - 1}. '
        f'Received: {labels[first]} at position {start + first}.')
  return labels.astype(np.int32)


class Keeper:
  """Keeps the examples that fit their labels worst, for the gallery.

  A dataset can be read only once, and need not fit in memory.
  """

  def __init__(self):
    self._ratios = {}
    self._arrays = {}

  @property
  def examples(self) -> dict[int, np.ndarray]:
    """The kept examples by position."""
    self._prune()
    return self._arrays

  def add(self, inputs: Any, start: int, ratios: np.ndarray) -> None:
    """Looks at a batch.

    Args:
      inputs: the examples. Those of a model with several inputs have no
        picture and are not kept.
      start: position of the first of them.
      ratios: `[N]`, high where the label does not fit.
    """
    if keras.tree.is_nested(inputs):
      return
    for row in np.argsort(-ratios)[:_KEPT]:
      self._ratios[start + int(row)] = ratios[row]
      self._arrays[start + int(row)] = np.array(inputs[row])
    if len(self._arrays) > 4 * _KEPT:
      self._prune()

  def _prune(self):
    order = sorted(self._ratios, key=self._ratios.get, reverse=True)[:_KEPT]
    self._ratios = {i: self._ratios[i] for i in order}
    self._arrays = {i: self._arrays[i] for i in order}

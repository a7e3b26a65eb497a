"""The one reader of labels: whole, one-hot or soft; checked; made targets.

The losses and the metrics take labels in the forms that Keras's cross entropies
take together. For predictions of batch shape `[...]` and K classes they are

| form            | shape                 |                                    |
|-----------------|-----------------------|------------------------------------|
| whole           | `[...]` or `[..., 1]` | 0 to K - 1, of any dtype           |
| one-hot or soft | `[..., K]`            | rows not negative that sum to one  |

The shape decides, not the dtype. A row of zeros, as padding leaves it, is a
label of no class.

A label that is no class is an error that shows it. What XLA compiles has no
assertions (all of JAX; of TensorFlow what has `jit_compile=True`, Keras's
default wherever there is a GPU): there its loss, its gradient and its metrics
are NaN instead.
"""

import math
from typing import Any

import keras
from keras import ops

from ln_tfp import backend
from ln_tfp import checks

Tensor = Any  # of the Keras backend, or what it can convert


class Labels:
  """Labels of one batch.

  Args:
    y_true: Tensor of shape `[...]`, `[..., 1]` or `[..., K]`.
    batch_shape: Static shape `[...]` of the predictions.
    num_classes: K.
    ignore_class: Labels that are this number neither count nor fail; it need
      not be a class. Of one-hot labels those with a one in this column.
    num_columns: K, or the number of columns that soft labels may also have: the
      last ones stand for no label, such as the dummy class.
    classes_only: Whether those last columns must be zero.

  Attributes:
    is_soft: Whether the labels have columns.
    num_classes: K.
    counted: Booleans `[...]`, False where a label is to be ignored; `None` if
      none is.
  """

  def __init__(self, y_true: Tensor, batch_shape: tuple[int | None, ...],
               num_classes: int, ignore_class: int | None = None,
               num_columns: int | None = None, classes_only: bool = False):
    y_true = backend.read_labels(y_true)
    dtype = keras.backend.standardize_dtype(y_true.dtype)
    if dtype.startswith(('string', 'complex')):
      raise ValueError('Argument `y_true` must hold numbers. Received: a '
                       f'tensor of {dtype}.')
    batch_shape = tuple(batch_shape)
    self.num_classes = num_classes
    self._num_columns = num_columns or num_classes
    self._classes_only = classes_only
    ignore_class = check_ignore_class(ignore_class)
    extra = _extra_dimensions(tuple(y_true.shape), batch_shape)
    self.is_soft = extra == 1 and y_true.shape[-1] in (
        num_classes, self._num_columns)
    if not (extra == 0 or self.is_soft or
            extra == 1 and y_true.shape[-1] == 1):
      raise ValueError(
          'Argument `y_true` must hold labels of shape '
          f'{list(batch_shape)} or {[*batch_shape, 1]}, or soft labels of '
          f'shape {[*batch_shape, num_classes]}. Received: a tensor of '
          f'shape {tuple(y_true.shape)}.')
    if extra == 1 and not self.is_soft:
      y_true = ops.squeeze(y_true, axis=-1)
    read = self._read_soft if self.is_soft else self._read_whole
    self._values, self._valid, ignored = read(y_true, ignore_class)
    self.counted = None if ignored is None else ops.logical_not(ignored)

  def _read_whole(self, y_true, ignore_class):
    """Returns integers, which of them are classes, and which are ignored."""
    valid = ops.logical_and(y_true >= 0, y_true < self.num_classes)
    if keras.backend.is_float_dtype(y_true.dtype):
      valid = ops.logical_and(valid, ops.equal(ops.floor(y_true), y_true))
    ignored = None
    if ignore_class is not None:
      ignored = ops.equal(y_true, ops.cast(ignore_class, y_true.dtype))
    values = ops.cast(ops.where(valid, y_true, 0), 'int32')
    return self._checked(
        values, valid, ignored, y_true, 'Argument `y_true` must hold whole '
        f'labels from 0 to {self.num_classes - 1}. Received:')

  def _read_soft(self, y_true, ignore_class):
    """Returns rows over all columns, which are valid, which are ignored."""
    if not keras.backend.is_float_dtype(y_true.dtype):
      y_true = ops.cast(y_true, 'float32')
    total = ops.sum(y_true, axis=-1)
    valid = ops.logical_and(
        ops.all(y_true >= 0, axis=-1),
        ops.logical_or(ops.abs(total - 1.) < 1e-3, ops.equal(total, 0.)))
    if self._classes_only:
      valid = ops.logical_and(
          valid, ops.all(y_true[..., self.num_classes:] == 0, axis=-1))
    ignored = None
    if ignore_class is not None and 0 <= ignore_class < self.num_classes:
      ignored = ops.equal(y_true[..., ignore_class], 1.)
    missing = self._num_columns - y_true.shape[-1]
    values = y_true if not missing else ops.pad(
        y_true, [[0, 0]] * (len(y_true.shape) - 1) + [[0, missing]])
    return self._checked(
        values, valid, ignored, y_true, 'Argument `y_true` must hold labels, '
        'or soft labels that are not negative and sum to one'
        f'{self._hint()}. Received:')

  def _hint(self):
    if not self._classes_only or self._num_columns == self.num_classes:
      return ''
    return (f' over {self.num_classes} classes (if there are '
            f'{self._num_columns} and no dummy class, pass `num_classes`)')

  def _checked(self, values, valid, ignored, y_true, message):
    if ignored is not None:
      valid = ops.logical_or(valid, ignored)
    return backend.require(values, valid, y_true, message), valid, ignored

  def classes(self) -> Tensor:
    """Returns the label, or the likeliest of soft ones, int32 `[...]`.

    It is -1 for a row of zeros, which is no class.
    """
    if not self.is_soft:
      return self._values
    likeliest = ops.cast(ops.argmax(self._values, axis=-1), 'int32')
    return ops.where(ops.any(self._values > 0, axis=-1), likeliest, -1)

  def distribution(self, dtype: str) -> Tensor:
    """Returns the labels as rows over all columns, `[..., num_columns]`."""
    if self.is_soft:
      return ops.cast(self._values, dtype)
    return backend.one_hot(self._values, self._num_columns, dtype=dtype)

  def smoothed(self, label_smoothing: float, dtype: str) -> Tensor:
    """Returns `(1 - t) onehot + t / num_columns`, `t = label_smoothing`."""
    uniform = label_smoothing / self._num_columns
    return (1. - label_smoothing) * self.distribution(dtype) + uniform

  def logits(self, label_smoothing: float, dtype: str) -> tuple[Tensor, Tensor]:
    """Returns the target `S_C^-1(q)` and the log Jacobian of `S_C` there.

    `q` is `smoothed`. For whole labels both are known in advance: with the
    dummy class the logits are `C` at the label and 0 elsewhere (the paper's
    Appendix B.5).
    """
    if self.is_soft:
      log_q = ops.log(self.smoothed(label_smoothing, dtype))
      logits = log_q[..., :-1] - log_q[..., -1:]
      return logits, _log_jacobian(logits)
    size, t = self._num_columns, label_smoothing
    high = math.log(((1. - t) * size + t) / t)
    logits = high * backend.one_hot(self._values, size - 1, dtype=dtype)
    if self.num_classes == size:  # without a dummy class the last is the origin
      is_last = ops.equal(self._values, size - 1)
      logits -= high * ops.cast(is_last, dtype)[..., None]
    return logits, size * math.log(t / size) + high + 0.5 * math.log(size)

  def finish(self, values: Tensor) -> Tensor:
    """Returns `[...]` values as a loss or a metric shall give them.

    Those of invalid labels are NaN, and the gradient with them; those of
    ignored ones are zero, and a Keras mask says that they do not count.
    """
    # The choice is for the value, the product for the gradient: XLA may drop a
    # NaN by which a converted boolean is multiplied.
    nan = ops.cast(float('nan'), values.dtype)
    poison = ops.where(self._valid, ops.ones([], values.dtype), nan)
    values = ops.where(self._valid, values * poison, nan)
    if self.counted is None:
      return values
    values = ops.where(self.counted, values, ops.zeros([], values.dtype))
    keras.src.backend.set_keras_mask(values, self.counted)
    return values


def check_ignore_class(ignore_class: int | None) -> int | None:
  """Returns a whole number as an integer, and `None` as it is."""
  if ignore_class is None:
    return None
  return checks.whole('ignore_class', ignore_class)


def align_weights(weights: Tensor, num_dims: int) -> Tensor:
  """Returns sample weights with `num_dims` axes, to go with `[...]` values.

  They may have an axis of size one too many, or lack the last axes.
  """
  weights = ops.convert_to_tensor(weights)
  if len(weights.shape) == num_dims + 1 and weights.shape[-1] == 1:
    return ops.squeeze(weights, axis=-1)
  while len(weights.shape) < num_dims:
    weights = ops.expand_dims(weights, axis=-1)
  return weights


def without_uncounted(y_true: Tensor, num_dims: int, *weights: Tensor | None):
  """Returns the labels with zeros where a weight (or mask) is zero.

  Zero is always valid, so that labels that do not count cannot fail.

  Args:
    y_true: Labels in any form.
    num_dims: Number of dimensions of the batch `[...]`.
    *weights: Each of shape `[...]`, or `None`.
  """
  for weight in weights:
    if weight is not None:
      y_true = backend.read_labels(y_true)
      counts = ops.not_equal(weight, ops.cast(0, weight.dtype))
      for _ in range(len(y_true.shape) - num_dims):
        counts = ops.expand_dims(counts, axis=-1)
      y_true = ops.where(counts, y_true, ops.zeros([], y_true.dtype))
  return y_true


def mask_of(y_pred: Tensor) -> Tensor | None:
  """Returns the mask that Keras keeps as an attribute of a tensor."""
  return keras.src.backend.get_keras_mask(y_pred)


def _extra_dimensions(shape, batch_shape):
  """Returns how many axes follow the batch, or `None` if it does not fit."""
  begins = len(shape) >= len(batch_shape) and all(
      a is None or b is None or a == b for a, b in zip(shape, batch_shape))
  return len(shape) - len(batch_shape) if begins else None


def _log_jacobian(logits):
  """Returns the log Jacobian of `S_C` at logits `[..., D]`, `[...]`."""
  size = logits.shape[-1] + 1
  return (0.5 * math.log(size) + ops.sum(logits, axis=-1) -
          float(size) * ops.softplus(ops.logsumexp(logits, axis=-1)))

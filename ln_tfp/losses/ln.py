"""The negative log-likelihood of the Logistic-Normal distribution."""

import functools
import math
from typing import Any

import keras
from keras import ops
import numpy as np

from ln_tfp import backend
from ln_tfp import checks
from ln_tfp import heads
from ln_tfp import labels as labels_lib
from ln_tfp import normal
from ln_tfp.losses import base


def _nll(y_true: base.Tensor, y_pred: base.Tensor,
         label_smoothing: float = 0.01, num_classes: int | None = None,
         ignore_class: int | None = None) -> base.Tensor:
  """Returns minus the log density of the smoothed labels (the paper's Eq. 4).

  A label `y` becomes the point `q = (1 - t) onehot(y) + t / (D + 1)` of the
  simplex of `D + 1` classes, `t = label_smoothing`. Goes into `compile` as it
  is: `model.compile('adam', loss=ln_tfp.nll)`.

  Args:
    y_true: Labels of shape `[...]` or `[..., 1]`, or soft labels of shape
      `[..., K]` (or `[..., D + 1]`), where `[...]` is the batch shape of
      `y_pred`. The shape decides, not the dtype. Rows of soft labels sum to
      one; a row of zeros, as padding leaves it, counts as uniform.
    y_pred: Output of a `LogisticNormalHead`, `[..., 2 + R, D]`, or any object
      with a `log_prob` on the simplex.
    label_smoothing: `t` in (0, 1].
    num_classes: Number of classes K. `None` means D (the head with its dummy
      class), or the event size of a distribution. For a head without the dummy
      class pass `D + 1`, or take `head.loss()`.
    ignore_class: Labels that are this number neither count nor fail: their loss
      is zero.

  Returns:
    Float tensor of shape `[...]`.

  Raises:
    ValueError: If the shapes do not fit.
    tf.errors.InvalidArgumentError: If a label is not one of the classes. Where
      XLA drops the assertion, its loss and gradient are NaN.
  """
  t = checks.between('label_smoothing', label_smoothing, 0, 1, open_below=True)
  if hasattr(y_pred, 'log_prob'):
    size = y_pred.event_shape[-1]
    labels = labels_lib.Labels(
        y_true, tuple(y_pred.batch_shape), num_classes or size, ignore_class,
        size)
    return labels.finish(
        -y_pred.log_prob(labels.smoothed(t, y_pred.dtype.name)))
  y_true = backend.read_labels(y_true)
  y_pred = _restore_squeezed(y_true, y_pred, num_classes)
  loc, diag, *columns = heads.rows(y_pred)
  dims = loc.shape[-1]
  labels = heads.read_labels(y_true, y_pred, num_classes, ignore_class)
  logits, log_jacobian = labels.logits(t, loc.dtype)
  constant = log_jacobian + 0.5 * dims * math.log(2. * math.pi)
  return labels.finish(normal.energy(logits - loc, diag, *columns) + constant)


@keras.saving.register_keras_serializable(package='ln_tfp')
class NegativeLogLikelihood(base.LabelLoss):
  """`nll` as a Keras loss.

  Args:
    label_smoothing: As in `ln_tfp.nll`.
    num_classes: As in `ln_tfp.nll`.
    ignore_class: Labels that are this number neither count nor fail.
    reduction: As of every Keras loss.
    name: As of every Keras loss.
    dtype: As of every Keras loss.
  """

  num_event_dims = 2

  def __init__(self,
               label_smoothing: float = 0.01,
               num_classes: int | None = None,
               reduction: str | None = 'sum_over_batch_size',
               name: str = 'nll',
               dtype=None,
               ignore_class: int | None = None):
    super().__init__(ignore_class, reduction, name, dtype)
    self.label_smoothing = checks.between(
        'label_smoothing', label_smoothing, 0, 1, open_below=True)
    self.num_classes = heads.check_num_classes(num_classes)

  def call(self, y_true, y_pred):
    return _nll(y_true, y_pred, self.label_smoothing, self.num_classes,
                self.ignore_class)

  def arguments(self) -> dict[str, Any]:
    return {'label_smoothing': self.label_smoothing,
            'num_classes': self.num_classes}


@keras.saving.register_keras_serializable(package='ln_tfp')
class _Function(NegativeLogLikelihood):
  """`nll` itself: a function that is a Keras loss, too.

  Keras tells the sample weights to loss objects alone, as their third
  argument. To a plain function an invalid label of weight zero would look like
  any other.
  """

  def __init__(self, **config):
    super().__init__(**config)
    functools.update_wrapper(self, _nll, updated=())
    self.__name__ = self.__qualname__ = 'nll'

  def __call__(self, y_true, y_pred, *arguments, **keywords):
    if len(arguments) == 1 and not keywords and _are_weights(arguments[0]):
      return super().__call__(y_true, y_pred, *arguments)
    return _nll(y_true, y_pred, *arguments, **keywords)

  def __repr__(self):
    return '<ln_tfp.nll>'


nll = _Function()
# Models that were saved when `nll` was a plain function know it by this name.
keras.saving.get_custom_objects()['ln_tfp>nll'] = nll


def _are_weights(argument):
  """Whether Keras gave this third argument, and not a user a smoothing."""
  return argument is None or np.ndim(argument) > 0


def _restore_squeezed(y_true, y_pred, num_classes):
  """Undoes what Keras does to a function's arguments when `D = 1`.

  Before it calls a loss that is a plain function, Keras squeezes predictions
  `[B, 2 + R, 1]` if the labels are `[B, 1]` or `[B, 2]`.
  """
  y_pred = ops.convert_to_tensor(y_pred)
  if num_classes == 2 and len(y_pred.shape) == len(y_true.shape):
    return ops.expand_dims(y_pred, axis=-1)
  return y_pred

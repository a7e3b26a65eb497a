"""The negative log-likelihood of the Logistic-Normal distribution."""

import math

import keras
import tensorflow as tf
import tensorflow_probability as tfp

from ln_tfp import heads
from ln_tfp import normal


@keras.saving.register_keras_serializable(package='ln_tfp')
def nll(y_true, y_pred, label_smoothing=0.01, num_classes=None):
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
      class pass `D + 1`.

  Returns:
    Float tensor of shape `[...]`.

  Raises:
    ValueError: If the shapes do not fit.
    tf.errors.InvalidArgumentError: If a label is not one of the classes. Where
      XLA drops the assertion, its loss and gradient are NaN.
  """
  if not 0 < label_smoothing <= 1:
    raise ValueError('Argument `label_smoothing` must be in (0, 1]. Received: '
                     f'label_smoothing={label_smoothing}.')
  y_true = tf.convert_to_tensor(y_true)
  if hasattr(y_pred, 'log_prob'):
    num_classes = num_classes or y_pred.event_shape[-1]
    labels = Labels(y_true, y_pred.batch_shape, y_pred.event_shape[-1] - 1,
                    num_classes)
    loss = -y_pred.log_prob(
        labels.smoothed(label_smoothing, y_pred.dtype))
    return labels.poison(loss)
  y_pred = restore_squeezed(y_true, y_pred, num_classes)
  loc, diag, *columns = heads.rows(y_pred)
  dims = loc.shape[-1]
  labels = Labels(y_true, loc.shape[:-1], dims, num_classes)
  logits, log_jacobian = labels.logits(label_smoothing, loc.dtype)
  constant = log_jacobian + 0.5 * dims * math.log(2. * math.pi)
  return labels.poison(normal.energy(logits - loc, diag, *columns) + constant)


@keras.saving.register_keras_serializable(package='ln_tfp')
class NegativeLogLikelihood(keras.losses.Loss):
  """`nll` as a Keras loss; see there for the arguments."""

  def __init__(self,
               label_smoothing=0.01,
               num_classes=None,
               reduction='sum_over_batch_size',
               name='nll',
               dtype=None):
    super().__init__(name=name, reduction=reduction, dtype=dtype)
    self.label_smoothing = label_smoothing
    self.num_classes = num_classes

  def call(self, y_true, y_pred):
    return nll(y_true, y_pred, self.label_smoothing, self.num_classes)

  def get_config(self):
    return {
        **super().get_config(),
        'label_smoothing': self.label_smoothing,
        'num_classes': self.num_classes,
    }


class Labels:
  """Labels or soft labels, told apart by shape, checked, and made targets.

  Args:
    y_true: Tensor of shape `[...]`, `[..., 1]`, `[..., K]` or `[..., D + 1]`.
    batch_shape: Static shape `[...]` of the predictions.
    dims: Dimension D of the logits.
    num_classes: K: D (or `None`) with the dummy class, `D + 1` without.
  """

  def __init__(self, y_true, batch_shape, dims, num_classes):
    self._dims = dims
    self._dummy = heads.has_dummy_class(dims, num_classes)
    self._num_classes = dims if self._dummy else dims + 1
    extra = None
    if y_true.shape.rank is not None:
      extra = y_true.shape.rank - batch_shape.rank
      if not y_true.shape[:batch_shape.rank].is_compatible_with(batch_shape):
        extra = None
    self.is_soft = extra == 1 and y_true.shape[-1] in (
        self._num_classes, dims + 1)
    if not (extra == 0 or self.is_soft or
            extra == 1 and y_true.shape[-1] == 1):
      raise ValueError(
          'Argument `y_true` must hold labels of shape '
          f'{list(batch_shape)} or {[*batch_shape, 1]}, or soft labels of '
          f'shape {[*batch_shape, self._num_classes]}. Received: a tensor of '
          f'shape {y_true.shape}.')
    if extra == 1 and not self.is_soft:
      y_true = tf.squeeze(y_true, axis=-1)
    check = self._check_soft if self.is_soft else self._check_whole
    self._y_true, self._valid = check(y_true)

  def _check_whole(self, y_true):
    """Returns integer labels and which of them are classes."""
    labels = tf.cast(y_true, tf.int32)
    valid = (labels >= 0) & (labels < self._num_classes)
    if y_true.dtype.is_floating:
      valid &= tf.equal(tf.cast(labels, y_true.dtype), y_true)
    check = _require(
        valid, y_true, 'Argument `y_true` must hold whole labels from 0 to '
        f'{self._num_classes - 1}. Received:')
    with tf.control_dependencies([check]):
      return tf.identity(labels), valid

  def _check_soft(self, y_true):
    """Returns distributions over `D + 1` classes and which of them are."""
    if not y_true.dtype.is_floating:
      y_true = tf.cast(y_true, tf.float32)
    total = tf.reduce_sum(y_true, axis=-1)
    valid = tf.reduce_all(y_true >= 0, axis=-1) & (
        (tf.abs(total - 1.) < 1e-3) | tf.equal(total, 0.))
    check = _require(
        valid, y_true, 'Argument `y_true` must hold labels, or soft labels '
        'that are not negative and sum to one. Received:')
    missing = self._dims + 1 - y_true.shape[-1]
    padding = [[0, 0]] * (y_true.shape.rank - 1) + [[0, missing]]
    with tf.control_dependencies([check]):
      return tf.pad(y_true, padding), valid

  def classes(self):
    """Returns the labels, or the likeliest class of soft labels, int32."""
    if self.is_soft:
      return tf.argmax(self._y_true, axis=-1, output_type=tf.int32)
    return self._y_true

  def distribution(self, dtype):
    """Returns the labels as distributions over `D + 1` classes."""
    if self.is_soft:
      return tf.cast(self._y_true, dtype)
    return tf.one_hot(self._y_true, self._dims + 1, dtype=dtype)

  def smoothed(self, label_smoothing, dtype):
    """Returns the target `q` in the simplex of `D + 1` classes."""
    uniform = label_smoothing / (self._dims + 1)
    return (1. - label_smoothing) * self.distribution(dtype) + uniform

  def logits(self, label_smoothing, dtype):
    """Returns `S_C^-1(q)` and the log Jacobian of `S_C` there.

    For labels both are known in advance: with the dummy class the logits are
    `C` at the label and 0 elsewhere (the paper's Appendix B.5).
    """
    if self.is_soft:
      bijector = tfp.bijectors.SoftmaxCentered()
      logits = bijector.inverse(self.smoothed(label_smoothing, dtype))
      return logits, bijector.forward_log_det_jacobian(logits, event_ndims=1)
    size, t = self._dims + 1, label_smoothing
    high = math.log(((1. - t) * size + t) / t)
    logits = tf.one_hot(self._y_true, self._dims,
                        on_value=tf.constant(high, dtype),
                        off_value=tf.constant(0., dtype))
    if not self._dummy:
      is_last = tf.equal(self._y_true, self._dims)
      logits -= high * tf.cast(is_last, dtype)[..., tf.newaxis]
    return logits, size * math.log(t / size) + high + 0.5 * math.log(size)

  def poison(self, loss):
    """Makes the loss of invalid labels NaN, and its gradient with it.

    XLA drops assertions; nothing shall train on such labels in silence.
    """
    nan = tf.constant(float('nan'), loss.dtype)
    return loss * tf.where(self._valid, tf.ones([], loss.dtype), nan)


def restore_squeezed(y_true, y_pred, num_classes):
  """Undoes what Keras does to a function's arguments when `D = 1`.

  Before it calls a loss that is a plain function, Keras squeezes predictions
  `[B, 2 + R, 1]` if the labels are `[B, 1]` or `[B, 2]`.
  """
  y_pred = tf.convert_to_tensor(y_pred)
  if num_classes == 2 and y_pred.shape.rank == y_true.shape.rank:
    return y_pred[..., tf.newaxis]
  return y_pred


def _require(valid, values, message):
  """Returns a check that fails and shows one of the values if one is invalid.

  What the failure shows is computed in its own branch, and by a gather: a slice
  at a computed position would make XLA compile anew for every batch.
  """
  def fail():
    position = tf.argmin(tf.cast(tf.reshape(valid, [-1]), tf.int32))
    rows = tf.reshape(values, [-1, *values.shape[valid.shape.rank:]])
    check = tf.raw_ops.Assert(
        condition=False, data=[message, tf.gather(rows, position)],
        summarize=10)
    with tf.control_dependencies([] if check is None else [check]):
      return tf.constant(False)

  return tf.cond(tf.reduce_all(valid), lambda: tf.constant(True), fail)

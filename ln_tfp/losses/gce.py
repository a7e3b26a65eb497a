"""Generalised cross entropy (Zhang and Sabuncu, 2018)."""

import math

import keras
from keras import ops

from ln_tfp import checks
from ln_tfp.losses import base

_LOG_MIN_PROBABILITY = math.log(1e-7)


def generalized_cross_entropy(
    y_true: base.Tensor, y_pred: base.Tensor, q: float = .7,
    ignore_class: int | None = None, from_logits: bool = True) -> base.Tensor:
  """Returns `(1 - p_y^q) / q`, `[...]`; see `GeneralizedCrossEntropy`.

  Args:
    y_true: Labels, see `ln_tfp.labels`; for soft ones it is the mean over them.
    y_pred: Logits `[..., K]`.
    q: In (0, 1].
    ignore_class: Labels that do not count.
    from_logits: False if `y_pred` are probabilities.
  """
  q = checks.between('q', q, 0, 1, open_below=True)
  labels, logits = base.read_logits(y_true, y_pred, from_logits, ignore_class)
  if not labels.is_soft:
    log_p = -ops.sparse_categorical_crossentropy(
        labels.classes(), logits, from_logits=True)
    return labels.finish(_transform(log_p, q))
  values = _transform(ops.log_softmax(logits), q)
  target = labels.distribution(logits.dtype)
  return labels.finish(ops.sum(target * values, axis=-1))


def _transform(log_p, q):
  log_p = ops.maximum(log_p, _LOG_MIN_PROBABILITY)
  # expm1 keeps the digits that 1 - p^q loses for small q.
  return -ops.expm1(q * log_p) / q


@keras.saving.register_keras_serializable(package='ln_tfp')
class GeneralizedCrossEntropy(base.LabelLoss):
  """`(1 - p_y^q) / q`, without truncation; p_y is clipped to [1e-7, 1].

  From cross entropy (q -> 0) to the mean absolute error (q = 1). The clipping
  means that an example with p_y < 1e-7 has no gradient.

  ```python
  model = keras.Sequential([backbone, keras.layers.Dense(10, dtype='float32')])
  model.compile('adam', loss=ln_tfp.losses.GeneralizedCrossEntropy(q=.7))
  ```

  Args:
    q: In (0, 1].
    ignore_class: Labels that are this number neither count nor fail.
    from_logits: False if the model ends in a softmax.
    reduction: As of every Keras loss.
    name: As of every Keras loss.
    dtype: As of every Keras loss.
  """

  def __init__(self, q: float = .7, ignore_class: int | None = None,
               from_logits: bool = True,
               reduction: str | None = 'sum_over_batch_size',
               name: str = 'generalized_cross_entropy', dtype=None):
    super().__init__(ignore_class, reduction, name, dtype)
    self.q = checks.between('q', q, 0, 1, open_below=True)
    self.from_logits = from_logits

  def call(self, y_true, y_pred):
    return generalized_cross_entropy(
        y_true, y_pred, self.q, self.ignore_class, self.from_logits)

  def arguments(self):
    return {'q': self.q, 'from_logits': self.from_logits}

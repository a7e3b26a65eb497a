"""Bounded relatives of cross entropy: asymmetric and by Taylor's series.

Asymmetric generalised cross entropy (Zhou et al., 2021) and Taylor cross
entropy (Feng et al., 2020). For soft labels each is the mean over them.
"""

import keras
from keras import ops

from ln_tfp import checks
from ln_tfp.losses import base


def asymmetric_gce(
    y_true: base.Tensor, y_pred: base.Tensor, a: float = .6, q: float = .6,
    ignore_class: int | None = None, from_logits: bool = True) -> base.Tensor:
  """Returns `((a + 1)^q - (a + p_y)^q) / q`, `[...]`; see `AsymmetricGCE`.

  Args:
    y_true: Labels, see `ln_tfp.labels`.
    y_pred: Logits `[..., K]`.
    a: Positive.
    q: Positive.
    ignore_class: Labels that do not count.
    from_logits: False if `y_pred` are probabilities.
  """
  labels, rows, log_p = base.log_probability(
      y_true, y_pred, from_logits, ignore_class)
  values = ((a + 1.)**q - (a + ops.exp(log_p))**q) / q
  return labels.finish(ops.sum(rows * values, axis=-1))


def taylor_cross_entropy(
    y_true: base.Tensor, y_pred: base.Tensor, order: int = 2,
    ignore_class: int | None = None, from_logits: bool = True) -> base.Tensor:
  """Returns `sum_i (1 - p_y)^i / i`, `[...]`; see `TaylorCrossEntropy`.

  Args:
    y_true: Labels, see `ln_tfp.labels`.
    y_pred: Logits `[..., K]`.
    order: The last i.
    ignore_class: Labels that do not count.
    from_logits: False if `y_pred` are probabilities.
  """
  labels, rows, log_p = base.log_probability(
      y_true, y_pred, from_logits, ignore_class)
  rest = -ops.expm1(log_p)  # 1 - p
  values = ops.zeros_like(rest)
  for i in range(order, 0, -1):  # Horner's scheme
    values = rest * (1. / i + values)
  return labels.finish(ops.sum(rows * values, axis=-1))


@keras.saving.register_keras_serializable(package='ln_tfp')
class AsymmetricGCE(base.LogitsLoss):
  """`((a + 1)^q - (a + p_y)^q) / q` (AGCE).

  For a -> 0 it is generalised cross entropy. The authors' values: a = q = .6
  on CIFAR, a = 4 and q = .2 on MNIST.

  Args:
    a: Positive.
    q: Positive.
    ignore_class: Labels that are this number neither count nor fail.
    from_logits: False if the model ends in a softmax.
    reduction: As of every Keras loss.
    name: As of every Keras loss.
    dtype: As of every Keras loss.
  """

  function = staticmethod(asymmetric_gce)

  def __init__(self, a: float = .6, q: float = .6,
               ignore_class: int | None = None, from_logits: bool = True,
               reduction: str | None = 'sum_over_batch_size',
               name: str = 'asymmetric_gce', dtype=None):
    super().__init__(
        {'a': checks.positive('a', a), 'q': checks.positive('q', q)},
        ignore_class, from_logits, reduction, name, dtype)


@keras.saving.register_keras_serializable(package='ln_tfp')
class TaylorCrossEntropy(base.LogitsLoss):
  """`sum_i (1 - p_y)^i / i` for i from 1 to `order`.

  The series of cross entropy around p_y = 1: with order 1 it is half the mean
  absolute error, for order -> infinity cross entropy.

  Args:
    order: At least 1; the authors take 2 to 6.
    ignore_class: Labels that are this number neither count nor fail.
    from_logits: False if the model ends in a softmax.
    reduction: As of every Keras loss.
    name: As of every Keras loss.
    dtype: As of every Keras loss.
  """

  function = staticmethod(taylor_cross_entropy)

  def __init__(self, order: int = 2, ignore_class: int | None = None,
               from_logits: bool = True,
               reduction: str | None = 'sum_over_batch_size',
               name: str = 'taylor_cross_entropy', dtype=None):
    super().__init__(
        {'order': checks.whole('order', order, 1)}, ignore_class, from_logits,
        reduction, name, dtype)

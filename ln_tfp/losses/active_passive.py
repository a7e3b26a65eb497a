"""Sums of a loss that fits and a bounded one that resists wrong labels.

Symmetric cross entropy (Wang et al., 2019), normalised with reverse cross
entropy (Ma et al., 2020), and active negative losses (Ye et al., 2023). For
soft labels each loss is the mean over them.
"""

import math

import keras
from keras import ops

from ln_tfp import checks
from ln_tfp.losses import base

_REVERSE = -math.log(1e-4)  # labels are clipped at 1e-4 before their logarithm
_NEGATIVE = -math.log(1e-7)  # probabilities, before that of the negative loss


def symmetric_cross_entropy(
    y_true: base.Tensor, y_pred: base.Tensor, alpha: float = .1,
    beta: float = 1., ignore_class: int | None = None,
    from_logits: bool = True) -> base.Tensor:
  """Returns `alpha CE + beta RCE`, `[...]`; see `SymmetricCrossEntropy`.

  Args:
    y_true: Labels, see `ln_tfp.labels`.
    y_pred: Logits `[..., K]`.
    alpha: Weight of the cross entropy.
    beta: Weight of the reverse cross entropy.
    ignore_class: Labels that do not count.
    from_logits: False if `y_pred` are probabilities.
  """
  labels, rows, log_p = base.log_probability(
      y_true, y_pred, from_logits, ignore_class)
  return labels.finish(
      beta * _reverse(rows, log_p) - alpha * ops.sum(rows * log_p, axis=-1))


def normalized_reverse_cross_entropy(
    y_true: base.Tensor, y_pred: base.Tensor, alpha: float = 1.,
    beta: float = 1., ignore_class: int | None = None,
    from_logits: bool = True) -> base.Tensor:
  """Returns `alpha NCE + beta RCE`; see `NormalizedReverseCrossEntropy`.

  Args:
    y_true: Labels, see `ln_tfp.labels`.
    y_pred: Logits `[..., K]`.
    alpha: Weight of the normalised cross entropy.
    beta: Weight of the reverse cross entropy.
    ignore_class: Labels that do not count.
    from_logits: False if `y_pred` are probabilities.
  """
  labels, rows, log_p = base.log_probability(
      y_true, y_pred, from_logits, ignore_class)
  return labels.finish(
      alpha * _normalized(rows, log_p) + beta * _reverse(rows, log_p))


def active_negative_cross_entropy(
    y_true: base.Tensor, y_pred: base.Tensor, alpha: float = 5.,
    beta: float = 5., ignore_class: int | None = None,
    from_logits: bool = True) -> base.Tensor:
  """Returns `alpha NCE + beta NNCE`; see `ActiveNegativeCrossEntropy`.

  Args:
    y_true: Labels, see `ln_tfp.labels`.
    y_pred: Logits `[..., K]`.
    alpha: Weight of the normalised cross entropy.
    beta: Weight of the normalised negative cross entropy.
    ignore_class: Labels that do not count.
    from_logits: False if `y_pred` are probabilities.
  """
  labels, rows, log_p = base.log_probability(
      y_true, y_pred, from_logits, ignore_class)
  above = ops.maximum(log_p, -_NEGATIVE) + _NEGATIVE
  negative = 1. - ops.sum(rows * above, axis=-1) / ops.sum(above, axis=-1)
  return labels.finish(alpha * _normalized(rows, log_p) + beta * negative)


def _normalized(rows, log_p):
  """`log p_y / sum_k log p_k`, in [0, 1]."""
  return ops.sum(rows * log_p, axis=-1) / ops.sum(log_p, axis=-1)


def _reverse(rows, log_p):
  return _REVERSE * (1. - ops.sum(rows * ops.exp(log_p), axis=-1))


@keras.saving.register_keras_serializable(package='ln_tfp')
class SymmetricCrossEntropy(base.LogitsLoss):
  """`alpha CE + beta RCE` with the reverse cross entropy `9.21 (1 - p_y)`.

  The reverse cross entropy takes the prediction as the truth and the label,
  clipped at 1e-4, as the prediction. The authors' values: (.1, 1) on CIFAR-10,
  (6, .1) on CIFAR-100, (.01, 1) on MNIST.

  Args:
    alpha: Weight of the cross entropy.
    beta: Weight of the reverse cross entropy; 0 leaves cross entropy.
    ignore_class: Labels that are this number neither count nor fail.
    from_logits: False if the model ends in a softmax.
    reduction: As of every Keras loss.
    name: As of every Keras loss.
    dtype: As of every Keras loss.
  """

  function = staticmethod(symmetric_cross_entropy)

  def __init__(self, alpha: float = .1, beta: float = 1.,
               ignore_class: int | None = None, from_logits: bool = True,
               reduction: str | None = 'sum_over_batch_size',
               name: str = 'symmetric_cross_entropy', dtype=None):
    super().__init__(_weights(alpha, beta), ignore_class, from_logits,
                     reduction, name, dtype)


@keras.saving.register_keras_serializable(package='ln_tfp')
class NormalizedReverseCrossEntropy(base.LogitsLoss):
  """`alpha NCE + beta RCE` with `NCE = log p_y / sum_k log p_k`.

  RCE is `9.21 (1 - p_y)`. The authors' values: (1, 1) on CIFAR-10, (10, .1) on
  CIFAR-100, (1, 10) on MNIST.

  Args:
    alpha: Weight of the normalised cross entropy.
    beta: Weight of the reverse cross entropy.
    ignore_class: Labels that are this number neither count nor fail.
    from_logits: False if the model ends in a softmax.
    reduction: As of every Keras loss.
    name: As of every Keras loss.
    dtype: As of every Keras loss.
  """

  function = staticmethod(normalized_reverse_cross_entropy)

  def __init__(self, alpha: float = 1., beta: float = 1.,
               ignore_class: int | None = None, from_logits: bool = True,
               reduction: str | None = 'sum_over_batch_size',
               name: str = 'normalized_reverse_cross_entropy', dtype=None):
    super().__init__(_weights(alpha, beta), ignore_class, from_logits,
                     reduction, name, dtype)


@keras.saving.register_keras_serializable(package='ln_tfp')
class ActiveNegativeCrossEntropy(base.LogitsLoss):
  """`alpha NCE + beta NNCE` (ANL-CE).

  `NCE = log p_y / sum_k log p_k`, and `NNCE = 1 - (A + log p_y) / sum_k (A +
  log p_k)` with `A = -log 1e-7` and p clipped at 1e-7. It belongs together
  with an L1 penalty on the weights, which is for the layers to have:
  `kernel_regularizer=keras.regularizers.L1(5e-5)`. The authors' values of
  (alpha, beta, penalty): (5, 5, 5e-5) on CIFAR-10, (10, 1, 5e-7) on CIFAR-100,
  (1, 1, 1e-6) on MNIST.

  Args:
    alpha: Weight of the normalised cross entropy.
    beta: Weight of the normalised negative cross entropy.
    ignore_class: Labels that are this number neither count nor fail.
    from_logits: False if the model ends in a softmax.
    reduction: As of every Keras loss.
    name: As of every Keras loss.
    dtype: As of every Keras loss.
  """

  function = staticmethod(active_negative_cross_entropy)

  def __init__(self, alpha: float = 5., beta: float = 5.,
               ignore_class: int | None = None, from_logits: bool = True,
               reduction: str | None = 'sum_over_batch_size',
               name: str = 'active_negative_cross_entropy', dtype=None):
    super().__init__(_weights(alpha, beta), ignore_class, from_logits,
                     reduction, name, dtype)


def _weights(alpha, beta):
  return {'alpha': checks.not_negative('alpha', alpha),
          'beta': checks.not_negative('beta', beta)}

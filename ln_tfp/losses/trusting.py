"""Cross entropies that trust the network's own prediction in part.

Bootstrapping (Reed et al., 2015) and the eps-softmax (Wang et al., 2024). For
soft labels each is the mean over them.
"""

import keras
from keras import ops

from ln_tfp import checks
from ln_tfp.losses import base

_KINDS = ('soft', 'hard')
_MIN_PROBABILITY = 1e-8


def bootstrapping(
    y_true: base.Tensor, y_pred: base.Tensor, trust: float = .05,
    kind: str = 'soft', ignore_class: int | None = None,
    from_logits: bool = True) -> base.Tensor:
  """Returns the cross entropy to `(1 - t) y + t p`; see `Bootstrapping`.

  Args:
    y_true: Labels, see `ln_tfp.labels`.
    y_pred: Logits `[..., K]`.
    trust: t.
    kind: 'soft' for p, 'hard' for the likeliest class.
    ignore_class: Labels that do not count.
    from_logits: False if `y_pred` are probabilities.
  """
  labels, rows, log_p = base.log_probability(
      y_true, y_pred, from_logits, ignore_class)
  own = ops.exp(log_p) if kind == 'soft' else _likeliest(log_p)
  target = (1. - trust) * rows + trust * ops.stop_gradient(own)
  return labels.finish(-ops.sum(target * log_p, axis=-1))


def epsilon_softmax(
    y_true: base.Tensor, y_pred: base.Tensor, alpha: float = .01,
    beta: float = 5., m: float = 1e5, ignore_class: int | None = None,
    from_logits: bool = True) -> base.Tensor:
  """Returns `alpha CE(p') + beta 2 (1 - p_y)`; see `EpsilonSoftmax`.

  Args:
    y_true: Labels, see `ln_tfp.labels`.
    y_pred: Logits `[..., K]`.
    alpha: Weight of the cross entropy of p'.
    beta: Weight of the mean absolute error.
    m: What the likeliest class gets on top.
    ignore_class: Labels that do not count.
    from_logits: False if `y_pred` are probabilities.
  """
  labels, rows, log_p = base.log_probability(
      y_true, y_pred, from_logits, ignore_class)
  p = ops.exp(log_p)
  # (p + m) / (1 + m) = 1 - (1 - p) / (1 + m), which keeps the digits.
  log_others = ops.log(ops.maximum(p / (1. + m), _MIN_PROBABILITY))
  log_likeliest = ops.log1p(ops.expm1(log_p) / (1. + m))
  values = ops.where(_likeliest(log_p) > 0, log_likeliest, log_others)
  return labels.finish(ops.sum(
      rows * (2. * beta * (1. - p) - alpha * values), axis=-1))


def _likeliest(log_p):
  return ops.one_hot(
      ops.argmax(log_p, axis=-1), log_p.shape[-1], dtype=log_p.dtype)


@keras.saving.register_keras_serializable(package='ln_tfp')
class Bootstrapping(base.LogitsLoss):
  """Cross entropy to `(1 - t) y + t p` ('soft') or to the likeliest class.

  'hard' has `onehot(argmax p)` in place of p. The gradient does not pass
  through the target. The authors' values: t = .05 'soft', t = .2 'hard'.

  Args:
    trust: t, in [0, 1]; 0 is cross entropy.
    kind: 'soft' or 'hard'.
    ignore_class: Labels that are this number neither count nor fail.
    from_logits: False if the model ends in a softmax.
    reduction: As of every Keras loss.
    name: As of every Keras loss.
    dtype: As of every Keras loss.
  """

  function = staticmethod(bootstrapping)

  def __init__(self, trust: float = .05, kind: str = 'soft',
               ignore_class: int | None = None, from_logits: bool = True,
               reduction: str | None = 'sum_over_batch_size',
               name: str = 'bootstrapping', dtype=None):
    super().__init__(
        {'trust': checks.between('trust', trust, 0, 1),
         'kind': checks.one_of('kind', kind, _KINDS)},
        ignore_class, from_logits, reduction, name, dtype)


@keras.saving.register_keras_serializable(package='ln_tfp')
class EpsilonSoftmax(base.LogitsLoss):
  """`alpha CE(p') + beta 2 (1 - p_y)` with `p' = (p + m likeliest) / (1 + m)`.

  `likeliest` is `onehot(argmax p)`, and p' is clipped at 1e-8: the cross
  entropy fits what the network believes anyway. The authors' values on
  CIFAR-10 of (alpha, beta, m): (.01, 5, 1e5) for symmetric noise, (.02, 5, 1e3)
  for asymmetric noise.

  Args:
    alpha: Weight of the cross entropy of p'.
    beta: Weight of the mean absolute error.
    m: What the likeliest class gets on top; 0 leaves the softmax.
    ignore_class: Labels that are this number neither count nor fail.
    from_logits: False if the model ends in a softmax.
    reduction: As of every Keras loss.
    name: As of every Keras loss.
    dtype: As of every Keras loss.
  """

  function = staticmethod(epsilon_softmax)

  def __init__(self, alpha: float = .01, beta: float = 5., m: float = 1e5,
               ignore_class: int | None = None, from_logits: bool = True,
               reduction: str | None = 'sum_over_batch_size',
               name: str = 'epsilon_softmax', dtype=None):
    super().__init__(
        {'alpha': checks.not_negative('alpha', alpha),
         'beta': checks.not_negative('beta', beta),
         'm': checks.not_negative('m', m)},
        ignore_class, from_logits, reduction, name, dtype)

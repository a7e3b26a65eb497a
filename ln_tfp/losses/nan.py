"""Noise against noise (Chen et al., 2020)."""

import keras
from keras import ops

from ln_tfp import backend
from ln_tfp import checks
from ln_tfp.losses import base

GRADIENTS = ('fused', 'log_softmax')


def noise_against_noise(
    y_true: base.Tensor, y_pred: base.Tensor, sigma: float = .5, *,
    seed, step=0, ids: base.Tensor | None = None, gradient: str = 'fused',
    ignore_class: int | None = None, from_logits: bool = True) -> base.Tensor:
  """Returns the cross entropy to a noisy target; see `NoiseAgainstNoise`.

  A pure function: the noise of an example follows from (seed, step, id).

  Args:
    y_true: Labels, see `ln_tfp.labels`.
    y_pred: Logits `[..., K]`.
    sigma: Standard deviation of the noise.
    seed: Integer or scalar integer tensor.
    step: Integer or scalar integer tensor, the number of the training step.
    ids: Integers `[...]`, the examples' identities; by default their places.
    gradient: 'fused' or 'log_softmax'.
    ignore_class: Labels that do not count.
    from_logits: False if `y_pred` are probabilities.

  Returns:
    Float tensor `[...]`.
  """
  sigma = checks.not_negative('sigma', sigma)
  checks.one_of('gradient', gradient, GRADIENTS)
  labels, logits = base.read_logits(y_true, y_pred, from_logits, ignore_class)
  if ids is None:
    ids = _places(logits)
  noise = backend.normal(seed, step, ops.reshape(ids, [-1]), logits.shape[-1])
  noise = ops.cast(ops.reshape(noise, ops.shape(logits)), logits.dtype)
  target = labels.distribution(logits.dtype) + sigma * noise
  loss = -ops.sum(target * ops.log_softmax(logits), axis=-1)
  if gradient == 'fused':  # nothing to the value, (1 - sum(target)) p to it
    rest = (1. - ops.sum(target, axis=-1)) * ops.logsumexp(logits, axis=-1)
    loss += rest - ops.stop_gradient(rest)
  return labels.finish(loss)


@keras.saving.register_keras_serializable(package='ln_tfp')
class NoiseAgainstNoise(base.RandomLoss):
  """Cross entropy to `onehot + sigma * N(0, I)`, redrawn at every step.

  The target does not sum to one, and the usual ways to write the loss then
  differ in their gradient: TensorFlow's fused op has `p - target`, the sum
  over `target * log_softmax` has `sum(target) * p - target`. Both are written
  out here, since TensorFlow switches between them with op determinism.

  Every replica of a `tf.distribute` strategy draws its own noise. Keras does
  not tell a loss whether it is training: `evaluate` draws noise, too.

  Args:
    sigma: Standard deviation of the noise; 0 is cross entropy.
    gradient: 'fused' for `p - target`, which gave the paper's numbers, or
      'log_softmax' for the gradient of the loss as a function.
    seed: Integer; `None` takes one from Keras.
    ignore_class: Labels that are this number neither count nor fail.
    from_logits: False if the model ends in a softmax.
    reduction: As of every Keras loss.
    name: As of every Keras loss.
    dtype: As of every Keras loss.
  """

  def __init__(self, sigma: float = .5, gradient: str = 'fused',
               seed: int | None = None, ignore_class: int | None = None,
               from_logits: bool = True,
               reduction: str | None = 'sum_over_batch_size',
               name: str = 'noise_against_noise', dtype=None):
    super().__init__(seed, ignore_class=ignore_class, reduction=reduction,
                     name=name, dtype=dtype)
    self.sigma = checks.not_negative('sigma', sigma)
    self.gradient = checks.one_of('gradient', gradient, GRADIENTS)
    self.from_logits = from_logits

  def call(self, y_true, y_pred):
    seed, step = self.next_seed(y_pred)
    # Examples have no names here: they are told apart by replica and place.
    return noise_against_noise(
        y_true, y_pred, self.sigma, seed=seed, step=step,
        ids=backend.first_id() + _places(y_pred), gradient=self.gradient,
        ignore_class=self.ignore_class, from_logits=self.from_logits)

  def arguments(self):
    return {'sigma': self.sigma, 'gradient': self.gradient, 'seed': self.seed,
            'from_logits': self.from_logits}


def _places(logits):
  """Returns 0, 1, ... for the examples of a batch."""
  return backend.places(ops.size(logits[..., 0]))

"""Noise against noise (Chen et al., 2020)."""

import dataclasses
from typing import ClassVar

import tensorflow as tf

from experiments.methods import base
from ln_tfp import random


@dataclasses.dataclass(frozen=True)
class NAN(base.LogitsMethod):
  """Cross entropy to `onehot + sigma * N(0, I)`, redrawn each step.

  The target does not sum to one, and the usual ways to write the loss then
  differ in their gradient: TensorFlow's fused op has `p - target`, the sum
  over `target * log_softmax` has `sum(target) * p - target`. Both are written
  out here, since TensorFlow switches between them with op determinism.

  Attributes:
    sigma: Standard deviation of the noise; 0 is cross entropy.
    gradient: 'fused' for `p - target`, which gave the paper's numbers, or
      'log_softmax' for the gradient of the loss as a function.
  """

  name: ClassVar[str] = 'NAN'
  is_random: ClassVar[bool] = True
  sigma: float = 0.5
  gradient: str = 'fused'

  def __post_init__(self):
    if not 0 <= self.sigma < float('inf'):
      raise ValueError(
          'Argument `sigma` must be finite and not negative. '
          f'Received: sigma={self.sigma}.')
    if self.gradient not in ('fused', 'log_softmax'):
      raise ValueError(
          "Argument `gradient` must be 'fused' or 'log_softmax'. "
          f'Received: gradient={self.gradient!r}.')

  def loss(self, labels, outputs, *, num_classes, seed, step, ids):
    noise = random.tf_normal(seed, step, ids, num_classes)
    target = base.one_hot(labels, num_classes) + self.sigma * noise
    if self.gradient == 'fused':
      mass = tf.ones_like(target[:, :1])
    else:
      mass = tf.reduce_sum(target, axis=-1, keepdims=True)

    @tf.custom_gradient
    def cross_entropy(logits):
      log_p = tf.nn.log_softmax(logits)
      return -tf.reduce_sum(target * log_p, axis=-1), lambda upstream: (
          upstream[:, tf.newaxis] * (mass * tf.exp(log_p) - target))

    return cross_entropy(outputs)

  @classmethod
  def grid(cls, dataset):
    del dataset  # the same everywhere
    for sigma in (.1, .2, .5, .75, 1.):
      yield cls(sigma=sigma)

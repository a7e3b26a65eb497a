"""Co-teaching (Han et al., 2018)."""

import dataclasses
from typing import ClassVar

from etils import epy

from experiments.methods import base

with epy.lazy_imports():  # flags are parsed before TensorFlow is imported
  import numpy as np
  import tensorflow as tf

  from ln_tfp import checks
  from ln_tfp import labels as labels_lib


@dataclasses.dataclass(frozen=True)
class CoTeaching(base.LogitsMethod):
  """Two networks; each trains on what the other one finds plausible.

  Of each batch a network takes the examples of which the other one's cross
  entropy is smallest, all but the share R(e). R rises linearly to `noise_rate`
  over the first epochs. The paper knows the rate of the noise; the grid here
  does not, but searches for it like for other hyperparameters. The first
  network is the one that is reported.

  Attributes:
    noise_rate: The final R.
    ramp_epochs: How long R rises.
  """

  name: ClassVar[str] = 'co-teaching'
  noise_rate: float = .2
  ramp_epochs: float = 10.

  def __post_init__(self):
    checks.between('noise_rate', self.noise_rate, 0, 1)
    checks.positive('ramp_epochs', self.ramp_epochs)

  def needs(self):
    return base.Needs(auxiliary=base.Twin())

  def loss(self, labels, outputs, context):
    labels = labels_lib.Labels(
        labels, outputs.shape[:-1], context.num_classes)
    cross_entropy = lambda logits: (
        tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels.classes(), logits))
    counted = context.batch.counted(context.ids)
    doubts = context.batch.gather(
        tf.where(counted, cross_entropy(context.auxiliary), np.inf))
    total = tf.reduce_sum(tf.cast(
        context.batch.gather(counted), outputs.dtype))
    rate = self.noise_rate * tf.minimum(
        context.epoch / self.ramp_epochs, 1.)
    kept = tf.maximum(tf.floor((1. - rate) * total), 1.)
    ranks = tf.argsort(tf.argsort(doubts, stable=True))
    chosen = context.batch.own(tf.cast(ranks, outputs.dtype)) < kept
    # The objective divides by all of the batch, the method by those chosen.
    return labels.finish(tf.where(
        chosen, cross_entropy(outputs) * (total / kept), 0.))

  @classmethod
  def grid(cls, dataset):
    del dataset  # the same everywhere
    for noise_rate in (.1, .2, .3, .4, .5):
      yield cls(noise_rate=noise_rate)

"""Generalised Jensen-Shannon divergence (Englesson and Azizpour, 2021)."""

import dataclasses
import math
from typing import ClassVar

from etils import epy

from experiments.methods import base

with epy.lazy_imports():  # flags are parsed before TensorFlow is imported
  import numpy as np
  import tensorflow as tf

  from ln_tfp import backend
  from ln_tfp import checks
  from ln_tfp import labels as labels_lib

_TINY = 1e-37


@dataclasses.dataclass(frozen=True)
class GJS(base.LogitsMethod):
  """The divergence of the label and the predictions for two views.

  The distributions d_i are the label y and p of each view, their weights
  `weight` and `(1 - weight) / 2` each, M their mean: the loss is
  `sum_i w_i KL(d_i, M) / (-(1 - weight) log(1 - weight))`.

  Data without augmentation, such as vectors, has no views of its own. There
  the second view is the example with normal noise on it.

  Attributes:
    weight: pi, the label's, in (0, 1).
    jitter: Standard deviation of that noise, in units of the inputs; 0 makes
      both views the same, and the loss the divergence JS of the paper.
  """

  name: ClassVar[str] = 'GJS'
  weight: float = .5
  jitter: float = .1

  def __post_init__(self):
    checks.between('weight', self.weight, 1e-6, 1. - 1e-6)
    checks.not_negative('jitter', self.jitter)

  def needs(self):
    return base.Needs(views=2)

  def inputs(self, views, context):
    if context.augmented or not self.jitter:
      return views
    first, second = views
    noise = backend.normal(
        context.seed, context.step, context.ids, math.prod(second.shape[1:]))
    return first, second + self.jitter * tf.reshape(noise, tf.shape(second))

  def loss(self, labels, outputs, context):
    labels = labels_lib.Labels(
        labels, outputs.shape[:-1], context.num_classes)
    views = [tf.nn.log_softmax(view) for view in (outputs, *context.views)]
    y = labels.distribution(outputs.dtype)
    share = (1. - self.weight) / len(views)
    log_y = tf.math.log(tf.maximum(y, _TINY))
    mean = tf.reduce_logsumexp(tf.stack(
        [log_y + np.log(self.weight), *(v + np.log(share) for v in views)]),
        axis=0)
    divergence = lambda log_d: tf.reduce_sum(
        tf.exp(log_d) * (log_d - mean), axis=-1)
    total = self.weight * tf.reduce_sum(y * (log_y - mean), axis=-1)
    total += share * tf.add_n([divergence(view) for view in views])
    return labels.finish(
        total / -((1. - self.weight) * np.log1p(-self.weight)))

  @classmethod
  def grid(cls, dataset):
    """Over the range that the authors take it from."""
    del dataset  # the same everywhere
    for weight in (.1, .3, .5, .7, .9):
      yield cls(weight=weight)

"""Mixup (Zhang et al., 2018)."""

import dataclasses
import functools
from typing import ClassVar

from etils import epy

from experiments.methods import base

with epy.lazy_imports():  # flags are parsed before TensorFlow is imported
  import numpy as np
  from scipy import special
  import tensorflow as tf

  from ln_tfp import backend
  from ln_tfp import checks
  from ln_tfp import labels as labels_lib

_QUANTILES = 4096
_NO_ID = (-1,)  # of no example: the draws of the whole batch


@dataclasses.dataclass(frozen=True)
class Mixup(base.LogitsMethod):
  """Cross entropy on mixtures of pairs of examples.

  A batch has one share l from Beta(alpha, alpha), which follows from (seed,
  step), and each example a partner from the whole batch, by (seed, step, id):
  the network sees `l x + (1 - l) x'`, the loss is `l CE(y) + (1 - l) CE(y')`.
  The accuracies of predictions on the way are those of mixtures.

  Attributes:
    alpha: Of the Beta distribution.
  """

  name: ClassVar[str] = 'mixup'
  alpha: float = 1.

  def __post_init__(self):
    checks.positive('alpha', self.alpha)

  def inputs(self, views, context):
    share, partners = self._share(context), _partners(context)
    return [share * view + (1. - share) * _take(view, partners, context)
            for view in views]

  def loss(self, labels, outputs, context):
    labels = labels_lib.Labels(
        labels, outputs.shape[:-1], context.num_classes)
    share, classes = self._share(context), labels.classes()
    partners = _take(classes, _partners(context), context)
    cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits
    return labels.finish(
        share * cross_entropy(classes, outputs) +
        (1. - share) * cross_entropy(partners, outputs))

  def _share(self, context):
    """l, by the quantile function at a uniform number; linear between 4097."""
    # TensorFlow's own generators give other numbers under XLA.
    normal = backend.normal(context.seed, context.step, _NO_ID, 1)[0, 0]
    place = _QUANTILES * .5 * tf.math.erfc(-normal / np.sqrt(2.))
    low = tf.minimum(tf.floor(place), _QUANTILES - 1.)
    quantiles = tf.constant(_quantiles(self.alpha))
    below, above = (
        tf.gather(quantiles, tf.cast(low, tf.int32) + i) for i in (0, 1))
    return below + (place - low) * (above - below)

  @classmethod
  def grid(cls, dataset):
    """One is the official value; larger ones mix all pairs about evenly."""
    del dataset  # the same everywhere
    for alpha in (1., 2., 8., 32.):
      yield cls(alpha=alpha)


@functools.cache
def _quantiles(alpha):
  return special.betaincinv(
      alpha, alpha, np.linspace(0., 1., _QUANTILES + 1)).astype(np.float32)


def _partners(context):
  """The place in the whole batch of each example's partner, on all replicas.

  A permutation of the examples that are not blank.
  """
  counted = context.batch.gather(context.batch.counted(context.ids))
  keys = context.batch.gather(backend.normal(
      context.seed, context.step, context.ids, 1)[:, 0])
  order = tf.argsort(tf.where(counted, keys, np.inf), stable=True)
  rank = tf.cumsum(tf.cast(counted, tf.int32)) - 1
  return tf.gather(order, tf.maximum(rank, 0))


def _take(values, partners, context):
  """The partners' values, for this replica's examples."""
  return tf.gather(context.batch.gather(values), context.batch.own(partners))

"""Sparse over-parameterisation (Liu et al., 2022)."""

import dataclasses
from typing import ClassVar

from etils import epy

from experiments.methods import base

with epy.lazy_imports():  # flags are parsed before TensorFlow is imported
  import tensorflow as tf

  from ln_tfp import checks
  from ln_tfp import labels as labels_lib

_STDDEV = 1e-8
_MIN_PROBABILITY = 1e-4


@dataclasses.dataclass(frozen=True)
class SOP(base.LogitsMethod):
  """Learns the noise of each label beside the network.

  With `U = clip(u_i^2 y, 0, 1)` and `V = clip(v_i^2 (1 - y), 0, 1)`, the loss
  is the cross entropy of `p + U - V`, V without gradient, cut at 1e-4 and
  divided by its sum over the classes, plus `|onehot(argmax p) + U - V - y|^2`.

  Attributes:
    rate_u: Of u's own gradient descent.
    rate_v: Of v's.
  """

  name: ClassVar[str] = 'SOP'
  rate_u: float = 1.
  rate_v: float = 10.

  def __post_init__(self):
    checks.not_negative('rate_u', self.rate_u)
    checks.not_negative('rate_v', self.rate_v)

  def needs(self):
    return base.Needs(rows={
        'u': base.Rows(1, _STDDEV, self.rate_u),
        'v': base.Rows(None, _STDDEV, self.rate_v)})

  def loss(self, labels, outputs, context):
    labels = labels_lib.Labels(
        labels, outputs.shape[:-1], context.num_classes)
    y = labels.distribution(outputs.dtype)
    u = tf.clip_by_value(tf.square(context.rows['u']) * y, 0., 1.)
    v = tf.clip_by_value(tf.square(context.rows['v']) * (1. - y), 0., 1.)
    p = tf.nn.softmax(outputs) + u - tf.stop_gradient(v)
    p = tf.maximum(p, _MIN_PROBABILITY)
    p /= tf.reduce_sum(p, axis=-1, keepdims=True)
    p = tf.clip_by_value(p, _MIN_PROBABILITY, 1.)
    hard = tf.one_hot(
        tf.argmax(outputs, axis=-1), context.num_classes, dtype=y.dtype)
    return labels.finish(
        tf.reduce_sum(tf.square(hard + u - v - y), axis=-1) -
        tf.reduce_sum(y * tf.math.log(p), axis=-1))

  @classmethod
  def grid(cls, dataset):
    """The official values: symmetric and asymmetric noise."""
    del dataset  # the same everywhere
    for rate_u, rate_v in ((1., 10.), (.1, 100.)):
      yield cls(rate_u=rate_u, rate_v=rate_v)

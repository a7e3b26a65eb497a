"""Early-learning regularisation (Liu et al., 2020)."""

import dataclasses
from typing import ClassVar

from etils import epy

from experiments.methods import base

with epy.lazy_imports():  # flags are parsed before TensorFlow is imported
  import tensorflow as tf

  from ln_tfp import checks
  from ln_tfp import labels as labels_lib

_MIN_PROBABILITY = 1e-4


@dataclasses.dataclass(frozen=True)
class ELR(base.LogitsMethod):
  """`CE + weight log(1 - <t_i, p_i>)`.

  The target t_i of an example is a moving average of its predictions, which
  begins at zero; predictions are clipped to [1e-4, 1 - 1e-4].

  Attributes:
    decay: beta; `t_i <- beta t_i + (1 - beta) p_i` before t_i is used.
    weight: lambda; 0 is cross entropy.
  """

  name: ClassVar[str] = 'ELR'
  decay: float = .7
  weight: float = 3.

  def __post_init__(self):
    checks.between('decay', self.decay, 0, 1)
    checks.not_negative('weight', self.weight)

  def needs(self):
    return base.Needs(rows={'target': base.Rows()})

  def advance(self, labels, outputs, context):
    del labels
    return {'target': self.decay * context.rows['target'] +
                      (1. - self.decay) * _clipped(outputs)}

  def loss(self, labels, outputs, context):
    labels = labels_lib.Labels(
        labels, outputs.shape[:-1], context.num_classes)
    cross_entropy = tf.nn.softmax_cross_entropy_with_logits(
        labels.distribution(outputs.dtype), outputs)
    agreement = tf.reduce_sum(
        context.rows['target'] * _clipped(outputs), axis=-1)
    return labels.finish(
        cross_entropy + self.weight * tf.math.log1p(-agreement))

  @classmethod
  def grid(cls, dataset):
    """The official values: CIFAR-10 symmetric and asymmetric, CIFAR-100."""
    del dataset  # the same everywhere
    for decay, weight in ((.7, 3.), (.9, 1.), (.9, 7.)):
      yield cls(decay=decay, weight=weight)


def _clipped(logits):
  return tf.clip_by_value(
      tf.nn.softmax(logits), _MIN_PROBABILITY, 1. - _MIN_PROBABILITY)

"""Label smoothing (Lukasik et al., 2020)."""

import dataclasses
from typing import ClassVar

import tensorflow as tf

from experiments.methods import base


@dataclasses.dataclass(frozen=True)
class LS(base.LogitsMethod):
  """Cross entropy to `(1 - t) onehot + t / K`.

  Attributes:
    label_smoothing: t, in [0, 1]; 0 is cross entropy.
  """

  name: ClassVar[str] = 'LS'
  label_smoothing: float = 0.1

  def __post_init__(self):
    base.check_range('label_smoothing', self.label_smoothing, 0, 1)

  def loss(self, labels, outputs, *, num_classes, seed, step, ids):
    del seed, step, ids  # nothing random
    t = self.label_smoothing
    target = (1 - t) * base.one_hot(labels, num_classes) + t / num_classes
    return tf.nn.softmax_cross_entropy_with_logits(target, outputs)

  @classmethod
  def grid(cls, dataset):
    del dataset  # the same everywhere
    for t in (.1, .3, .5, .7, .9):
      yield cls(label_smoothing=t)

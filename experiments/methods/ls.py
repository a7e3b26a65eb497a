"""Label smoothing (Lukasik et al., 2020)."""

import dataclasses
from typing import ClassVar

from etils import epy

from experiments.methods import base

with epy.lazy_imports():  # flags are parsed before TensorFlow is imported
  import tensorflow as tf

  from ln_tfp import checks
  from ln_tfp import labels as labels_lib


@dataclasses.dataclass(frozen=True)
class LS(base.LogitsMethod):
  """Cross entropy to `(1 - t) onehot + t / K`.

  Attributes:
    label_smoothing: t, in [0, 1]; 0 is cross entropy.
  """

  name: ClassVar[str] = 'LS'
  label_smoothing: float = 0.1

  def __post_init__(self):
    checks.between('label_smoothing', self.label_smoothing, 0, 1)

  def loss(self, labels, outputs, context):
    labels = labels_lib.Labels(
        labels, outputs.shape[:-1], context.num_classes)
    target = labels.smoothed(self.label_smoothing, outputs.dtype)
    return labels.finish(
        tf.nn.softmax_cross_entropy_with_logits(target, outputs))

  @classmethod
  def grid(cls, dataset):
    del dataset  # the same everywhere
    for t in (.1, .3, .5, .7, .9):
      yield cls(label_smoothing=t)

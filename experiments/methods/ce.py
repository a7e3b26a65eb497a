"""Cross entropy, the baseline."""

import dataclasses
from typing import ClassVar

from etils import epy

from experiments.methods import base

with epy.lazy_imports():  # flags are parsed before TensorFlow is imported
  import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class CE(base.LogitsMethod):
  """Cross entropy with the given labels."""

  name: ClassVar[str] = 'CE'

  def loss(self, labels, outputs, context):
    del context  # nothing random
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs)

  @classmethod
  def grid(cls, dataset):
    del dataset  # nothing to search
    yield cls()

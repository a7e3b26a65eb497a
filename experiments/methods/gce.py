"""Generalised cross entropy (Zhang and Sabuncu, 2018)."""

import dataclasses
from typing import ClassVar

from etils import epy

from experiments.methods import base

with epy.lazy_imports():  # flags are parsed before TensorFlow is imported
  from ln_tfp import checks
  from ln_tfp import losses


@dataclasses.dataclass(frozen=True)
class GCE(base.LogitsMethod):
  """`ln_tfp.losses.generalized_cross_entropy`.

  Attributes:
    q: In (0, 1].
  """

  name: ClassVar[str] = 'GCE'
  q: float = 0.7

  def __post_init__(self):
    checks.between('q', self.q, 0, 1, open_below=True)

  def loss(self, labels, outputs, context):
    del context  # nothing random
    return losses.generalized_cross_entropy(labels, outputs, self.q)

  @classmethod
  def grid(cls, dataset):
    del dataset  # the same everywhere
    for q in (.1, .3, .5, .7, .9):
      yield cls(q=q)

"""Noise against noise (Chen et al., 2020)."""

import dataclasses
from typing import ClassVar

from etils import epy

from experiments.methods import base

with epy.lazy_imports():  # flags are parsed before TensorFlow is imported
  from ln_tfp import checks
  from ln_tfp import losses


@dataclasses.dataclass(frozen=True)
class NAN(base.LogitsMethod):
  """`ln_tfp.losses.noise_against_noise`.

  Attributes:
    sigma: Standard deviation of the noise; 0 is cross entropy.
    gradient: 'fused', which gave the paper's numbers, or 'log_softmax'; see
      `ln_tfp.losses.NoiseAgainstNoise`.
  """

  name: ClassVar[str] = 'NAN'
  sigma: float = 0.5
  gradient: str = 'fused'

  def __post_init__(self):
    checks.not_negative('sigma', self.sigma)
    checks.one_of('gradient', self.gradient, ('fused', 'log_softmax'))

  def loss(self, labels, outputs, context):
    return losses.noise_against_noise(
        labels, outputs, self.sigma, seed=context.seed, step=context.step,
        ids=context.ids, gradient=self.gradient)

  @classmethod
  def grid(cls, dataset):
    del dataset  # the same everywhere
    for sigma in (.1, .2, .5, .75, 1.):
      yield cls(sigma=sigma)

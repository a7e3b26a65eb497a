"""Heteroscedastic classification: normal logits, by Monte Carlo.

Kendall and Gal (2017) with a diagonal covariance, Collier et al. (2020) with a
temperature, Collier et al. (2021) with a low-rank covariance.
"""

import dataclasses
import itertools
from typing import ClassVar

from etils import epy

from experiments.methods import base

with epy.lazy_imports():  # flags are parsed before TensorFlow is imported
  from ln_tfp import checks
  from ln_tfp import heads
  from ln_tfp import losses

_TEMPERATURES = (.1, .5, 1., 10., 20.)
_RANKS = (1, 2, 4)
# For the accuracy on the way; ten thousand would cost as much as the loss.
_WATCHED_SAMPLES = 100


@dataclasses.dataclass(frozen=True)
class Het(base.Method):
  """`ln_tfp.losses.heteroscedastic_nll` (the paper's Eq. 13).

  Attributes:
    samples: S. The paper's authors took 10,000 for CIFAR.
  """

  name: ClassVar[str] = 'Het'
  temperature: ClassVar[float] = 1.
  rank: ClassVar[int] = 0
  samples: int = 100

  def __post_init__(self):
    checks.whole('samples', self.samples, 1)

  def head(self, num_classes):
    return heads.HeteroscedasticHead(
        num_classes, self.rank, name='heteroscedastic')

  def loss(self, labels, outputs, context):
    return losses.heteroscedastic_nll(
        labels, outputs, self.samples, self.temperature, seed=context.seed,
        step=context.step)

  def probabilities(self, outputs, *, num_classes, seed=0, dummy_class=False):
    del num_classes, dummy_class  # there is none
    return losses.heteroscedastic_probabilities(
        outputs, self.samples, self.temperature, seed)

  def watched(self):
    return dataclasses.replace(
        self, samples=min(self.samples, _WATCHED_SAMPLES))

  @classmethod
  def grid(cls, dataset):
    yield cls(samples=dataset.samples)


@dataclasses.dataclass(frozen=True)
class HetTau(Het):
  """`Het` with `softmax((mu + sigma * e) / temperature)`.

  Attributes:
    samples: S.
    temperature: tau; 1 is `Het`.
  """

  name: ClassVar[str] = 'Het-tau'
  temperature: float = 1.

  def __post_init__(self):
    super().__post_init__()
    checks.positive('temperature', self.temperature)

  @classmethod
  def grid(cls, dataset):
    for temperature in _TEMPERATURES:
      yield cls(samples=dataset.samples, temperature=temperature)


@dataclasses.dataclass(frozen=True)
class HetTauSigma(HetTau):
  """`HetTau` with the covariance `V V^T + diag(sigma^2)`.

  Attributes:
    samples: S.
    temperature: tau.
    rank: R, the number of columns of V, at most K.
  """

  name: ClassVar[str] = 'Het-tau-Sigma'
  rank: int = 1

  def __post_init__(self):
    super().__post_init__()
    checks.whole('rank', self.rank, 1)

  @classmethod
  def grid(cls, dataset):
    most = len(dataset.class_names) or max(_RANKS)
    for temperature, rank in itertools.product(_TEMPERATURES, _RANKS):
      if rank <= most:
        yield cls(
            samples=dataset.samples, temperature=temperature, rank=rank)

"""Heteroscedastic classification, full covariance (Collier et al., 2021)."""

import dataclasses
import itertools
from typing import ClassVar

from experiments.methods import base
from experiments.methods import het_tau


@dataclasses.dataclass(frozen=True)
class HetTauSigma(het_tau.HetTau):
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
    base.check_whole('rank', self.rank, 1)

  @classmethod
  def grid(cls, dataset):
    ranks = (1, 2) if len(dataset.class_names) == 2 else (1, 2, 4)
    for temperature, rank in itertools.product(het_tau.TEMPERATURES, ranks):
      yield cls(dataset.samples, temperature, rank)

  def _rank(self):
    return self.rank

"""Heteroscedastic classification with a temperature (Collier et al., 2020)."""

import dataclasses
from typing import ClassVar

from experiments.methods import base
from experiments.methods import het

TEMPERATURES = (.1, .5, 1., 10., 20.)


@dataclasses.dataclass(frozen=True)
class HetTau(het.Het):
  """`Het` with `softmax((mu + sigma * e) / temperature)`.

  Attributes:
    samples: S.
    temperature: tau; 1 is `Het`.
  """

  name: ClassVar[str] = 'Het-tau'
  temperature: float = 1.

  def __post_init__(self):
    super().__post_init__()
    base.check_positive('temperature', self.temperature)

  @classmethod
  def grid(cls, dataset):
    for temperature in TEMPERATURES:
      yield cls(dataset.samples, temperature)

  def _temperature(self):
    return self.temperature

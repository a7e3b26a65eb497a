"""Forward loss correction (Patrini et al., 2017)."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from etils import epy

from experiments.methods import base
from experiments.methods import ce

with epy.lazy_imports():  # flags are parsed before TensorFlow is imported
  from ln_tfp import checks
  from ln_tfp import losses


@dataclasses.dataclass(frozen=True)
class Forward(base.LogitsMethod):
  """`ln_tfp.losses.forward_correction` by an estimated matrix T.

  The matrix comes from a run with cross entropy, all else equal.

  Attributes:
    estimate_from: Which weights of that run give T, 'last' or 'best' (by
      noisy validation accuracy).
    transition: T, K rows of K probabilities, `T[i][j] = P(label j | class i)`.
      It is an estimate, not a hyperparameter, and not in `hyperparameters()`.
  """

  name: ClassVar[str] = 'Forward'
  estimate_from: str = 'last'
  transition: tuple[tuple[float, ...], ...] | None = None

  def __post_init__(self):
    checks.one_of('estimate_from', self.estimate_from, ('last', 'best'))
    if self.transition is not None:
      matrix = losses.forward.check_transition(self.transition)
      object.__setattr__(  # the dataclass is frozen
          self, 'transition', tuple(map(tuple, matrix.tolist())))

  def hyperparameters(self):
    return {'estimate_from': self.estimate_from}

  def requires(self):
    return ce.CE()

  @classmethod
  def estimate(cls, probabilities, dataset):
    return losses.estimate_transition(
        probabilities, dataset.anchor_percentile)

  def use(self, result):
    return dataclasses.replace(
        self, transition=result.transition_estimates[self.estimate_from])

  def taken(self):
    return self.transition

  def loss(self, labels, outputs, context):
    del context  # nothing random
    if self.transition is None:
      raise ValueError(
          'Forward needs a transition matrix for its loss, see `use`.')
    return losses.forward_correction(labels, outputs, self.transition)

  @classmethod
  def grid(cls, dataset):
    del dataset  # nothing to search
    yield cls()

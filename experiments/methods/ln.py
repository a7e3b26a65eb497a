"""The paper's method: the Logistic-Normal likelihood."""

import dataclasses
import itertools
from typing import ClassVar

from etils import epy

from experiments.methods import base

with epy.lazy_imports():  # flags are parsed before TensorFlow is imported
  from ln_tfp import checks
  from ln_tfp import heads
  from ln_tfp import losses


@dataclasses.dataclass(frozen=True)
class LN(base.Method):
  """`ln_tfp.LogisticNormalHead` with `ln_tfp.nll`.

  Attributes:
    temperature: tau.
    min_scale: lambda.
    covariance: 'full' or one of the ablation, see `LogisticNormalHead`.
    rank: Columns of the factor of the full covariance.
    dummy_class: Whether the head has one.
    label_smoothing: t of the target.
  """

  name: ClassVar[str] = 'LN'
  protocol_options: ClassVar[tuple[str, ...]] = ('label_smoothing',)
  temperature: float = .5
  min_scale: float = .5
  covariance: str = 'full'
  rank: int = 1
  dummy_class: bool = True
  label_smoothing: float = .01

  def __post_init__(self):
    checks.positive('temperature', self.temperature)
    checks.positive('min_scale', self.min_scale)
    checks.one_of('covariance', self.covariance, heads.COVARIANCES)
    checks.whole('rank', self.rank, 1)
    checks.between(
        'label_smoothing', self.label_smoothing, 0, 1, open_below=True)

  def head(self, num_classes):
    return heads.LogisticNormalHead(
        num_classes,
        covariance=self.covariance,
        rank=self.rank,
        temperature=self.temperature,
        min_scale=self.min_scale,
        dummy_class=self.dummy_class,
        warm_up=0,
        name='logistic_normal')

  def loss(self, labels, outputs, context):
    return losses.nll(
        labels, outputs, self.label_smoothing, context.num_classes)

  def probabilities(self, outputs, *, num_classes, seed=0, dummy_class=False):
    del seed  # nothing random
    return heads.probabilities(outputs, num_classes, dummy_class)

  @classmethod
  def grid(cls, dataset):
    for temperature, min_scale in itertools.product(
        (.1, .5, 1.), dataset.min_scales):
      yield cls(temperature=temperature, min_scale=min_scale)

  @classmethod
  def ratio_grid(cls, dataset):
    """Only lambda / tau is a property of the model; tau is the head's rate."""
    del dataset
    for temperature, ratio in itertools.product(
        (.1, .316, 1.), (.316, 1., 3.16)):
      yield cls(temperature=temperature,
                min_scale=round(ratio * temperature, 4))

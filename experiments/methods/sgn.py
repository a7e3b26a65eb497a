"""SGN: shifted Gaussian noise (Englesson and Azizpour, 2024)."""

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
class SGN(base.Method):
  """`ln_tfp.losses.isometric_nll`, shifted to a moving average's mean.

  Attributes:
    alpha: The labels' share of the target at epoch e is alpha^e; 1 never
      shifts.
    decay: beta of the moving average of the weights.
    label_smoothing: t of the target.
  """

  name: ClassVar[str] = 'SGN'
  protocol_options: ClassVar[tuple[str, ...]] = ('label_smoothing',)
  alpha: float = .995
  decay: float = .9999
  label_smoothing: float = .001

  def __post_init__(self):
    checks.between('alpha', self.alpha, 0, 1, open_below=True)
    checks.between('decay', self.decay, 0, 1)
    checks.between(
        'label_smoothing', self.label_smoothing, 0, 1, open_below=True)

  def needs(self):
    return base.Needs(auxiliary=base.MovingAverage(self.decay))

  def head(self, num_classes):
    return heads.LogisticNormalHead(
        num_classes, temperature=1., min_scale=1., warm_up=0,
        name='logistic_normal')

  def loss(self, labels, outputs, context):
    return losses.isometric_nll(
        labels, outputs, self.label_smoothing, shift_to=context.auxiliary,
        shift=1. - self.alpha**context.epoch)

  def probabilities(self, outputs, *, num_classes, seed=0, dummy_class=False):
    del seed, dummy_class  # nothing random, no dummy class
    return heads.probabilities(outputs, num_classes)

  @classmethod
  def grid(cls, dataset):
    """The official values are those of 600 epochs of 352 steps.

    The others shift as far, and average over as large a part of the training,
    in recipes with fewer epochs or steps.
    """
    del dataset  # the same everywhere
    for alpha, decay in itertools.product((.97, .995), (.99, .999, .9999)):
      yield cls(alpha=alpha, decay=decay)


@dataclasses.dataclass(frozen=True)
class SGNEMA(SGN):
  """The moving average of the weights of `SGN`, as a classifier.

  Attributes:
    alpha: As in `SGN`.
    decay: As in `SGN`.
    label_smoothing: As in `SGN`.
  """

  name: ClassVar[str] = 'SGN-EMA'
  reads: ClassVar[str] = 'auxiliary/'

  def requires(self):
    return SGN(**self.hyperparameters())

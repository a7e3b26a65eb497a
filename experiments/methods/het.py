"""Heteroscedastic classification (Kendall and Gal, 2017)."""

import dataclasses
from typing import ClassVar

from experiments.methods import base
from ln_tfp import heads
from ln_tfp import losses

# For the accuracy on the way; ten thousand would cost as much as the loss.
_WATCHED_SAMPLES = 100


@dataclasses.dataclass(frozen=True)
class Het(base.Method):
  """Normal logits with a diagonal covariance (the paper's Eq. 13).

  The loss is `-log mean_s softmax(mu + sigma * e_s)[label]`, the prediction
  the mean itself. The samples are shared over the batch and follow from
  (seed, step).

  Attributes:
    samples: S. The paper's authors took 10,000 for CIFAR.
  """

  name: ClassVar[str] = 'Het'
  is_random: ClassVar[bool] = True
  samples: int = 100

  def __post_init__(self):
    base.check_whole('samples', self.samples, 1)

  def head(self, num_classes, kernel_regularizer=None, bias_regularizer=None):
    return heads.HeteroscedasticHead(
        num_classes, self._rank(), kernel_regularizer, bias_regularizer,
        name='heteroscedastic')

  def loss(self, labels, outputs, *, num_classes, seed, step, ids):
    del num_classes, ids  # the samples are shared over the batch
    return losses.heteroscedastic_nll(
        labels, outputs, self.samples, self._temperature(), seed=seed,
        step=step)

  def probabilities(self, outputs, *, num_classes, seed=0, dummy_class=False):
    del num_classes, dummy_class  # there is none
    return losses.heteroscedastic_probabilities(
        outputs, self.samples, self._temperature(), seed)

  @classmethod
  def grid(cls, dataset):
    yield cls(samples=dataset.samples)

  def watched(self):
    return dataclasses.replace(
        self, samples=min(self.samples, _WATCHED_SAMPLES))

  def _temperature(self):
    return 1.

  def _rank(self):
    return 0

"""Robust losses of one example: those of `ln_tfp.losses`, with their grids.

The points of a grid are the values that the authors give for their data sets.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import Any
from typing import ClassVar

from etils import epy

from experiments.methods import base

with epy.lazy_imports():  # flags are parsed before TensorFlow is imported
  import keras

  from ln_tfp import checks
  from ln_tfp import losses


class RobustMethod(base.LogitsMethod):
  """A method that is a loss of the library, and nothing else."""

  points: ClassVar[tuple[dict[str, Any], ...]]  # of the grid

  def __post_init__(self):
    self.library_loss()  # which checks the arguments

  @abc.abstractmethod
  def library_loss(self) -> keras.losses.Loss:
    """Returns the loss."""

  def loss(self, labels, outputs, context):
    del context  # nothing random
    return self.library_loss().call(labels, outputs)

  @classmethod
  def grid(cls, dataset):
    del dataset  # the same everywhere
    for point in cls.points:
      yield cls(**point)


@dataclasses.dataclass(frozen=True)
class SCE(RobustMethod):
  """`ln_tfp.losses.SymmetricCrossEntropy`.

  Attributes:
    alpha: Weight of the cross entropy.
    beta: Weight of the reverse cross entropy.
  """

  name: ClassVar[str] = 'SCE'
  points: ClassVar = (
      dict(alpha=.1, beta=1.), dict(alpha=6., beta=.1),
      dict(alpha=.01, beta=1.))
  alpha: float = .1
  beta: float = 1.

  def library_loss(self):
    return losses.SymmetricCrossEntropy(**self.hyperparameters())


@dataclasses.dataclass(frozen=True)
class NCERCE(RobustMethod):
  """`ln_tfp.losses.NormalizedReverseCrossEntropy`.

  Attributes:
    alpha: Weight of the normalised cross entropy.
    beta: Weight of the reverse cross entropy.
  """

  name: ClassVar[str] = 'NCE+RCE'
  points: ClassVar = (
      dict(alpha=1., beta=10.), dict(alpha=1., beta=1.),
      dict(alpha=10., beta=.1))
  alpha: float = 1.
  beta: float = 1.

  def library_loss(self):
    return losses.NormalizedReverseCrossEntropy(**self.hyperparameters())


@dataclasses.dataclass(frozen=True)
class ANLCE(RobustMethod):
  """`ln_tfp.losses.ActiveNegativeCrossEntropy` with its L1 penalty.

  Attributes:
    alpha: Weight of the normalised cross entropy.
    beta: Weight of the normalised negative cross entropy.
    penalty: delta, times the sum of the absolute values of all weights.
  """

  name: ClassVar[str] = 'ANL-CE'
  points: ClassVar = (
      dict(alpha=1., beta=1., penalty=1e-6),
      dict(alpha=5., beta=5., penalty=5e-5),
      dict(alpha=10., beta=1., penalty=5e-7))
  alpha: float = 5.
  beta: float = 5.
  penalty: float = 5e-5

  def __post_init__(self):
    super().__post_init__()
    checks.not_negative('penalty', self.penalty)

  def library_loss(self):
    return losses.ActiveNegativeCrossEntropy(self.alpha, self.beta)

  def needs(self):
    return base.Needs(l1_penalty=self.penalty)


@dataclasses.dataclass(frozen=True)
class AGCE(RobustMethod):
  """`ln_tfp.losses.AsymmetricGCE`.

  Attributes:
    a: Positive.
    q: Positive.
  """

  name: ClassVar[str] = 'AGCE'
  points: ClassVar = (dict(a=.6, q=.6), dict(a=4., q=.2))
  a: float = .6
  q: float = .6

  def library_loss(self):
    return losses.AsymmetricGCE(**self.hyperparameters())


@dataclasses.dataclass(frozen=True)
class TaylorCE(RobustMethod):
  """`ln_tfp.losses.TaylorCrossEntropy`.

  Attributes:
    order: Of the series.
  """

  name: ClassVar[str] = 'Taylor-CE'
  points: ClassVar = tuple(dict(order=order) for order in range(2, 7))
  order: int = 2

  def library_loss(self):
    return losses.TaylorCrossEntropy(**self.hyperparameters())


@dataclasses.dataclass(frozen=True)
class EpsSoftmax(RobustMethod):
  """`ln_tfp.losses.EpsilonSoftmax`.

  Attributes:
    alpha: Weight of the cross entropy.
    beta: Weight of the mean absolute error.
    m: What the likeliest class gets on top.
  """

  name: ClassVar[str] = 'eps-softmax'
  points: ClassVar = (
      dict(alpha=.01, beta=5., m=1e5), dict(alpha=.02, beta=5., m=1e3))
  alpha: float = .01
  beta: float = 5.
  m: float = 1e5

  def library_loss(self):
    return losses.EpsilonSoftmax(**self.hyperparameters())


@dataclasses.dataclass(frozen=True)
class Bootstrapping(RobustMethod):
  """`ln_tfp.losses.Bootstrapping`.

  Attributes:
    trust: t, the network's share of the target.
    kind: 'soft' or 'hard'.
  """

  name: ClassVar[str] = 'bootstrapping'
  points: ClassVar = (
      dict(trust=.05, kind='soft'), dict(trust=.2, kind='hard'))
  trust: float = .05
  kind: str = 'soft'

  def library_loss(self):
    return losses.Bootstrapping(**self.hyperparameters())

"""What a method is, and what the methods with a plain softmax share."""

from __future__ import annotations

import abc
from collections.abc import Iterator
import dataclasses
from typing import Any
from typing import ClassVar
from typing import NamedTuple

from etils import epy

from experiments.data import registry

with epy.lazy_imports():  # flags are parsed before TensorFlow is imported
  import keras
  import numpy as np
  import tensorflow as tf

  from experiments.training import results


class Context(NamedTuple):
  """What a loss may know of a batch beside its labels and outputs.

  What else a method needs of a training step, such as the progress of the run
  or a state by example id, becomes a field here.

  Attributes:
    num_classes: K.
    seed: integer or scalar integer tensor.
    step: scalar integer tensor, the number of the training step.
    ids: integers `[batch]`, the examples' identities.
  """
  num_classes: int
  seed: Any
  step: Any
  ids: Any


class Method(abc.ABC):
  """A way to learn from noisy labels: a head, a loss, a prediction.

  Subclasses are frozen dataclasses whose fields are the hyperparameters.
  `outputs` stands for what the head returns, a float32 tensor
  `[batch, ...]`.
  """

  name: ClassVar[str]  # as in the paper's tables
  # Hyperparameters that an option of the protocol of the same name replaces.
  protocol_options: ClassVar[tuple[str, ...]] = ()

  @abc.abstractmethod
  def head(self, num_classes: int) -> keras.Layer:
    """Returns a new layer, features `[batch, F]` -> outputs."""

  @abc.abstractmethod
  def loss(self, labels: tf.Tensor, outputs: tf.Tensor,
           context: Context) -> tf.Tensor:
    """Returns the loss of each example, `[batch]`.

    Random methods are a pure function of their arguments: noise on an
    example's target follows from (seed, step, id), samples that all examples
    share from (seed, step).

    Args:
      labels: Integers `[batch]`. A label outside 0..num_classes-1 is an
        error; where XLA or a GPU drops the check, its loss is NaN.
      outputs: The head's outputs.
      context: What else there is to know.
    """

  @abc.abstractmethod
  def probabilities(self, outputs: tf.Tensor, *, num_classes: int, seed=0,
                    dummy_class: bool = False) -> tf.Tensor:
    """Returns class probabilities `[batch, K]`.

    Args:
      outputs: The head's outputs.
      num_classes: K.
      seed: For methods that predict with random samples.
      dummy_class: Whether to append the dummy class, `[batch, K + 1]`, for a
        head that has one (LN); without effect on all others.
    """

  def watched(self) -> Method:
    """Returns the method for the accuracy on the way, which may be cheaper."""
    return self

  def requires(self) -> Method | None:
    """Returns the method whose run, all else equal, must be finished first.

    That run then leaves `estimate` of its last and of its best weights in
    its result, and `use` takes what it needs of them.
    """
    return None

  @classmethod
  def estimate(cls, probabilities: np.ndarray,
               dataset: registry.Traits) -> np.ndarray:
    """Returns what the run of `requires` leaves, a matrix.

    Args:
      probabilities: `[N, K]`, its predictions for the training and validation
        images.
      dataset: The traits of the data set.
    """
    raise NotImplementedError(f'{cls.name} requires no other run.')

  def use(self, result: results.Result) -> Method:
    """Returns the method with what it takes from the result of `requires`."""
    del result
    return self

  def taken(self) -> Any:
    """Returns what `use` has taken, for the result; None of nothing."""
    return None

  @classmethod
  @abc.abstractmethod
  def grid(cls, dataset: registry.Traits) -> Iterator[Method]:
    """Yields the points of the paper's hyperparameter search (Appendix C)."""

  def hyperparameters(self) -> dict[str, Any]:
    """Returns the fields by name, for JSON."""
    return dataclasses.asdict(self)


class LogitsMethod(Method):
  """A method whose head gives K logits and which predicts their softmax."""

  def head(self, num_classes):
    # float32 whatever the policy: losses need the range and the precision.
    return keras.layers.Dense(num_classes, dtype='float32', name='logits')

  def probabilities(self, outputs, *, num_classes, seed=0, dummy_class=False):
    del num_classes, seed, dummy_class  # nothing random, no dummy class
    return tf.nn.softmax(outputs)

"""What a method is, and what the methods with a plain softmax share."""

import abc
from collections.abc import Iterator
import dataclasses
from typing import Any
from typing import ClassVar

import keras
import numpy as np
import tensorflow as tf

from experiments.data import registry


class Method(abc.ABC):
  """A way to learn from noisy labels: a head, a loss, a prediction.

  Subclasses are frozen dataclasses whose fields are the hyperparameters.
  `outputs` stands for what the head returns, a float32 tensor
  `[batch, ...]`.
  """

  name: ClassVar[str]  # as in the paper's tables
  is_random: ClassVar[bool] = False  # whether the loss draws random numbers
  # Hyperparameters that an option of the protocol of the same name replaces.
  protocol_options: ClassVar[tuple[str, ...]] = ()

  @abc.abstractmethod
  def head(self, num_classes: int, kernel_regularizer=None,
           bias_regularizer=None) -> keras.Layer:
    """Returns a new layer, features `[batch, F]` -> outputs."""

  @abc.abstractmethod
  def loss(self, labels: tf.Tensor, outputs: tf.Tensor, *, num_classes: int,
           seed, step, ids: tf.Tensor) -> tf.Tensor:
    """Returns the loss of each example, `[batch]`.

    Random methods are a pure function of their arguments: noise on an
    example's target follows from (seed, step, id), samples that all examples
    share from (seed, step).

    Args:
      labels: Integers `[batch]`. A label outside 0..num_classes-1 is an
        error; where XLA or a GPU drops the check, its loss is NaN.
      outputs: The head's outputs.
      num_classes: K.
      seed: Integer or scalar integer tensor.
      step: Scalar integer tensor, the number of the training step.
      ids: Integers `[batch]`, the examples' identities.
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

  def watched(self) -> 'Method':
    """Returns the method for the accuracy on the way, which may be cheaper."""
    return self

  def requires(self) -> 'Method | None':
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
      dataset: the traits of the data set.
    """
    raise NotImplementedError(f'{cls.name} requires no other run.')

  def use(self, result) -> 'Method':
    """Returns the method with what it takes from the `Result` of `requires`."""
    del result
    return self

  def taken(self) -> Any:
    """Returns what `use` has taken, for the result; None of nothing."""
    return None

  @classmethod
  @abc.abstractmethod
  def grid(cls, dataset: registry.Traits) -> Iterator['Method']:
    """Yields the points of the paper's hyperparameter search (Appendix C)."""

  def hyperparameters(self) -> dict[str, Any]:
    """Returns the fields by name, for JSON."""
    return dataclasses.asdict(self)


class LogitsMethod(Method):
  """A method whose head gives K logits and which predicts their softmax."""

  def head(self, num_classes, kernel_regularizer=None, bias_regularizer=None):
    # float32 whatever the policy: losses need the range and the precision.
    return keras.layers.Dense(
        num_classes, kernel_regularizer=kernel_regularizer,
        bias_regularizer=bias_regularizer, dtype='float32', name='logits')

  def probabilities(self, outputs, *, num_classes, seed=0, dummy_class=False):
    del num_classes, seed, dummy_class  # nothing random, no dummy class
    return tf.nn.softmax(outputs)


def cross_entropy(labels, logits) -> tf.Tensor:
  """Returns `-log softmax(logits)[label]`, `[batch]`."""
  return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)


def one_hot(labels, num_classes: int) -> tf.Tensor:
  """Returns one-hot rows `[batch, K]`; NaN where the label is out of range."""
  return nan_outside(tf.one_hot(labels, num_classes), labels, num_classes)


def nan_outside(values, labels, num_classes: int) -> tf.Tensor:
  """Returns `values` with NaN where the label is outside 0..num_classes-1."""
  valid = (labels >= 0) & (labels < num_classes)
  valid = tf.reshape(valid, [-1] + [1] * (len(values.shape) - 1))
  return tf.where(valid, values, tf.constant(float('nan'), values.dtype))


def check_range(name: str, value: float, low: float, high: float) -> None:
  """Raises a ValueError unless low <= value <= high (and not NaN)."""
  if not low <= value <= high:
    raise ValueError(
        f'Argument `{name}` must be in [{low}, {high}]. '
        f'Received: {name}={value}.')


def check_whole(name: str, value: int, minimum: int) -> None:
  """Raises a ValueError unless value is an integer >= minimum."""
  if type(value) is not int or value < minimum:  # bool is an int, too
    raise ValueError(
        f'Argument `{name}` must be an integer of at least {minimum}. '
        f'Received: {name}={value!r}.')


def check_positive(name: str, value: float) -> None:
  """Raises a ValueError unless 0 < value < infinity."""
  if not 0 < value < float('inf'):
    raise ValueError(
        f'Argument `{name}` must be positive and finite. '
        f'Received: {name}={value}.')

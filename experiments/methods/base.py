"""What a method is, and what the methods with a plain softmax share."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import types
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


class GlobalBatch:
  """The batch of all replicas, for losses that look at other examples.

  This one is that of a single replica; the trainer brings that of several.

  Args:
    counted: Booleans `[batch]`, False for blank examples, which a replica gets
      where a batch is too small for all of them; None where there are none.
  """

  def __init__(self, counted: Any = None):
    self._counted = counted

  def gather(self, values: tf.Tensor) -> tf.Tensor:
    """Returns the values `[batch, ...]` of all replicas, in their order."""
    return values

  def own(self, values: tf.Tensor) -> tf.Tensor:
    """Returns this replica's part of values of the whole batch."""
    return values

  def counted(self, ids: tf.Tensor) -> tf.Tensor:
    """Returns which of this replica's examples are not blank, `[batch]`."""
    if self._counted is None:
      return tf.ones_like(ids, tf.bool)
    return self._counted


class Context(NamedTuple):
  """What a loss may know of a batch beside its labels and outputs.

  Attributes:
    num_classes: K.
    seed: integer or scalar integer tensor.
    step: scalar integer tensor, the number of the training step.
    ids: integers `[batch]`, the examples' identities.
    epoch: scalar float tensor, the number of finished epochs with that share
      of the present one which is done.
    progress: the same as a share of all epochs, in [0, 1).
    rows: the state of these examples by name, `[batch, ...]` each; see
      `Needs.rows`.
    auxiliary: the outputs of the other network, without gradient; see
      `Needs.auxiliary`.
    views: the outputs for all views but the first; see `Needs.views`.
    augmented: whether the views differ by augmentation.
    batch: the batch over all replicas.
  """
  num_classes: int
  seed: Any
  step: Any
  ids: Any
  epoch: Any = 0.
  progress: Any = 0.
  rows: Mapping[str, Any] = types.MappingProxyType({})
  auxiliary: Any = None
  views: tuple[Any, ...] = ()
  augmented: bool = False
  batch: GlobalBatch = GlobalBatch()


@dataclasses.dataclass(frozen=True)
class Rows:
  """A state with one row for each training example, found by its id.

  It takes 4 bytes a number: `4 N K` for a row of K.

  Attributes:
    columns: Numbers in a row; None for one of each class.
    stddev: Rows begin as normal numbers of this standard deviation.
    learning_rate: Of rows that learn by gradient descent, without momentum;
      None for rows that `Method.advance` sets.
  """
  columns: int | None = None
  stddev: float = 0.
  learning_rate: float | None = None


@dataclasses.dataclass(frozen=True)
class MovingAverage:
  """A second network whose weights follow those of the first.

  It begins as a copy. After each step each trainable variable a becomes
  `decay a + (1 - decay) v`. It sees each batch in training mode before the
  step, and so has its own statistics of batch normalisation.
  """
  decay: float


@dataclasses.dataclass(frozen=True)
class Twin:
  """A second network with other initial weights, trained by the same loss.

  To each of the two the other one's outputs are the auxiliary ones.
  """


@dataclasses.dataclass(frozen=True)
class Needs:
  """What a method needs of the trainer beside a network and a batch.

  All of it is part of the checkpoints and right on several replicas. What
  costs nothing, such as the progress of the run, is in each `Context`.

  Attributes:
    rows: State for each example, by name.
    auxiliary: Another network, `MovingAverage` or `Twin`, or None.
    views: How many times each example is augmented for a step, independently.
    l1_penalty: Times the sum of the absolute values of all trainable
      variables, added to the objective.
  """
  rows: Mapping[str, Rows] = dataclasses.field(default_factory=dict)
  auxiliary: MovingAverage | Twin | None = None
  views: int = 1
  l1_penalty: float = 0.


class Method(abc.ABC):
  """A way to learn from noisy labels: a head, a loss, a prediction.

  Subclasses are frozen dataclasses whose fields are the hyperparameters.
  `outputs` stands for what the head returns, a float32 tensor
  `[batch, ...]`.
  """

  name: ClassVar[str]  # as in the paper's tables
  # Hyperparameters that an option of the protocol of the same name replaces.
  protocol_options: ClassVar[tuple[str, ...]] = ()
  # The method is another reading of the run that it `requires`: of the network
  # whose quantities have this prefix in that run's result.
  reads: ClassVar[str] = ''

  def needs(self) -> Needs:
    """Returns what the trainer has to bring."""
    return Needs()

  def inputs(self, views: Sequence[tf.Tensor],
             context: Context) -> Sequence[tf.Tensor]:
    """Returns what the network sees of the views `[batch, ...]`."""
    del context
    return views

  def advance(self, labels: tf.Tensor, outputs: tf.Tensor,
              context: Context) -> Mapping[str, tf.Tensor]:
    """Returns the new rows of the state, which the loss sees already.

    Those that learn are not among them. Gradients do not pass.
    """
    del labels, outputs, context
    return {}

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

  @classmethod
  def ratio_grid(cls, dataset: registry.Traits) -> Iterator[Method]:
    """Yields as many points, spread over what the method depends on."""
    yield from cls.grid(dataset)

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

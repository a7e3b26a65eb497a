"""What a method may need beside its network: state by example, a second one.

See `methods.Needs`. All variables are kept in checkpoints by the names that
they have here.
"""

from collections.abc import Mapping
import functools
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from experiments import methods
from experiments.training import loading
from experiments.training import runs
from ln_tfp import random


class ReplicaBatch(methods.GlobalBatch):
  """The batch of several replicas, seen from within one of them.

  Args:
    counted: as of `GlobalBatch`.
  """

  def gather(self, values):
    if values.dtype == tf.bool:  # the collective operation has numbers only
      return tf.cast(self.gather(tf.cast(values, tf.int32)), tf.bool)
    return tf.distribute.get_replica_context().all_gather(
        tf.identity(values), axis=0)

  def own(self, values):
    size = tf.shape(self._counted)[0]
    sizes = self.gather(size[tf.newaxis])
    replica = tf.distribute.get_replica_context().replica_id_in_sync_group
    begin = tf.cumsum(sizes, exclusive=True)[replica]
    return values[begin:begin + size]


class ExampleState:
  """One row of each declared state for each training example.

  A row more takes what blank examples would write. Each replica has all rows,
  and writes those of all replicas: 4 bytes a number, on each device.

  Args:
    strategy: where to compute.
    declared: the states by name.
    ids: of the training examples.
    num_classes: K.
    seed: of the initial rows, which follow from (seed, name, id).
  """

  def __init__(
      self, strategy: tf.distribute.Strategy,
      declared: Mapping[str, methods.Rows], ids: np.ndarray, *,
      num_classes: int, seed: int):
    self._ids = np.sort(ids)
    self._declared = declared
    self.variables = {}
    with strategy.scope():
      for name, rows in declared.items():
        columns = np.arange(rows.columns or num_classes)
        initial = np.zeros([len(ids) + 1, len(columns)], np.float32)
        if rows.stddev:
          initial[:-1] = rows.stddev * random.normal(
              f'rows/{name}', seed, self._ids[:, np.newaxis], columns)
        self.variables[f'examples/{name}'] = tf.Variable(
            initial, trainable=False, name=name)

  def read(self, context: methods.Context) -> dict[str, tf.Tensor]:
    """The rows of the examples of a batch, by name."""
    if not self.variables:
      return {}
    places = self._places(context)
    return {name: tf.gather(self.variables[f'examples/{name}'], places)
            for name in self._declared}

  def learning(self, rows: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Those of the rows that learn by their gradient."""
    return {name: rows[name] for name, declared in self._declared.items()
            if declared.learning_rate is not None}

  def write(
      self, context: methods.Context, rows: Mapping[str, tf.Tensor],
      gradients: Mapping[str, tf.Tensor]) -> None:
    """Sets the rows of the examples of a batch, those of all replicas.

    Args:
      context: of the batch.
      rows: by name.
      gradients: of the objective in those that learn.
    """
    if not self.variables:
      return
    counted = context.batch.counted(context.ids)[:, tf.newaxis]
    places = context.batch.gather(self._places(context))
    for name, declared in self._declared.items():
      new = rows[name]
      if declared.learning_rate is not None:
        new -= declared.learning_rate * gradients[name]
      new = tf.where(counted, new, 0.)  # lest the spare row be anything
      self.variables[f'examples/{name}'].scatter_update(
          tf.IndexedSlices(context.batch.gather(new), places))

  def _places(self, context: methods.Context) -> tf.Tensor:
    found = tf.searchsorted(
        tf.constant(self._ids, tf.int64), context.ids, out_type=tf.int64)
    spare = tf.constant(len(self._ids), tf.int64)
    return tf.where(context.batch.counted(context.ids), found, spare)


class Auxiliary:
  """The second network, if a method needs one.

  Args:
    run: the run.
    method: its method.
    model: the first network, with its initial weights.
    input_shape: of an example.
    num_classes: K.

  Attributes:
    model: the second network, or None.
    optimizer: its optimiser; None where it does not learn by itself.
  """

  def __init__(
      self, run: runs.Run, method: methods.Method, model: keras.Model,
      input_shape: tuple[int, ...], num_classes: int):
    needed = method.needs().auxiliary
    self.model = self.optimizer = self._decay = None
    build = functools.partial(
        loading.build_model, run, method, input_shape, num_classes)
    if isinstance(needed, methods.MovingAverage):
      self._decay = needed.decay
      self.model = build()
      self.model.set_weights(model.get_weights())
    elif isinstance(needed, methods.Twin):
      # Another stream than that of any seed that counts from zero.
      self.model = build(
          seed=int(random.bits('twin', run.seed) >> np.uint64(1)))
      self.optimizer = loading.build_optimizer(
          run, self.model, 'auxiliary_optimizer')

  @property
  def variables(self) -> dict[str, keras.Variable]:
    """By the names under which they are kept."""
    if self.model is None:
      return {}
    named = loading.by_path(self.model.variables, 'auxiliary/')
    if self.optimizer is not None:
      named |= loading.by_path(self.optimizer.variables)
    return named

  @property
  def learnt(self) -> list[keras.Variable]:
    """What learns by gradients."""
    return [] if self.optimizer is None else self.model.trainable_variables

  def outputs(self, inputs: tf.Tensor) -> Any:
    """Of a training step; None where there is no second network."""
    return None if self.model is None else self.model(inputs, training=True)

  def update(self, model: keras.Model, gradients: list[tf.Tensor]) -> None:
    """After the step of the first network.

    Args:
      model: that network.
      gradients: of `learnt`.
    """
    if self.optimizer is not None:
      self.optimizer.apply(gradients, self.learnt)
    elif self.model is not None:
      for own, other in zip(
          self.model.trainable_variables, model.trainable_variables):
        own.assign(self._decay * own.value + (1. - self._decay) * other.value)

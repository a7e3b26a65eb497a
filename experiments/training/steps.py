"""The compiled training step and the compiled prediction.

Both are functions called from Python, batch by batch: a loop over a dataset
inside `tf.function` loses the parallelism within operations. The step does not
read a tensor back; that is left to the end of an epoch.
"""

from collections.abc import Callable
import functools
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from experiments import data
from experiments import methods
from experiments.training import devices


class Step:
  """The training step: loss, gradients, update.

  The objective is the mean of the method's loss over the global batch plus
  weight_decay / 2 * sum(p^2) over what `decay` says. Each replica takes
  its part of the sum, and Keras's optimiser adds the gradients of the replicas
  up, once.

  Args:
    strategy: in whose scope `model` and `optimizer` were made.
    model: the network.
    method: the method.
    optimizer: with its variables.
    num_classes: K.
    seed: of the method's own randomness.
    weight_decay: of the objective.
    decay: 'all' trainable variables, or 'kernels_and_biases'.
    jit: compile with XLA.
  """

  def __init__(
      self, strategy: tf.distribute.Strategy, model: keras.Model,
      method: methods.Method, optimizer: keras.optimizers.Optimizer, *,
      num_classes: int, seed: int, weight_decay: float = 0.,
      decay: str = 'all', jit: bool = False):
    variables = model.trainable_variables
    decayed = [v for v in variables
               if decay == 'all' or v.name in ('kernel', 'bias')]
    watched = method.watched()
    num_replicas = strategy.num_replicas_in_sync

    def replica_step(inputs, labels, ids, weights):
      with tf.GradientTape() as tape:
        outputs = model(inputs, training=True)
        losses = method.loss(labels, outputs, methods.Context(
            num_classes, seed, optimizer.iterations.value, ids))
        loss = tf.reduce_sum(weights * losses)
        if weight_decay:
          penalty = tf.add_n([tf.nn.l2_loss(v.value) for v in decayed])
          loss += weight_decay / num_replicas * penalty
      optimizer.apply(tape.gradient(loss, variables), variables)
      probabilities = watched.probabilities(
          outputs, num_classes=num_classes, seed=seed)
      return loss, tf.argmax(probabilities, axis=-1, output_type=tf.int32)

    self._cut = _Cutter(strategy)
    self._compile = lambda: _compile(
        strategy, replica_step, _signature(model), jit_compile=jit)

  @functools.cached_property
  def compiled(self) -> Callable[..., Any]:
    """The step of all replicas.

    It is compiled on demand: a method lacks what its loss needs where the run
    that should have left it has diverged.
    """
    return self._compile()

  def __call__(self, batch: data.Batch, batch_size: int) -> tuple[Any, Any]:
    """One update.

    Args:
      batch: this worker's part of the global batch.
      batch_size: number of examples of the global batch.

    Returns:
      This worker's part of the objective and its predicted classes; tensors,
      or values per replica, for `Step.collect`.
    """
    return self.compiled(*self._cut(batch, 1. / batch_size))

  def collect(
      self, outcomes: list[tuple[Any, Any]],
      sizes: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """The objective's parts [steps] and the predictions of many calls.

    Args:
      outcomes: what the calls returned.
      sizes: number of this worker's examples of each call.
    """
    losses = [sum(float(part) for part in self._cut.join(loss))
              for loss, _ in outcomes]
    predictions = [
        part for (_, predicted), size in zip(outcomes, sizes)
        for part in self._cut.join(predicted, size)]
    return np.array(losses), np.concatenate(predictions)


class Predictor:
  """Predicted probabilities, computed on all replicas of this worker.

  Workers do not wait for each other here: each predicts all it is given.

  Args:
    strategy: in whose scope `model` was made.
    model: the network.
    method: the method.
    num_classes: K.
    seed: of methods that predict by sampling.
  """

  def __init__(
      self, strategy: tf.distribute.Strategy, model: keras.Model,
      method: methods.Method, *, num_classes: int, seed: int):

    def replica_predict(inputs):
      return method.probabilities(
          model(inputs, training=False), num_classes=num_classes, seed=seed,
          dummy_class=True)

    self._cut = _Cutter(strategy)
    self._run = _compile(strategy, replica_predict, _signature(model)[:1])

  def __call__(self, batches: data.Batches) -> np.ndarray:
    """Probabilities `[N, K]` in the order of the batches; LN: `[N, K + 1]`."""
    parts = []
    for batch in batches.epoch(0):
      inputs, *_ = self._cut(batch, 1.)
      parts.extend(self._cut.join(self._run(inputs), len(batch.labels)))
    return np.concatenate(parts)


def make_averaging(
    strategy: tf.distribute.Strategy,
    model: keras.Model) -> Callable[[], None]:
  """Makes a function that averages moving averages over the replicas.

  Keras lets each replica keep its own moving averages of batch normalisation,
  though it declares them mirrored. A checkpoint has room for one.
  """
  statistics = [
      v for v in model.non_trainable_variables if v.dtype == 'float32']
  if strategy.num_replicas_in_sync == 1 or not statistics:
    return lambda: None

  def replica_average():
    context = tf.distribute.get_replica_context()
    means = context.all_reduce(
        tf.distribute.ReduceOp.MEAN, [tf.identity(v.value) for v in statistics])
    for variable, mean in zip(statistics, means):
      variable.assign(mean)

  return tf.function(lambda: strategy.run(replica_average), autograph=False)


class _Cutter:
  """Cuts a worker's batch into contiguous parts, one for each replica.

  A replica whose part is empty gets one blank example of weight zero.
  """

  def __init__(self, strategy: tf.distribute.Strategy):
    self._strategy = strategy
    self._replicas = devices.local_replicas(strategy)
    self._first = devices.worker(strategy)[0] * self._replicas
    self._weights = {}

  def __call__(self, batch: data.Batch, weight: float) -> tuple[Any, ...]:
    """Inputs, labels, ids and weights, as tensors or values per replica."""
    size = len(batch.labels)
    if self._strategy.num_replicas_in_sync == 1:
      return (*map(tf.constant, batch), self._constant_weights(size, weight))
    bounds = self._bounds(size)
    columns = *batch, np.full(size, weight, np.float32)
    return tuple(self._distribute(column, bounds) for column in columns)

  def join(self, values: Any, size: int | None = None) -> list[np.ndarray]:
    """The replicas' parts as arrays, blank examples (see `size`) cut off."""
    parts = [
        part.numpy()
        for part in self._strategy.experimental_local_results(values)]
    if size is not None:
      bounds = self._bounds(size)
      parts = [part[:bounds[i + 1] - bounds[i]] for i, part in enumerate(parts)]
    return parts

  def _constant_weights(self, size: int, weight: float) -> tf.Tensor:
    # There are two sizes of batch, and a tensor costs more than a look-up.
    if (size, weight) not in self._weights:
      self._weights[size, weight] = tf.fill([size], weight)
    return self._weights[size, weight]

  def _bounds(self, size: int) -> list[int]:
    return [size * i // self._replicas for i in range(self._replicas + 1)]

  def _distribute(self, column: np.ndarray, bounds: list[int]) -> Any:
    def part(context):
      index = context.replica_id_in_sync_group - self._first
      values = column[bounds[index]:bounds[index + 1]]
      if not len(values):
        values = np.zeros((1, *column.shape[1:]), column.dtype)
      return tf.constant(values)

    return self._strategy.experimental_distribute_values_from_function(part)


def _signature(model: keras.Model) -> list[tf.TensorSpec]:
  """Inputs, labels, ids and weights; one trace serves the short batch, too."""
  return [
      tf.TensorSpec([None, *model.input_shape[1:]], tf.float32),
      tf.TensorSpec([None], tf.int32),
      tf.TensorSpec([None], tf.int64),
      tf.TensorSpec([None], tf.float32),
  ]


def _compile(
    strategy: tf.distribute.Strategy, function: Callable[..., Any],
    signature: list[tf.TensorSpec],
    jit_compile: bool = False) -> Callable[..., Any]:
  """A compiled call of `function` on every replica.

  With one replica `strategy.run` inside the trace leaves nothing behind but
  the operations of `function`. The trace is called directly: on small networks
  `tf.function`'s search for it would take a third of the time.
  """
  compiled = tf.function(
      lambda *arguments: strategy.run(function, args=arguments),
      jit_compile=jit_compile, autograph=False, reduce_retracing=True)
  if strategy.num_replicas_in_sync > 1:  # no signature for values per replica
    return compiled
  return compiled.get_concrete_function(*signature)

"""The compiled training step and the compiled prediction.

Both are functions called from Python, batch by batch: a loop over a dataset
inside `tf.function` loses the parallelism within operations. The step does not
read a tensor back; that is left to the end of an epoch.
"""

from collections.abc import Callable
from collections.abc import Sequence
import functools
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from experiments import data
from experiments import methods
from experiments.training import companions
from experiments.training import devices


class Step:
  """The training step: loss, gradients, update.

  The objective is the mean of the method's loss over the global batch plus
  weight_decay / 2 * sum(p^2) over what `decay` says, and what else the method
  declares. Each replica takes its part of the sum, and Keras's optimiser adds
  the gradients of the replicas up, once.

  Args:
    strategy: in whose scope `model` and `optimizer` were made.
    model: the network.
    method: the method.
    optimizer: with its variables.
    auxiliary: the second network, or none.
    examples: the state of the training examples.
    num_classes: K.
    seed: of the method's own randomness.
    steps_per_epoch: for the progress that the method sees.
    epochs: the same.
    weight_decay: of the objective.
    decay: 'all' trainable variables, or 'kernels_and_biases'.
    augmented: whether views differ by augmentation.
    jit: compile with XLA.
  """

  def __init__(
      self, strategy: tf.distribute.Strategy, model: keras.Model,
      method: methods.Method, optimizer: keras.optimizers.Optimizer,
      auxiliary: companions.Auxiliary, examples: companions.ExampleState, *,
      num_classes: int, seed: int, steps_per_epoch: int, epochs: int,
      weight_decay: float = 0., decay: str = 'all', augmented: bool = False,
      jit: bool = False):
    self._model = model
    self._method = method
    self._needs = method.needs()
    self._optimizer = optimizer
    self._auxiliary = auxiliary
    self._examples = examples
    self._num_classes = num_classes
    self._seed = seed
    self._steps_per_epoch = steps_per_epoch
    self._epochs = epochs
    self._weight_decay = weight_decay
    self._decayed_names = None if decay == 'all' else ('kernel', 'bias')
    self._augmented = augmented
    self._num_replicas = strategy.num_replicas_in_sync
    self._cut = _Cutter(strategy)
    self._compile = lambda: _compile(
        strategy, self._replica_step, _signature(model, self._needs.views),
        jit_compile=jit)

  @functools.cached_property
  def compiled(self) -> Callable[..., Any]:
    """The step of all replicas.

    It is compiled on demand: a method lacks what its loss needs where the run
    that should have left it has diverged.
    """
    return self._compile()

  def __call__(self, views: Sequence[data.Batch], batch_size: int) -> Any:
    """One update.

    Args:
      views: this worker's part of the global batch, as often as the method
        needs it.
      batch_size: number of examples of the global batch.

    Returns:
      This worker's part of the objective and the classes that its networks
      predict; tensors, or values per replica, for `Step.collect`.
    """
    return self.compiled(*self._cut(views, 1. / batch_size))

  def collect(
      self, outcomes: list[Any],
      sizes: list[int]) -> tuple[np.ndarray, list[np.ndarray]]:
    """The objective's parts [steps] and the predictions of many calls.

    Args:
      outcomes: what the calls returned.
      sizes: number of this worker's examples of each call.

    Returns:
      The parts, and the predictions of each network.
    """
    losses, *predictions = zip(*outcomes)
    losses = [sum(float(part) for part in self._cut.join(loss))
              for loss in losses]
    return np.array(losses), [
        np.concatenate([
            part for predicted, size in zip(of_network, sizes)
            for part in self._cut.join(predicted, size)])
        for of_network in predictions]

  def _replica_step(self, *arguments):
    *views, labels, ids, weights = arguments
    model, second = self._model, self._auxiliary
    context = self._context(ids, weights)
    rows = self._examples.read(context)
    learning = self._examples.learning(rows)
    inputs = self._method.inputs(views, context._replace(rows=rows))
    inputs = inputs[0] if len(inputs) == 1 else tf.concat(inputs, axis=0)
    with tf.GradientTape() as tape:
      tape.watch(learning)
      outputs = _split(model(inputs, training=True), len(views))
      others = _split(second.outputs(inputs), len(views))
      context = context._replace(
          rows=rows, views=outputs[1:], auxiliary=_stopped(others[0]))
      rows = {**rows, **_stopped(self._method.advance(
          labels, outputs[0], context))}
      context = context._replace(rows=rows)
      loss = total = self._objective(
          labels, weights, outputs[0], context, model.trainable_variables)
      if second.learnt:
        total += self._objective(
            labels, weights, others[0], context._replace(
                views=others[1:], auxiliary=_stopped(outputs[0])),
            second.learnt)
    gradients, second_gradients, row_gradients = tape.gradient(
        total, (model.trainable_variables, second.learnt, learning))
    self._optimizer.apply(gradients, model.trainable_variables)
    second.update(model, second_gradients)
    self._examples.write(context, rows, row_gradients)
    return loss, *(self._classes(part[0]) for part in (outputs, others)
                   if part[0] is not None)

  def _context(self, ids, weights):
    step = self._optimizer.iterations.value
    epoch = tf.cast(step, tf.float32) / self._steps_per_epoch
    batch = methods.GlobalBatch() if self._num_replicas == 1 else (
        companions.ReplicaBatch(weights > 0.))
    return methods.Context(
        self._num_classes, self._seed, step, ids, epoch,
        epoch / self._epochs, augmented=self._augmented, batch=batch)

  def _objective(self, labels, weights, outputs, context, variables):
    """This replica's part."""
    loss = tf.reduce_sum(
        weights * self._method.loss(labels, outputs, context))
    if self._weight_decay:
      penalty = tf.add_n([
          tf.nn.l2_loss(v.value) for v in variables
          if self._decayed_names is None or v.name in self._decayed_names])
      loss += self._weight_decay / self._num_replicas * penalty
    if self._needs.l1_penalty:
      penalty = tf.add_n([tf.reduce_sum(tf.abs(v.value)) for v in variables])
      loss += self._needs.l1_penalty / self._num_replicas * penalty
    return loss

  def _classes(self, outputs):
    probabilities = self._method.watched().probabilities(
        outputs, num_classes=self._num_classes, seed=self._seed)
    return tf.argmax(probabilities, axis=-1, output_type=tf.int32)


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
    self._run = _compile(strategy, replica_predict, _signature(model, 1)[:1])

  def __call__(self, batches: data.Batches) -> np.ndarray:
    """Probabilities `[N, K]` in the order of the batches; LN: `[N, K + 1]`."""
    parts = []
    for batch in batches.epoch(0):
      inputs, *_ = self._cut([batch], 1.)
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

  def __call__(
      self, views: Sequence[data.Batch], weight: float) -> tuple[Any, ...]:
    """Inputs, labels, ids and weights, as tensors or values per replica."""
    _, labels, ids = views[0]
    columns = *(view.inputs for view in views), labels, ids
    size = len(labels)
    if self._strategy.num_replicas_in_sync == 1:
      return (*map(tf.constant, columns), self._constant_weights(size, weight))
    bounds = self._bounds(size)
    columns = *columns, np.full(size, weight, np.float32)
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


def _split(outputs: Any, count: int) -> tuple[Any, ...]:
  """The outputs of each of the views that went through a network together."""
  if outputs is None or count == 1:
    return (outputs,)
  return tuple(tf.split(outputs, count))


def _stopped(tensors: Any) -> Any:
  """The same without gradients."""
  return tf.nest.map_structure(
      lambda x: None if x is None else tf.stop_gradient(x), tensors)


def _signature(model: keras.Model, views: int) -> list[tf.TensorSpec]:
  """Inputs, labels, ids and weights; one trace serves the short batch, too."""
  return [
      *[tf.TensorSpec([None, *model.input_shape[1:]], tf.float32)] * views,
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

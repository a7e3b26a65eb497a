"""The network of a run: its epochs, what they measure, and its state."""

import math
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from experiments import data
from experiments import methods
from experiments.training import companions
from experiments.training import devices
from experiments.training import evaluation
from experiments.training import loading
from experiments.training import runs
from experiments.training import steps

# Begins the names of what is measured of the second network.
AUXILIARY = 'auxiliary/'
LAST_CLASSES = 'last_classes'
CHANGED = 'changed_predictions'
_EVALUATION_BATCH = 1000


class DivergedError(ArithmeticError):
  """A quantity is no longer finite."""

  def __init__(self, quantity: str):
    super().__init__(f'{quantity} is not finite')
    self.quantity = quantity


class Trainer:
  """The network of a run with everything needed to train and to measure it.

  Args:
    run: the run.
    method: its method, with what it takes from other runs.
    splits: its examples.
    strategy: where to compute.
  """

  def __init__(
      self, run: runs.Run, method: methods.Method, splits: data.Source,
      strategy: tf.distribute.Strategy):
    _check(run, splits, strategy)
    self._run = run
    self._options = run.resolve_options()
    self._splits = splits
    self._strategy = strategy
    self._views = [
        self._training_batches(view) for view in range(method.needs().views)]
    self._batches = self._views[0]
    self._order = np.argsort(splits.train.ids)
    self._apart = evaluation.moved_classes(
        run.noise, splits.train.given, splits.train.true)
    # The classes predicted an epoch before, for the stopping rule.
    self._last_classes = {}
    if run.stop != 'none':
      self._last_classes[LAST_CLASSES] = np.full(
          len(splits.train), -1, np.int32)
    with strategy.scope():
      self.model = loading.build_model(
          run, method, splits.input_shape, splits.num_classes)
      if devices.synchronise(strategy, self.model):
        self._check_remainder()
      self._optimizer = loading.build_optimizer(run, self.model)
      self._auxiliary = companions.Auxiliary(
          run, method, self.model, splits.input_shape, splits.num_classes)
      if self._auxiliary.model is not None:
        devices.synchronise(strategy, self._auxiliary.model)
    self._examples = companions.ExampleState(
        strategy, method.needs().rows, splits.train.ids,
        num_classes=splits.num_classes, seed=run.seed)
    self._step = steps.Step(
        strategy, self.model, method, self._optimizer, self._auxiliary,
        self._examples, num_classes=splits.num_classes, seed=run.seed,
        steps_per_epoch=self.steps_per_epoch, epochs=run.epochs,
        weight_decay=run.resolve_weight_decay(),
        decay=run.resolve_options().decay, augmented=self._batches.augments,
        jit=run.jit)
    # By the prefix of what is measured of each network.
    networks = {'': self.model, AUXILIARY: self._auxiliary.model}
    networks = {prefix: network for prefix, network in networks.items()
                if network is not None}
    self._averages = [
        steps.make_averaging(strategy, network)
        for network in networks.values()]
    self._predictors = {
        prefix: steps.Predictor(
            strategy, network, method, num_classes=splits.num_classes,
            seed=run.seed)
        for prefix, network in networks.items()}

  @property
  def steps_per_epoch(self) -> int:
    return self._batches.steps_per_epoch

  def compile(self) -> None:
    """Compiles the step, so that the time of the first epoch is that of all."""
    _ = self._step.compiled

  def train_epoch(self, epoch: int) -> dict[str, float | None]:
    """Trains one epoch (counted from 0).

    Args:
      epoch: which decides the order, augmentation and learning rate.

    Returns:
      The mean objective and the accuracies of the predictions made on the
      way. Raises `DivergedError`.
    """
    for optimizer in (self._optimizer, self._auxiliary.optimizer):
      if optimizer is not None:
        optimizer.learning_rate.assign(self._learning_rate(epoch))
    left = self._batches.num_examples
    outcomes, ids, sizes = [], [], []
    for views in zip(*(batches.epoch(epoch) for batches in self._views)):
      size = min(left, self._batches.batch_size)
      left -= size
      outcomes.append(self._step(views, size))
      ids.append(views[0].ids)
      sizes.append(size)
    for average in self._averages:
      average()
    losses, predictions = self._step.collect(outcomes, [len(i) for i in ids])
    return self._training_record(
        losses @ sizes, dict(zip(self._predictors, predictions)),
        np.concatenate(ids))

  def _training_record(self, loss, predictions, ids):
    train = self._splits.train
    which = self._order[np.searchsorted(train.ids, ids, sorter=self._order)]
    counts = [
        evaluation.training_counts(
            classes, train.given[which], train.true[which], self._apart)
        for classes in predictions.values()]
    totals = devices.sum_over_workers(
        self._strategy, np.append(counts, loss))
    loss = float(totals[-1]) / self._batches.num_examples
    if not math.isfinite(loss):
      raise DivergedError('loss')
    record = {'loss': loss}
    if self._last_classes:
      record[CHANGED] = self._count_changes(predictions[''], which)
    for prefix, part in zip(
        predictions, totals[:-1].reshape(len(counts), -1, 2)):
      record |= _named(
          prefix, evaluation.training_accuracies(part, self._apart))
    return record

  def _count_changes(self, classes, which):
    """Predictions that differ from those of the epoch before; None at first.

    Args:
      classes: those of this worker, made on the way.
      which: the places of its examples in the training set.
    """
    seen = np.zeros(len(self._order), np.int32)
    seen[which] = classes + 1
    seen = devices.sum_over_workers(self._strategy, seen)
    before = self._last_classes[LAST_CLASSES]
    both = (seen > 0) & (before >= 0)
    changes = np.sum(before[both] != seen[both] - 1)
    self._last_classes[LAST_CLASSES] = np.where(seen > 0, seen - 1, before)
    return float(changes) if both.any() else None

  def validate(self) -> dict[str, float | None]:
    """Accuracy of each network on the validation set, noisy and clean."""
    metrics = {}
    for prefix in self._predictors:
      metrics |= _named(prefix, self._validate(prefix))
    return metrics

  def _validate(self, prefix):
    validation = self._splits.validation
    predictions = self._classes(self.predict(validation, prefix))
    kept = self._kept(len(validation))
    return {
        'validation_accuracy_noisy': evaluation.accuracy(
            predictions[kept], validation.given[kept]),
        'validation_accuracy_clean': evaluation.accuracy(
            predictions[kept], validation.true[kept]),
    }

  def evaluate(self) -> dict[str, float | None]:
    """All metrics of each network on all of train, validation and test."""
    metrics = {}
    for prefix in self._predictors:
      metrics |= _named(prefix, self._evaluate(prefix))
    return metrics

  def _evaluate(self, prefix):
    train, test = self._splits.train, self._splits.test
    kept = self._kept(len(test))
    probabilities, labels = self.predict(test, prefix)[kept], test.true[kept]
    metrics = {
        'test_accuracy': evaluation.accuracy(
            self._classes(probabilities), labels)}
    for name, value in evaluation.calibration(
        probabilities, labels, self._splits.num_classes).items():
      metrics[f'test_{name}'] = value
    metrics.update(self._validate(prefix))
    metrics.update(evaluation.training_accuracies(evaluation.training_counts(
        self._classes(self.predict(train, prefix)), train.given, train.true)))
    return metrics

  def predict_training(self) -> np.ndarray:
    """Probabilities of all images that the run has seen labels of."""
    return np.concatenate([
        self.predict(self._splits.train),
        self.predict(self._splits.validation)])

  def predict(self, split: data.Examples, prefix: str = '') -> np.ndarray:
    """Probabilities of a split, without augmentation.

    Args:
      split: the examples.
      prefix: of which network, '' or `AUXILIARY`.
    """
    if not len(split):
      return np.zeros([0, self._splits.num_classes], np.float32)
    probabilities = self._predictors[prefix](data.Batches(
        split, batch_size=_EVALUATION_BATCH,
        preprocessing=self._splits.preprocessing))
    if not np.all(np.isfinite(probabilities)):
      raise DivergedError('probabilities')
    return probabilities

  def state(self) -> dict[str, np.ndarray]:
    """All variables, by their paths: 'model/...', 'optimizer/...' and so on.

    Raises `DivergedError` where a weight is not finite.
    """
    arrays = {}
    for name, variable in self._variables().items():
      arrays[name] = np.asarray(variable.numpy())
      if not np.all(np.isfinite(arrays[name])):
        raise DivergedError(f"weights {name.removeprefix('model/')}")
    return arrays | self._last_classes

  def restore(self, arrays: dict[str, np.ndarray]) -> None:
    """Sets variables to what `state` returned, or to the model's part of it."""
    variables = self._variables()
    for name, array in arrays.items():
      if name in self._last_classes:
        self._last_classes[name] = array
      else:
        variables[name].assign(array)

  def _variables(self) -> dict[str, keras.Variable | tf.Variable]:
    return {**loading.by_path(self.model.variables, 'model/'),
            **loading.by_path(self._optimizer.variables),
            **self._auxiliary.variables, **self._examples.variables}

  def _training_batches(self, view: int) -> data.Batches:
    run, train = self._run, self._splits.train
    preprocessing = self._splits.preprocessing
    worker, num_workers = devices.worker(self._strategy)
    return data.Batches(
        train, seed=run.seed, batch_size=run.batch_size or len(train),
        preprocessing=preprocessing,
        augment=bool(
            preprocessing.pad or preprocessing.flip or preprocessing.crop),
        worker=worker, num_workers=num_workers, per_class=run.per_class,
        view=view)

  def _check_remainder(self) -> None:
    """Refuses a last batch that leaves a replica without an example.

    It gets a blank one, which counts nowhere but in batch normalisation.
    """
    batches, replicas = self._batches, self._strategy.num_replicas_in_sync
    left = batches.num_examples % batches.batch_size
    if 0 < left < replicas:
      raise ValueError(
          'Argument `batch_size` must not leave fewer examples for the last '
          f'batch than there are replicas, {replicas}, where batches are '
          f'normalised. Received: batch_size={batches.batch_size}, which '
          f'leaves {left}.')

  def _learning_rate(self, epoch: int) -> float:
    drop = self._options.drop_epoch
    lowered = drop is not None and epoch >= drop
    return self._run.learning_rate * (.1 if lowered else 1.)

  def _classes(self, probabilities: np.ndarray) -> np.ndarray:
    if not self._options.dummy_class:
      probabilities = probabilities[:, :self._splits.num_classes]
    return probabilities.argmax(axis=-1)

  def _kept(self, size: int) -> slice:
    """The examples that count in evaluation: all, or whole batches."""
    batch_size = self._batches.batch_size
    if self._options.drop_remainder and size >= batch_size:
      size -= size % batch_size
    return slice(size)


def _named(prefix: str, values: dict[str, Any]) -> dict[str, Any]:
  return {f'{prefix}{name}': value for name, value in values.items()}


def _check(
    run: runs.Run, splits: data.Source,
    strategy: tf.distribute.Strategy) -> None:
  """Refuses what cannot work on these devices."""
  replicas = strategy.num_replicas_in_sync
  if (run.batch_size or len(splits.train)) < replicas:
    raise ValueError(
        'Argument `batch_size` must be at least the number of replicas, '
        f'{replicas}. Received: batch_size={run.batch_size}.')
  if run.jit and replicas > 1:
    raise ValueError(
        'Argument `jit` works with one replica only. '
        f'Received: jit=True with {replicas} replicas.')

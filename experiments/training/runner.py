"""`train`: from a `Run` to a `Result`, through crashes if need be."""

import os
from typing import TextIO

import keras
import tensorflow as tf

from experiments import data
from experiments.training import cluster
from experiments.training import networks
from experiments.training import reports
from experiments.training import results
from experiments.training import runs
from experiments.training import store as store_lib
from experiments.training import strategies
from experiments.training import training as training_lib

Path = str | os.PathLike


def train(
    run: runs.Run, *, source: data.Source | None = None,
    data_dir: Path | None = None, output_dir: Path | None = None,
    strategy: str | tf.distribute.Strategy = 'auto',
    progress: TextIO | None = None, keep_weights: bool = False,
    tensorboard_dir: Path | None = None) -> results.Result:
  """Trains a run, or goes on with it, or finds its result.

  Args:
    run: what to train.
    source: the data set, if it is in memory already.
    data_dir: where the data sets are.
    output_dir: for results, weights and checkpoints. A run whose result is
      there is not trained again, one that was interrupted goes on. None keeps
      nothing.
    strategy: see `strategies.create`, or a `tf.distribute.Strategy`.
    progress: a text stream for the progress line.
    keep_weights: whether the final weights are kept beside the result, for
      `load_model`.
    tensorboard_dir: for TensorBoard logs, in a directory per run.

  Returns:
    The `Result`, the same on all workers. Only the chief writes. Raises
    `LostWorkerError` where another worker is gone.
  """
  if isinstance(strategy, str):
    strategy = strategies.create(strategy)
  if keep_weights and output_dir is None:
    raise ValueError(
        'Argument `keep_weights` needs `output_dir`. '
        'Received: output_dir=None.')
  store = store_lib.Store(run.key, output_dir, strategy)
  with cluster.naming_lost_workers(strategy, lambda: _how_to_resume(store)):
    found = store.find(keep_weights)
    if found is not None:
      return found
    return _train(
        run, store, source=source, data_dir=data_dir, output_dir=output_dir,
        strategy=strategy, progress=progress, keep_weights=keep_weights,
        tensorboard_dir=tensorboard_dir)


def _train(
    run: runs.Run, store: store_lib.Store, *, source: data.Source | None,
    data_dir: Path | None, output_dir: Path | None,
    strategy: tf.distribute.Strategy, progress: TextIO | None,
    keep_weights: bool, tensorboard_dir: Path | None) -> results.Result:
  """Trains a run that has no result yet."""
  if source is None:
    source = data.load(run.dataset, data_dir=data_dir)
  _check(run, source, strategy)
  needed = [
      train(other, source=source, output_dir=output_dir, strategy=strategy,
            progress=progress, tensorboard_dir=tensorboard_dir)
      for other in run.prerequisites()]
  training = training_lib.Training(run, needed, source, strategy, store)
  chief = strategies.worker(strategy)[0] == 0
  with reports.Report(
      run, start=training.epoch, steps_per_epoch=training.steps_per_epoch,
      stream=progress if chief else None,
      tensorboard_dir=tensorboard_dir if chief else None) as report:
    training.train(report)
  result, weights = training.measure()
  return store.finish(result, weights if keep_weights else None)


def load_model(
    run: runs.Run | results.Result, output_dir: Path) -> keras.Model:
  """The network of a finished run, with the weights kept beside its result.

  Args:
    run: the run or its result.
    output_dir: that of `train(..., keep_weights=True)`.

  Returns:
    A Keras model: inputs as `data.Batches` prepares them -> outputs of the
    method's head.
  """
  result = run
  if isinstance(run, runs.Run):
    result = results.read(results.path(output_dir, run.key))
  weights = store_lib.read_weights(result, output_dir)
  run = runs.Run.from_dict(result.run)
  model = networks.build_model(
      run, run.resolve_method(), tuple(result.input_shape), result.num_classes)
  for index, variable in enumerate(model.variables):
    variable.assign(weights[f'model/{index:04d}'])
  return model


def _how_to_resume(store: store_lib.Store) -> str:
  if not store.keeps:
    return 'Start all workers again.'
  where = f'after epoch {store.saved}' if store.saved else 'where it was'
  return f'Start all workers again: {store.key} goes on {where}.'


def _check(
    run: runs.Run, source: data.Source,
    strategy: tf.distribute.Strategy) -> None:
  """Refuses what cannot work with this data set or on these devices."""
  replicas = strategy.num_replicas_in_sync
  if (run.batch_size or len(source.train)) < replicas:
    raise ValueError(
        'Argument `batch_size` must be at least the number of replicas, '
        f'{replicas}. Received: batch_size={run.batch_size}.')
  if run.jit and replicas > 1:
    raise ValueError(
        'Argument `jit` works with one replica only. '
        f'Received: jit=True with {replicas} replicas.')

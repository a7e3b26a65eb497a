"""`train`: from a `Run` to a `Result`, through crashes if need be."""

from collections.abc import Callable
import dataclasses
import json
import os
import time
from typing import Any
from typing import Literal

import numpy as np
import tensorflow as tf

from experiments import data
from experiments import methods
from experiments.training import devices
from experiments.training import fingerprint
from experiments.training import loading
from experiments.training import progress as progress_lib
from experiments.training import results
from experiments.training import runs
from experiments.training import store as store_lib
from experiments.training import trainer as trainer_lib
from ln_tfp import label_wave

Path = str | os.PathLike
# Of the time of a run, spent on checkpoints.
_SAVING_SHARE = .05
# Parameters of a network whose weights are kept without being asked for.
_SMALL = 10**6


def train(
    run: runs.Run, *, source: data.Source | None = None,
    data_dir: Path | None = None, output_dir: Path | None = None,
    strategy: str | tf.distribute.Strategy = 'auto',
    progress: progress_lib.Tell | None = None,
    keep_weights: bool | Literal['small'] = False,
    tensorboard_dir: Path | None = None,
    retrain: bool = False,
    warn: Callable[[str], None] | None = None) -> results.Result:
  """Trains a run, or goes on with it, or finds its result.

  Args:
    run: what to train.
    source: the data set, if it is in memory already.
    data_dir: where the data sets are.
    output_dir: for results, weights and checkpoints. A run whose result is
      there is not trained again, one that was interrupted goes on. None keeps
      nothing.
    strategy: see `devices.create`, or a `tf.distribute.Strategy`.
    progress: called after each epoch, see `progress.Tell`.
    keep_weights: whether the final weights are kept beside the result, for
      `load_model`; 'small' keeps those of at most a million parameters, and
      trains nothing again where they are gone. Weights that have to be trained
      again do not replace the result, see `store.Store`.
    tensorboard_dir: for TensorBoard logs, in a directory per run.
    retrain: whether a result of other code than this is replaced.
    warn: called with a line where a checkpoint could not be written; None
      prints it to stderr.

  Returns:
    The `Result`, the same on all workers. Only the chief writes. Raises
    `LostWorkerError` where another worker is gone.
  """
  if isinstance(strategy, str):
    strategy = devices.create(strategy)
  if keep_weights and output_dir is None:
    raise ValueError(
        'Argument `keep_weights` needs `output_dir`. '
        'Received: output_dir=None.')
  store = store_lib.Store(
      run.key, output_dir, strategy, **({} if warn is None else {'warn': warn}))
  with devices.naming_lost_workers(strategy, store.how_to_resume):
    code = fingerprint.of(run)
    found = store.find(
        keep_weights is True, code if retrain else None)
    if found is not None:
      return found
    if source is None:
      source = data.load(run.dataset, data_dir=data_dir)
    prefix = run.resolve_method().reads
    needed = [
        train(other, source=source, output_dir=output_dir, strategy=strategy,
              progress=progress, tensorboard_dir=tensorboard_dir,
              keep_weights=keep_weights and bool(prefix), retrain=retrain,
              warn=warn)
        for other in run.prerequisites()]
    if prefix:
      weights = store.share_weights(needed[0]) if keep_weights else None
      return store.finish(_read_off(run, prefix, needed[0], code), weights and {
          name: weights[name.replace('model/', prefix)]
          for name in _model_arrays(weights)})
    training = _Training(run, needed, source, strategy, store, code)
    is_chief = devices.worker(strategy)[0] == 0
    with progress_lib.telling(
        run.key, progress if is_chief else None,
        tensorboard_dir if is_chief else None) as tell:
      training.train(tell)
    result, weights = training.measure()
    kept = keep_weights is True or (
        keep_weights == 'small' and result.parameters <= _SMALL)
    return store.finish(result, weights if kept else None)


@dataclasses.dataclass
class _Records:
  """What a run remembers of its epochs, beside the variables."""
  history: dict[str, list[float | None]] = dataclasses.field(
      default_factory=dict)
  epoch_seconds: list[float] = dataclasses.field(default_factory=list)
  step_seconds: float = 0.
  wall_seconds: float = 0.
  best_accuracy: float = -1.
  chosen: dict[str, Any] | None = None
  code: dict[str, str] = dataclasses.field(default_factory=dict)

  @property
  def epoch(self) -> int:
    """Number of finished epochs."""
    return len(self.epoch_seconds)


class _Training:
  """Drives a `Trainer` over its epochs, with checkpoints between them.

  After each epoch, unless that would take more than a twentieth of the time:
  then after some.

  Args:
    run: the run.
    needed: the results of its prerequisites.
    source: the data set.
    strategy: where to compute.
    store: where the checkpoints are.
    code: the fingerprint of the code.
  """

  def __init__(
      self, run: runs.Run, needed: list[results.Result], source: data.Source,
      strategy: tf.distribute.Strategy, store: store_lib.Store,
      code: dict[str, str]):
    self._begin = time.perf_counter()
    self._run = run
    self._strategy = strategy
    self._store = store
    self._method = run.resolve_method()
    self._divergence = None
    for result in needed:
      if result.status == 'diverged':
        self._divergence = {
            'epoch': 0, 'quantity': f'what {result.key} leaves: it diverged'}
      else:
        self._method = self._method.use(result)
    self._asks = methods.asks(self._method)
    self._splits = loading.load_splits(run, source=source)
    self._trainer = trainer_lib.Trainer(
        run, self._method, self._splits, strategy)
    self._records = _Records(code=code)
    self._best = {}  # weights of the best epoch
    self._before = {}  # weights an epoch before, until one is chosen
    self._next_save = 0.
    self._resume()
    self._earlier_seconds = self._records.wall_seconds

  @property
  def epoch(self) -> int:
    """Number of finished epochs."""
    return self._records.epoch

  def train(self, tell: progress_lib.Tell) -> None:
    """Trains the epochs that are missing."""
    try:
      if self._divergence is None:
        self._trainer.compile()
      while self.epoch < self._run.epochs and self._divergence is None:
        self._train_epoch(tell)
    except trainer_lib.DivergedError as error:
      self._divergence = {
          'epoch': self.epoch + 1, 'quantity': error.quantity}

  def measure(self) -> tuple[results.Result, dict[str, np.ndarray] | None]:
    """The result and the final weights; none of a run that diverged."""
    metrics, estimates, weights = {}, {}, None
    if self._divergence is None:
      try:
        metrics = self._trainer.evaluate()
        weights = self._networks()
        estimates = self._estimates()
      except trainer_lib.DivergedError as error:
        metrics, estimates, weights = {}, {}, None
        self._divergence = {'epoch': self.epoch, 'quantity': error.quantity}
    return self._result(metrics, estimates), weights

  def _resume(self) -> None:
    state = self._store.resume()
    if state is None:
      return
    best, before, last = {}, {}, {}
    for name, array in state.arrays.items():
      prefix, _, rest = name.partition('/')
      if prefix in ('best', 'before'):
        (best if prefix == 'best' else before)[rest] = array
      else:
        last[name] = array
    if last.keys() != self._trainer.state().keys():
      return  # other variables: an older version has left it
    records = _Records(**state.records)
    if records.code != self._records.code:
      return  # two versions of the code would have made one result
    self._records = records
    self._store.saved = self.epoch
    self._trainer.restore(last)
    self._best, self._before = best, before

  def _train_epoch(self, tell: progress_lib.Tell) -> None:
    records = self._records
    begin = time.perf_counter()
    record = self._trainer.train_epoch(self.epoch)
    records.step_seconds += time.perf_counter() - begin
    record.update(self._trainer.validate())
    for name, value in record.items():
      records.history.setdefault(name, []).append(value)
    self._remember_best(record['validation_accuracy_noisy'])
    self._choose()
    now = time.perf_counter()
    records.epoch_seconds.append(now - begin)
    records.wall_seconds = self._earlier_seconds + now - self._begin
    if self._is_due(now):
      self._save()
      taken = time.perf_counter() - now
      self._next_save = now + taken / _SAVING_SHARE
    tell(self.epoch, record)

  def _is_due(self, now: float) -> bool:
    """Whether the chief's clock says so: workers that differ would hang."""
    due = now >= self._next_save and devices.worker(self._strategy)[0] == 0
    return bool(
        devices.sum_over_workers(self._strategy, np.array([int(due)]))[0])

  def _save(self) -> None:
    kept = {
        f'{prefix}/{name}': array
        for prefix, arrays in (('best', self._best), ('before', self._before))
        for name, array in arrays.items()}
    self._store.save(self.epoch, store_lib.State(
        {**self._trainer.state(), **kept}, vars(self._records)))

  def _remember_best(self, accuracy: float | None) -> None:
    """Keeps the weights of the best epoch, if a method will ask for them."""
    if self._asks is None or accuracy is None:
      return
    if accuracy > self._records.best_accuracy:
      self._records.best_accuracy = accuracy
      self._best = _model_arrays(self._trainer.state())

  def _choose(self) -> None:
    """Measures the epoch before, if the stopping rule has it now."""
    records = self._records
    if self._run.stop == 'none' or records.chosen is not None:
      return
    changes = records.history[trainer_lib.CHANGED]
    if label_wave.first_minimum(changes[1:]) is None:
      self._before = self._networks()
      return
    now = self._networks()
    self._trainer.restore(self._before)
    records.chosen = {
        'epoch': len(changes) - 1, 'metrics': self._trainer.evaluate()}
    self._trainer.restore(now)
    self._before = {}

  def _networks(self) -> dict[str, np.ndarray]:
    """The weights of all networks."""
    return _model_arrays(
        self._trainer.state(), 'model/', trainer_lib.AUXILIARY)

  def _estimates(self) -> dict[str, list[list[float]]]:
    """What the run leaves to the method that asks for it."""
    if self._asks is None:
      return {}
    traits = data.traits(self._run.dataset)
    estimate = lambda: np.asarray(self._asks.estimate(
        self._trainer.predict_training(), traits)).tolist()
    last = estimate()
    self._trainer.restore(self._best)
    return {'last': last, 'best': estimate()}

  def _result(
      self, metrics: dict[str, float | None],
      estimates: dict[str, list[list[float]]]) -> results.Result:
    splits, records = self._splits, self._records
    taken = self._method.taken()
    seconds = self._seconds()
    return results.Result(
        key=self._run.key,
        run=self._run.to_dict(),
        hyperparameters=self._method.hyperparameters(),
        options=dataclasses.asdict(self._run.resolve_options()),
        status='finished' if self._divergence is None else 'diverged',
        divergence=self._divergence,
        metrics=metrics,
        history=records.history,
        noise=_realised_noise(splits),
        examples={
            'train': len(splits.train), 'validation': len(splits.validation),
            'test': len(splits.test)},
        num_classes=splits.num_classes,
        input_shape=list(splits.input_shape),
        parameters=sum(
            int(np.prod(v.shape))
            for v in self._trainer.model.trainable_variables),
        transition=None if taken is None else np.asarray(taken).tolist(),
        transition_estimates=estimates,
        seconds=seconds,
        steps_per_second=(
            self.epoch * self._trainer.steps_per_epoch / seconds['steps']
            if self.epoch else 0.),
        versions=results.versions(),
        device=devices.describe(self._strategy),
        weights=None,
        data=dict(splits.provenance),
        chosen=self._chosen(metrics),
        code=records.code)

  def _chosen(self, metrics: dict[str, float | None]) -> dict[str, Any] | None:
    """The epoch that the stopping rule chose, or the last one."""
    if self._run.stop == 'none' or self._divergence is not None:
      return None
    return self._records.chosen or {'epoch': self.epoch, 'metrics': metrics}

  def _seconds(self) -> dict[str, Any]:
    """The chief's clock."""
    wall = self._earlier_seconds + time.perf_counter() - self._begin
    seconds = json.dumps({
        'wall': wall, 'steps': self._records.step_seconds,
        'epochs': self._records.epoch_seconds})
    return json.loads(
        devices.share_from_chief(self._strategy, seconds.encode()))


def _realised_noise(splits: data.Source) -> dict[str, Any]:
  """Of training and validation labels together."""
  parts = splits.train, splits.validation
  given, true = (
      np.concatenate([getattr(part, name) for part in parts])
      for name in ('given', 'true'))
  both = data.Examples(given, given, true, np.arange(len(given)))
  matrix = both.transition_matrix(splits.num_classes)
  return {'rate': both.rate, 'transition_matrix': matrix.tolist()}


def _model_arrays(
    arrays: dict[str, np.ndarray], *prefixes: str) -> dict[str, np.ndarray]:
  return {name: array for name, array in arrays.items()
          if name.startswith(prefixes or 'model/')}


def _read_off(
    run: runs.Run, prefix: str, result: results.Result,
    code: dict[str, str]) -> results.Result:
  """The result of a run that is another network of a finished one.

  Args:
    run: the run.
    prefix: of the network's quantities.
    result: of the run that has trained both. The objective stays its own.
    code: the fingerprint of the code.
  """
  def own(values):
    return {name.removeprefix(prefix): value for name, value in values.items()
            if name.startswith(prefix) or name in ('loss', trainer_lib.CHANGED)}

  return dataclasses.replace(
      result, key=run.key, run=run.to_dict(),
      hyperparameters=run.resolve_method().hyperparameters(),
      metrics=own(result.metrics), history=own(result.history), weights=None,
      chosen=result.chosen and {
          **result.chosen, 'metrics': own(result.chosen['metrics'])},
      code=code,
      seconds={'wall': 0., 'steps': 0., 'epochs': []})

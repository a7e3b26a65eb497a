"""One training from its start or its last checkpoint to its metrics."""

import dataclasses
import json
import time
from typing import Any

import numpy as np
import tensorflow as tf

from experiments import data
from experiments.training import checkpoints
from experiments.training import environment
from experiments.training import loop as loop_lib
from experiments.training import reports
from experiments.training import results
from experiments.training import runs
from experiments.training import splits as splits_lib
from experiments.training import store as store_lib
from experiments.training import strategies

# Of the time of a run, spent on checkpoints.
_SAVING_SHARE = .05


@dataclasses.dataclass
class _Records:
  """What a run remembers of its epochs, beside the variables."""
  history: dict[str, list[float | None]] = dataclasses.field(
      default_factory=dict)
  epoch_seconds: list[float] = dataclasses.field(default_factory=list)
  step_seconds: float = 0.
  wall_seconds: float = 0.
  best_accuracy: float = -1.

  @property
  def epoch(self) -> int:
    """Number of finished epochs."""
    return len(self.epoch_seconds)


class Training:
  """Drives a `Loop` over its epochs, with checkpoints between them.

  After each epoch, unless that would take more than a twentieth of the time:
  then after some.

  Args:
    run: the run.
    needed: the results of its prerequisites.
    source: the data set.
    strategy: where to compute.
    store: where the checkpoints are.
  """

  def __init__(
      self, run: runs.Run, needed: list[results.Result], source: data.Source,
      strategy: tf.distribute.Strategy, store: store_lib.Store):
    self._begin = time.perf_counter()
    self._run = run
    self._strategy = strategy
    self._store = store
    self._method = run.resolve_method()
    self._divergence = None
    for result in needed:
      self._use(result)
    self._splits = splits_lib.load_splits(run, source=source)
    self._loop = loop_lib.Loop(run, self._method, self._splits, strategy)
    self._records = _Records()
    self._best = {}
    self._next_save = 0.
    self._resume()
    self._earlier_seconds = self._records.wall_seconds

  @property
  def epoch(self) -> int:
    """Number of finished epochs."""
    return self._records.epoch

  @property
  def steps_per_epoch(self) -> int:
    return self._loop.steps_per_epoch

  def train(self, report: reports.Report) -> None:
    """Trains the epochs that are missing."""
    try:
      while self.epoch < self._run.epochs and self._divergence is None:
        self._train_epoch(report)
    except loop_lib.DivergedError as error:
      self._divergence = {
          'epoch': self.epoch + 1, 'quantity': error.quantity}
      report.diverged(**self._divergence)

  def measure(self) -> tuple[results.Result, dict[str, np.ndarray] | None]:
    """The result and the final weights; none of a run that diverged."""
    metrics, estimates, weights = {}, {}, None
    if self._divergence is None:
      try:
        metrics = self._loop.evaluate()
        weights = _model_arrays(self._loop.state())
        estimates = self._estimate_transitions()
      except loop_lib.DivergedError as error:
        metrics, estimates, weights = {}, {}, None
        self._divergence = {'epoch': self.epoch, 'quantity': error.quantity}
    return self._result(metrics, estimates), weights

  def _use(self, result: results.Result) -> None:
    """Takes from the CE run what Forward needs."""
    if result.status == 'diverged':
      self._divergence = {
          'epoch': 0, 'quantity': f'transition matrix: {result.key} diverged'}
      # Some matrix, to make a network with that is never trained.
      self._method = self._method.with_transition(np.eye(result.num_classes))
      return
    estimate = result.transition_estimates[self._method.estimate_from]
    self._method = self._method.with_transition(estimate)

  def _resume(self) -> None:
    state = self._store.resume()
    if state is None:
      return
    self._records = _Records(**state.records)
    self._store.saved = self.epoch
    self._loop.restore(state.arrays)
    self._best = {
        name.removeprefix('best/'): array
        for name, array in state.arrays.items() if name.startswith('best/')}

  def _train_epoch(self, report: reports.Report) -> None:
    records, epoch = self._records, self.epoch
    begin = time.perf_counter()
    record = self._loop.train_epoch(
        epoch, lambda step: report.step(epoch, step))
    records.step_seconds += time.perf_counter() - begin
    record.update(self._loop.validate())
    for name, value in record.items():
      records.history.setdefault(name, []).append(value)
    self._remember_best(record['validation_accuracy_noisy'])
    now = time.perf_counter()
    records.epoch_seconds.append(now - begin)
    records.wall_seconds = self._earlier_seconds + now - self._begin
    if self._is_due(now):
      self._save()
      taken = time.perf_counter() - now
      self._next_save = now + taken / _SAVING_SHARE
    report.epoch(self.epoch, record)

  def _is_due(self, now: float) -> bool:
    """Whether the chief's clock says so: workers that differ would hang."""
    due = now >= self._next_save and strategies.worker(self._strategy)[0] == 0
    return bool(
        strategies.sum_over_workers(self._strategy, np.array([int(due)]))[0])

  def _save(self) -> None:
    best = {f'best/{name}': array for name, array in self._best.items()}
    self._store.save(self.epoch, checkpoints.State(
        {**self._loop.state(), **best}, vars(self._records)))

  def _remember_best(self, accuracy: float | None) -> None:
    """Keeps the weights of the best epoch; only CE runs are asked for them."""
    if self._run.method != 'CE' or accuracy is None:
      return
    if accuracy > self._records.best_accuracy:
      self._records.best_accuracy = accuracy
      self._best = _model_arrays(self._loop.state())

  def _estimate_transitions(self) -> dict[str, list[list[float]]]:
    """What a CE run leaves to Forward."""
    if self._run.method != 'CE':
      return {}
    last = self._loop.estimate_transition()
    self._loop.restore(self._best)
    best = self._loop.estimate_transition()
    return {'last': np.asarray(last).tolist(),
            'best': np.asarray(best).tolist()}

  def _result(
      self, metrics: dict[str, float | None],
      estimates: dict[str, list[list[float]]]) -> results.Result:
    splits, records = self._splits, self._records
    used = None
    if self._divergence is None:
      used = getattr(self._method, 'transition', None)
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
            for v in self._loop.model.trainable_variables),
        transition=None if used is None else np.asarray(used).tolist(),
        transition_estimates=estimates,
        seconds=seconds,
        steps_per_second=(
            self.epoch * self.steps_per_epoch / seconds['steps']
            if self.epoch else 0.),
        versions=environment.versions(),
        device=environment.device(self._strategy),
        weights=None)

  def _seconds(self) -> dict[str, Any]:
    """The chief's clock."""
    wall = self._earlier_seconds + time.perf_counter() - self._begin
    seconds = json.dumps({
        'wall': wall, 'steps': self._records.step_seconds,
        'epochs': self._records.epoch_seconds})
    return json.loads(
        strategies.share_from_chief(self._strategy, seconds.encode()))


def _realised_noise(splits: data.Source) -> dict[str, Any]:
  """Of training and validation labels together."""
  parts = splits.train, splits.validation
  given, true = (
      np.concatenate([getattr(part, name) for part in parts])
      for name in ('given', 'true'))
  both = data.Examples(given, given, true, np.arange(len(given)))
  matrix = both.transition_matrix(splits.num_classes)
  return {'rate': both.rate, 'transition_matrix': matrix.tolist()}


def _model_arrays(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
  return {name: array for name, array in arrays.items()
          if name.startswith('model/')}

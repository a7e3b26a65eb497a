"""What is to be trained, and how it comes to be trained over a pool.

Finished runs are skipped, prerequisites (Forward's CE run) come first, a run
that crashes is tried once more, one whose machine is lost several times, and
several sweeps can share a directory: a run that another one trains is waited
for.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from collections.abc import Iterable
import os
import sys
import time
from typing import Any
from typing import Protocol
from typing import TextIO

from experiments import training
from experiments.sweep import estimates as estimates_lib
from experiments.sweep import logs
from experiments.sweep import progress
from experiments.sweep import store as store_lib
from experiments.training import fingerprint

_TRIES = 2
_LOSSES = 10  # machines that a run may lose; all of them may be going down
_POLL_SECONDS = .5
LONG_SECONDS = 3600.

# 'small' keeps the weights of small networks, see `training.train`.
Predicate = Callable[['training.Run'], bool | str]


def never(run: training.Run) -> bool:
  """The predicate that holds for no run."""
  del run
  return False


class Pool(Protocol):
  """Where runs are trained: `pool.Pool` or `ray_pool.Pool`.

  The last answer of a task has a 'status': 'done', 'busy' (another process
  trains the run), 'failed' or 'died' (the run may be to blame), or 'lost' (it
  is not); those before it tell of its 'progress'.
  """
  slots: int  # tasks at a time; may change

  def submit(self, key: str, task: dict[str, Any]) -> None:
    """Starts a task."""

  def wait(self, seconds: float) -> list[tuple[str, dict[str, Any]]]:
    """The (key, answer) pairs that come within this time."""

  def close(self) -> None:
    """Ends all tasks."""


class Results(dict[str, 'training.Result']):
  """The results by key.

  Attributes:
    failures: the reasons why runs failed, by key.
    remarks: what else a person should know.
  """

  def __init__(self):
    super().__init__()
    self.failures: dict[str, str] = {}
    self.remarks: list[str] = []


class Plan:
  """What is to be trained: the runs that are not finished, and in what order.

  Args:
    runs: the runs, possibly several times; prerequisites are added.
    output_dir: where results are.
    keep_weights: of which runs the weights are kept, where they are trained.
    need_weights: which runs are trained again where their weights are gone.
    retrain: whether results of other code than this are made anew.
  """

  def __init__(
      self, runs: Iterable[training.Run], output_dir: str | os.PathLike,
      keep_weights: Predicate = never, need_weights: Predicate = never,
      retrain: bool = False):
    self.output_dir = output_dir
    self._store = store_lib.Store(output_dir)
    self._keep_weights = keep_weights
    self._need_weights = need_weights
    self.retrain = retrain
    self.results = Results()
    self.pending: dict[str, training.Run] = {}
    with store_lib.reading():
      for run in runs:
        self._add(run)

  def _add(self, run: training.Run) -> None:
    if run.key in self.pending or run.key in self.results:
      return
    if self.collect(run) or run.key in self.results.failures:
      return
    for needed in run.prerequisites():
      self._add(needed)
    self.pending[run.key] = run

  def collect(self, run: training.Run, is_new: bool = False) -> bool:
    """Takes the result of a run from the directory, if it is there.

    Args:
      run: the run.
      is_new: whether it was trained just now, whatever code did that.
    """
    try:
      result = self._store.find(run.key)
    except training.DamagedResultError as error:
      # It may be somebody's: not ours to replace.
      self.results.failures[run.key] = f'{error} Move the file away.'
      return False
    if result is None:
      return False
    if (self.retrain and not is_new
        and fingerprint.differences(result) != ()):
      return False
    if self._need_weights(run) and result.status != 'diverged':
      remark = self._store.remark(result)
      if not self._store.has_weights(result):
        if is_new and remark:
          self.results.failures[run.key] = remark
        return False
      if remark:
        self.results.remarks.append(remark)
    self.results[run.key] = result
    return True

  def keeps_weights(self, run: training.Run) -> bool | str:
    """Whether the weights of a run are kept once it is trained."""
    return self._need_weights(run) or self._keep_weights(run)

  def next(self) -> training.Run | None:
    """Takes the first run that waits for nothing."""
    for run in list(self.pending.values()):
      needed = [other.key for other in run.prerequisites()]
      failed = [key for key in needed if key in self.results.failures]
      if failed:
        self.results.failures[run.key] = f'needs {failed[0]}, which failed'
        del self.pending[run.key]
      elif all(key in self.results for key in needed):
        for key in needed:
          self._store.unpack(key)
        self._store.unpack(run.key)  # its weights alone may be gone
        return self.pending.pop(run.key)
    return None

  def estimate(self) -> estimates_lib.Estimates:
    """Learns how long runs take from all results of the directory."""
    return estimates_lib.Estimates(self._store.entries)

  def problems(self) -> list[str]:
    """Files of the directory that are no results."""
    return [entry.problem for entry in self._store.entries if entry.problem]


class _Sweep:
  """One execution of a plan."""

  def __init__(
      self, plan: Plan, pool: Pool, task: dict[str, Any],
      display: progress.Display):
    self._plan = plan
    self._pool = pool
    self._task = task
    self._display = display
    self._running: dict[str, training.Run] = {}
    self._elsewhere: dict[str, tuple[float, training.Run]] = {}
    self._tries = collections.Counter()
    self._losses = collections.Counter()

  def execute(self) -> None:
    """Until nothing is left to do."""
    while self._plan.pending or self._running or self._elsewhere:
      self._return_from_elsewhere()
      self._start()
      self._display.show(
          len(self._plan.results), len(self._running),
          len(self._plan.results.failures), self._pool.slots)
      for key, answer in self._pool.wait(_POLL_SECONDS):
        self._handle(self._running[key], answer)

  def _start(self) -> None:
    while len(self._running) < self._pool.slots:
      run = self._plan.next()
      if run is None:
        return
      self._running[run.key] = run
      self._pool.submit(run.key, {
          **self._task, 'key': run.key, 'run': run.to_dict(),
          'keep_weights': self._plan.keeps_weights(run)})

  def _handle(self, run: training.Run, answer: dict[str, Any]) -> None:
    if 'progress' in answer:
      self._display.note(run.key, answer['progress'])
      return
    del self._running[run.key]
    self._display.stopped(run.key)
    if answer['status'] == 'busy':
      self._elsewhere[run.key] = (time.monotonic(), run)
    elif answer['status'] == 'done' and self._plan.collect(run, True):
      self._display.finished(self._plan.results[run.key])
    elif run.key not in self._plan.results.failures:
      lost = answer['status'] == 'lost'
      counter, most = (
          (self._losses, _LOSSES) if lost else (self._tries, _TRIES))
      counter[run.key] += 1
      message = answer.get('message', 'left no result') + logs.mention(
          self._plan.output_dir, run.key)
      self._retry(run, message, counter[run.key] < most)

  def _retry(self, run: training.Run, message: str, again: bool) -> None:
    if again:
      self._display.say(f'{run.key}: {message}; trying once more.')
      self._plan.pending[run.key] = run
    else:
      self._display.given_up(run.key, message)
      self._plan.results.failures[run.key] = message

  def _return_from_elsewhere(self) -> None:
    """Looks after the runs that other sweeps train."""
    for key, (since, run) in list(self._elsewhere.items()):
      if self._plan.collect(run):
        self._display.finished(self._plan.results[key])
        del self._elsewhere[key]
      elif key in self._plan.results.failures:
        self._display.given_up(key, self._plan.results.failures[key])
        del self._elsewhere[key]
      elif time.monotonic() - since > 2 * _POLL_SECONDS:
        # Its process may have died: the lock tells.
        del self._elsewhere[key]
        self._plan.pending[key] = run


def execute(
    plan: Plan, pool: Pool | None, *, data_dir: str | None = None,
    strategy: str = 'auto', tensorboard_dir: str | None = None,
    keep_logs: bool = False, in_process: bool = False,
    stream: TextIO | None = None) -> Results:
  """Trains all runs of a plan that are not finished.

  Args:
    plan: the plan.
    pool: where to train; stays open. None will do where all is finished.
    data_dir: where the data sets are.
    strategy: see `training.create_strategy`.
    tensorboard_dir: for TensorBoard logs.
    keep_logs: whether the logs of runs that succeed stay, too.
    in_process: whether the pool is this process: what runs print is seen.
    stream: for the progress; None is stderr.

  Returns:
    The results by key, prerequisites included, and the failures.
  """
  if not plan.pending:
    return plan.results
  task = dict(
      output_dir=os.path.abspath(plan.output_dir), data_dir=data_dir,
      strategy=strategy, tensorboard_dir=tensorboard_dir,
      retrain=plan.retrain, keep_logs=keep_logs, in_process=in_process)
  with progress.Display(
      stream or sys.stderr, plan.pending.values(), len(plan.results),
      plan.estimate()) as display:
    _Sweep(plan, pool, task, display).execute()
  return plan.results

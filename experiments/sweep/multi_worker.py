"""One run at a time on all workers of `TF_CONFIG`: `--strategy=multi_worker`.

Every worker starts the same program. Only the chief calls its `main`, which
decides what is trained, prints and writes; it passes each run on to the others,
which train their part of it and need nothing of the chief's directories.

Training happens in a second thread, so that the first one hears of Ctrl-C even
where TensorFlow waits for another worker. Where a worker ends before the end,
for whatever reason, it ends at once, and TensorFlow tells the others.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent import futures
import functools
import json
import os
import pathlib
import queue
import signal
import sys
from typing import Any
from typing import NoReturn

from absl import flags
from etils import epy

from experiments import data
from experiments import training
from experiments.cli import recipes
from experiments.sweep import locks
from experiments.sweep import logs
from experiments.sweep import worker
from experiments.training import cluster

with epy.lazy_imports():
  import tensorflow as tf

  from experiments.training import devices

FLAGS = flags.FLAGS

Load = Callable[[str], 'data.Source']

flags.DEFINE_float(
    'wait_seconds', 300.,
    'How long the workers of --strategy=multi_worker wait for each other at '
    'the start.')
flags.DEFINE_bool(
    'allow_public_addresses', False,
    'Let the workers of --strategy=multi_worker have addresses of the '
    'internet. TensorFlow obeys whoever reaches their ports.')


class FailedRunError(RuntimeError):
  """A run has failed on this worker; the workers are no longer in step."""


def check_flags() -> None:
  """Refuses what cannot work with several workers."""
  with recipes.naming('strategy'):
    workers = cluster.read()
    if not FLAGS.allow_public_addresses:
      cluster.check_private(workers)
  if FLAGS.jobs not in (None, 1):
    raise recipes.BadFlagError(
        '--jobs: must be 1 with --strategy=multi_worker, where a run takes all '
        f'workers. Received: {FLAGS.jobs}')
  if FLAGS.jit:
    raise recipes.BadFlagError(
        '--jit: not with --strategy=multi_worker, XLA compiles for one device.')


def is_chief() -> bool:
  """Whether this process prints and writes."""
  return cluster.read().index == 0


def call(program: Callable[[], int | None], load: Load) -> int | None:
  """Calls a program on the chief; the other workers train its runs with it.

  Args:
    program: the chief's.
    load: makes a data set of its name.

  Returns:
    The exit status.
  """
  tf.get_logger().setLevel('WARNING')  # it tells of each reduction
  workers = cluster.read()
  try:
    if FLAGS.dry_run:
      return program() if workers.index == 0 else None
    if workers.index == 0:
      return _lead(program, load)
    print(f'{workers.name(workers.index)} of {len(workers.addresses)}: trains '
          f'with the chief, {workers.name(0)}, which prints and writes.',
          file=sys.stderr, flush=True)
    return follow(load)
  except (training.LostWorkerError, FailedRunError) as error:
    _leave(f'{error}', 1)
  except KeyboardInterrupt:
    _leave('interrupted; the same command goes on from here.',
           128 + signal.SIGINT)


def _leave(message: str, status: int) -> NoReturn:
  """Ends this process without TensorFlow's farewell, which takes its time."""
  program = pathlib.Path(sys.argv[0]).stem
  sys.stdout.flush()
  print(f'{program}: {" ".join(message.split())}', file=sys.stderr, flush=True)
  os._exit(status)


def _lead(program, load):
  pool = connect(load)
  try:
    status = program()
  except (training.LostWorkerError, FailedRunError, KeyboardInterrupt):
    raise  # the others notice
  except BaseException as error:
    pool.dismiss(0 if isinstance(error, SystemExit) and not error.code else 1)
    raise
  pool.dismiss(status or 0)
  return status


@functools.cache
def connect(load: Load) -> Pool:
  """The chief's pool; the same for all sweeps of a program."""
  return Pool(_strategy(), load)


def _strategy() -> tf.distribute.Strategy:
  return training.create_strategy(
      'multi_worker', wait_seconds=FLAGS.wait_seconds,
      allow_public=FLAGS.allow_public_addresses)


class Pool:
  """What a sweep needs of `pool.Pool`: one slot, which is all workers.

  Args:
    strategy: of this process, the chief.
    load: makes a data set of its name.
  """
  slots = 1

  def __init__(self, strategy: tf.distribute.Strategy, load: Load):
    self._strategy = strategy
    self._load = load
    self._thread = futures.ThreadPoolExecutor(1)
    self._task = None
    self._answers = queue.SimpleQueue()

  def submit(self, key: str, task: dict[str, Any]) -> None:
    """Starts a task."""
    def tell(told):
      self._answers.put((key, {'progress': told}))

    def perform():
      try:
        return {'status': self._train(task, tell)}
      finally:
        self._answers.put(None)  # wakes `wait`

    self._task = key, self._thread.submit(perform)

  def wait(self, seconds: float) -> list[tuple[str, dict[str, Any]]]:
    """The (key, answer) pair that comes within this time, if one does.

    Raises `LostWorkerError` or `FailedRunError` where the task has failed.
    """
    try:
      answer = self._answers.get(timeout=seconds)
    except queue.Empty:
      return []
    if answer is not None:
      return [answer]
    key, future = self._task
    return [(key, future.result())]

  def trains_on(self) -> str:
    """All workers, for a person."""
    device = devices.describe(self._strategy)
    return (f'{device["workers"]} workers with {device["replicas"]} '
            f'{device["kind"]}s ({device["name"]})')

  def close(self) -> None:
    """Does nothing: the workers stay for the next sweep until `dismiss`."""

  def dismiss(self, status: int) -> None:
    """Lets the other workers end."""
    self._thread.submit(self._tell_all, {'status': status}).result()
    self._thread.shutdown()

  def _train(self, task: dict[str, Any], tell: worker.Tell) -> str:
    with locks.hold(task['output_dir'], task['key']) as free:
      if not free:
        return 'busy'
      self._tell_all(task)
      _train(task, self._strategy, self._load, tell)
    return 'done'

  def _tell_all(self, message: dict[str, Any]) -> None:
    _share(self._strategy, json.dumps(message).encode())


def follow(load: Load) -> int:
  """Trains what the chief says, until it says the exit status."""
  strategy = _strategy()

  def serve():
    while True:
      message = json.loads(_share(strategy, None))
      if 'status' in message:
        return message['status']
      _train(message, strategy, load)

  status = futures.ThreadPoolExecutor(1).submit(serve).result()
  if status:
    print(f'The chief has ended with status {status}.', file=sys.stderr)
  return status


def _share(strategy, content):
  with devices.naming_lost_workers(
      strategy, lambda: 'Start the same command on all workers again.'):
    return devices.share_from_chief(strategy, content)


def _train(task, strategy, load, tell=lambda told: None):
  run = training.Run.from_dict(task['run'])
  try:
    with devices.forgetting_gradients():
      training.train(
          run, source=load(run.dataset), output_dir=task['output_dir'],
          strategy=strategy, progress=worker.telling(run, tell),
          keep_weights=task['keep_weights'],
          tensorboard_dir=task['tensorboard_dir'], retrain=task['retrain'],
          warn=lambda text: tell({'warning': text}))
  except training.LostWorkerError:
    raise
  except Exception as error:  # of the data, the disk, a setting, ...
    if devices.worker(strategy)[0] == 0:
      logs.save_traceback(task)
    raise FailedRunError(
        f'{task["key"]}: {type(error).__name__}: {error} The other workers '
        'end, too.') from error

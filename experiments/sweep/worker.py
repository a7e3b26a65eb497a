"""A process of the pool: trains the runs that it is sent, one at a time.

Tasks come on standard input, answers go to standard output, a JSON document a
line. Where the input ends the process ends, too, in the middle of a training if
need be: a sweep leaves no orphans, however it ends itself.
"""

from __future__ import annotations

from collections.abc import Callable
import functools
import gc
import json
import os
import pkgutil
import queue
import signal
import sys
import threading
import traceback
from typing import Any

from etils import epy

from experiments import data
from experiments import training
from experiments.sweep import locks
from experiments.sweep import logs
from experiments.sweep import machine

with epy.lazy_imports():
  import tensorflow as tf

  from experiments.training import devices

# Sends what a task says of itself while it runs.
Tell = Callable[[dict[str, Any]], None]


class Growth:
  """How much this process has grown since its first run."""

  def __init__(self):
    self._first = None

  def exceeds(self, limit: int) -> bool:
    """Whether it is more than that many bytes, after a run.

    The leak that was large is mended, see `devices.forgetting_gradients`; what
    is left, a sixth of a megabyte a run, is TensorFlow's and the allocator's.
    """
    gc.collect()  # networks are cycles: half of what a run leaves behind
    size = machine.resident_bytes()
    if self._first is None:
      self._first = size
      gc.freeze()  # or TensorFlow's half a million objects are looked through
    return size - self._first > limit


def serve(perform: Callable[[dict[str, Any], Tell], str]) -> None:
  """Performs tasks, one after the other, until the input ends.

  Args:
    perform: called with a task and `Tell`; returns the status that is answered.
      An exception is answered as the status 'failed' with a message.
  """
  signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the sweep's
  answers = os.fdopen(os.dup(1), 'w', encoding='utf-8')
  os.dup2(2, 1)  # whatever a library prints is no answer

  def answer(**document):
    answers.write(json.dumps(document) + '\n')
    answers.flush()

  tasks, growth = queue.Queue(), Growth()
  threading.Thread(target=_read, args=(tasks,), daemon=True).start()
  while True:
    task = tasks.get()
    try:
      last = {'status': perform(task, lambda told: answer(progress=told))}
    except Exception as error:  # pylint: disable=broad-except
      traceback.print_exc()
      last = {'status': 'failed', 'message': f'{type(error).__name__}: {error}'}
    # A run that is trained elsewhere leaves nothing behind here.
    is_worn_out = last['status'] != 'busy' and growth.exceeds(
        task['growth_bytes'])
    answer(**last, **({'is_worn_out': True} if is_worn_out else {}))


def _read(tasks: queue.Queue) -> None:
  for line in sys.stdin:
    tasks.put(json.loads(line))
  os._exit(0)  # the main thread may be deep in TensorFlow


def telling(run: training.Run, tell: Tell):
  """What `training.train` calls after each epoch, to pass it on."""
  return lambda epoch, record: tell({
      'epoch': epoch, 'epochs': run.epochs, 'loss': record['loss'],
      'accuracy': record['validation_accuracy_noisy']})


@functools.lru_cache(maxsize=1)
def _source(dataset: str, data_dir: str | None) -> data.Source:
  return data.load(dataset, data_dir=data_dir)


@functools.cache
def _strategy(name: str) -> tf.distribute.Strategy:
  return training.create_strategy(name)


def perform(task: dict[str, Any], tell: Tell) -> str:
  """Trains a run, or calls a function that the task names.

  Args:
    task: of a run, see `train`; or 'call', a function as MODULE:NAME, with its
      'arguments' by name, and 'output_dir' and 'key' for its log.
    tell: for the progress of a run.
  """
  if 'call' not in task:
    return train(task, tell)
  with logs.writing(task):
    pkgutil.resolve_name(task['call'])(**task['arguments'])
  return 'done'


def train(task: dict[str, Any], tell: Tell) -> str:
  """Trains a run unless another process does; returns 'done' or 'busy'."""
  with locks.hold(task['output_dir'], task['key']) as free:
    if not free:
      return 'busy'
    if task.get('in_process'):  # its user is watching
      train_alone(task, tell)
      return 'done'
    with logs.writing(task):
      train_alone(task, tell)
  return 'done'


def train_alone(task: dict[str, Any], tell: Tell) -> None:
  """Trains a run that is locked for us."""
  run = training.Run.from_dict(task['run'])
  with devices.forgetting_gradients():
    training.train(
        run, source=_source(run.dataset, task['data_dir']),
        output_dir=task['output_dir'], strategy=_strategy(task['strategy']),
        progress=telling(run, tell), keep_weights=task['keep_weights'],
        tensorboard_dir=task['tensorboard_dir'], retrain=task['retrain'],
        warn=lambda text: tell({'warning': text}))


if __name__ == '__main__':
  serve(perform)

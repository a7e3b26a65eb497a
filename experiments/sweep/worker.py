"""A process of the pool: trains the runs that it is sent, one at a time."""

from __future__ import annotations

import functools
from typing import Any

from etils import epy

from experiments import data
from experiments import training
from experiments.sweep import locks
from experiments.sweep import service

with epy.lazy_imports():
  import tensorflow as tf


class Progress:
  """A text stream that passes on what a run says of itself."""

  def __init__(self, tell: service.Tell):
    self._tell = tell

  def isatty(self) -> bool:
    return False

  def write(self, text: str) -> None:
    if text.strip():
      self._tell(text.strip())

  def flush(self) -> None:
    pass


@functools.lru_cache(maxsize=1)
def _source(dataset: str, data_dir: str | None) -> data.Source:
  return data.load(dataset, data_dir=data_dir)


@functools.cache
def _strategy(name: str) -> tf.distribute.Strategy:
  return training.create_strategy(name)


def train(task: dict[str, Any], tell: service.Tell) -> str:
  """Trains a run unless another process does; returns 'done' or 'busy'."""
  with locks.hold(task['output_dir'], task['key']) as free:
    if not free:
      return 'busy'
    train_alone(task, tell)
  return 'done'


def train_alone(task: dict[str, Any], tell: service.Tell) -> None:
  """Trains a run that is locked for us."""
  run = training.Run.from_dict(task['run'])
  training.train(
      run, source=_source(run.dataset, task['data_dir']),
      output_dir=task['output_dir'], strategy=_strategy(task['strategy']),
      progress=Progress(tell), keep_weights=task['keep_weights'],
      tensorboard_dir=task['tensorboard_dir'])


if __name__ == '__main__':
  service.serve(train)

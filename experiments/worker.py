"""A process of the pool: trains the runs that it is sent, one at a time.

It reads tasks from its standard input and answers on its standard output, one
JSON document a line; see `pool.Pool`. Where the input ends, it ends, too, in
the middle of a training if need be: a sweep leaves no orphans.
"""

import functools
import json
import os
import queue
import signal
import sys
import threading
import traceback
from typing import Any
from typing import TextIO

from experiments import locks
from ln_tfp import data
from ln_tfp import training


class _Epochs:
  """A text stream that passes on the progress of a run."""

  def __init__(self, answers: TextIO):
    self._answers = answers

  def isatty(self) -> bool:
    return False

  def write(self, text: str) -> None:
    if text.strip():
      answer(self._answers, progress=text.strip())

  def flush(self) -> None:
    pass


def answer(stream: TextIO, **document: Any) -> None:
  """Sends one document."""
  stream.write(json.dumps(document) + '\n')
  stream.flush()


@functools.lru_cache(maxsize=1)
def _source(dataset: str, data_dir: str | None) -> data.Source:
  return data.load(dataset, data_dir=data_dir)


@functools.cache
def _strategy(name: str):
  return training.create_strategy(name)


def train(task: dict[str, Any], answers: TextIO) -> str:
  """Trains a run unless another process does; returns 'done' or 'busy'."""
  run = training.Run.from_dict(task['run'])
  with locks.hold(task['output_dir'], run.key) as free:
    if not free:
      return 'busy'
    training.train(
        run, source=_source(run.dataset, task['data_dir']),
        output_dir=task['output_dir'], strategy=_strategy(task['strategy']),
        progress=_Epochs(answers), keep_weights=task['keep_weights'],
        tensorboard_dir=task['tensorboard_dir'])
  return 'done'


def _read(tasks: queue.Queue) -> None:
  """Reads tasks; ends the process with its input."""
  for line in sys.stdin:
    tasks.put(json.loads(line))
  os._exit(0)  # the main thread may be deep in TensorFlow


def main() -> None:
  signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the sweep's
  answers = os.fdopen(os.dup(1), 'w', encoding='utf-8')
  os.dup2(2, 1)  # whatever a library prints is no answer
  tasks = queue.Queue()
  threading.Thread(target=_read, args=(tasks,), daemon=True).start()
  while True:
    task = tasks.get()
    try:
      answer(answers, status=train(task, answers))
    except Exception as error:  # pylint: disable=broad-except
      traceback.print_exc()
      answer(answers, status='failed',
             message=f'{type(error).__name__}: {error}')


if __name__ == '__main__':
  main()

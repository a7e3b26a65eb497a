"""A worker that trains nothing: it does what `OUTPUT_DIR/script.json` says.

The script maps methods to 'finish' (also the default), 'diverge', 'raise',
'exit', 'exit once', 'kill', 'nothing' (no result) or 'sleep SECONDS'. Starts
and ends are noted in `OUTPUT_DIR/log`, with the process.
"""

import json
import os
import pathlib
import signal
import time

from experiments.sweep import locks
from experiments.sweep import logs
from experiments.sweep import worker


def document(run, key, status='finished', accuracy=.9, validation=.5,
             earlier=.5):
  """A complete result, as a dictionary."""
  return {
      'key': key, 'run': run, 'hyperparameters': {}, 'options': {},
      'status': status,
      'divergence': None if status == 'finished' else {
          'epoch': 1, 'quantity': 'loss'},
      'metrics': {} if status == 'diverged' else {
          'test_accuracy': accuracy, 'validation_accuracy_noisy': validation},
      'history': {
          'loss': [1., 1.],
          'validation_accuracy_noisy': [earlier, validation]},
      'noise': {'rate': 0.}, 'examples': {},
      'num_classes': 10, 'input_shape': [8, 8, 1], 'parameters': 1,
      'transition': None, 'transition_estimates': {},
      'seconds': {'wall': 2., 'steps': 1., 'epochs': [1., 1.]},
      'steps_per_second': 1., 'versions': {'tensorflow': '2'},
      'device': {'name': 'CPU'}, 'weights': None}


def perform(task, tell):
  directory = pathlib.Path(task['output_dir'])
  with locks.hold(directory, task['key']) as free:
    if not free:
      return 'busy'
    if not (directory / f'{task["key"]}.json').exists():
      train_alone(task, tell)
  return 'done'


def train_alone(task, tell):
  directory = pathlib.Path(task['output_dir'])
  method, key = task['run']['method'], task['key']
  script = directory / 'script.json'
  script = json.loads(script.read_text()) if script.exists() else {}
  action, _, argument = script.get(method, 'finish').partition(' ')
  _note(directory, 'start', method)
  tell({'epoch': 1, 'epochs': 2, 'loss': 1., 'accuracy': .5})
  tried = directory / f'{method}.tried'
  if action == 'exit' and not (argument and tried.exists()):
    tried.touch()
    os._exit(3)
  if action == 'kill':
    os.kill(os.getpid(), signal.SIGKILL)
  with logs.writing(task):
    if action == 'raise':
      raise ArithmeticError('out of numbers')
  if action == 'sleep':
    time.sleep(float(argument))
  if action != 'nothing':
    status = 'diverged' if action == 'diverge' else 'finished'
    partial = directory / f'{key}.partial'
    partial.write_text(json.dumps(document(task['run'], key, status)))
    partial.rename(directory / f'{key}.json')
  _note(directory, 'end', method)


def _note(directory, *words):
  with (directory / 'log').open('a') as log:
    log.write(' '.join([*words, str(os.getpid())]) + '\n')


if __name__ == '__main__':
  worker.serve(perform)

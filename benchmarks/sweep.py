"""The pool of a sweep beside the same runs one after the other.

Three columns of the digits table (nine methods, one seed) through the pool with
one worker a core, and through `training.train` in one process, which has all
cores to itself. Both start from nothing, TensorFlow's import included.
Takes about five minutes on two idle cores.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time

from benchmarks import timing
from experiments import methods
from experiments import training
from experiments.paper import tuned
from experiments.sweep import machine
from experiments.sweep import plan as plan_lib
from experiments.sweep import pool as pool_lib

_NOISES = ('none', 'sym:0.4', 'asym:0.4')


def make_runs() -> list[training.Run]:
  """The runs of the table."""
  runs = []
  for noise in _NOISES:
    for name in methods.NAMES:
      method = tuned.method(name, 'digits', noise)
      runs.append(training.Run(
          method=name, noise=noise,
          hyperparameters=method.hyperparameters()))
  return runs


def train_in_turn(output_dir: str) -> None:
  """Trains all runs in this process."""
  for run in make_runs():
    training.train(run, output_dir=output_dir)


def measure() -> list[timing.Row]:
  """All rows."""
  cores = machine.cores()
  with tempfile.TemporaryDirectory() as pooled, (
      tempfile.TemporaryDirectory()) as serial:
    begin = time.perf_counter()
    with contextlib.closing(pool_lib.Pool()) as pool:
      results = plan_lib.execute(
          plan_lib.Plan(make_runs(), pooled), pool, stream=io.StringIO())
    together = time.perf_counter() - begin
    begin = time.perf_counter()
    subprocess.run(
        [sys.executable, '-c',
         f'from {__name__} import *; train_in_turn({serial!r})'],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    alone = time.perf_counter() - begin
    in_turn = sum(
        training.read_result(os.path.join(serial, f'{key}.json')).seconds[
            'wall'] for key in results)
  busy = sum(result.seconds['wall'] for result in results.values())
  detail = json.dumps({
      'pool': round(together), 'in turn': round(alone),
      'training in the pool': round(busy),
      'training in turn': round(in_turn)})[1:-1].replace('"', '')
  return [timing.Row(
      f'in turn / pool, {len(results)} runs of the digits table, {cores} cores',
      alone / together, goal='>= 1.7', detail=f'seconds: {detail}')]

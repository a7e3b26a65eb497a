"""What Ray costs a run: a thousand runs that train nothing.

    python -m benchmarks.ray_overhead [RUNS]

Sweep, locks, tasks, answers and files are the real ones; only the training is
replaced by a made-up result of the usual size. The same runs are swept without
Ray, in this very process: the difference is Ray's, and that after each run its
workers collect garbage and look at their growth, as those of a local sweep do.
A first round starts all workers (Ray, TensorFlow), which is told apart.
Takes about two minutes on two idle cores.
"""

import contextlib
import dataclasses
import io
import os
import statistics
import sys
import tempfile
import time

from experiments import training
from experiments.sweep import plan as plan_lib
from experiments.sweep import ray_pool

_RUNS = 1000


def train_alone(task, tell):
  """In place of that of `experiments.worker`."""
  tell({'epoch': 1, 'epochs': 1, 'loss': 1., 'accuracy': .5})
  numbers = [1.] * 100
  result = training.Result(
      key=task['key'], run=task['run'], hyperparameters={}, options={},
      status='finished', divergence=None, metrics={'test_accuracy': .5},
      history={'loss': numbers, 'accuracy': numbers}, noise={}, examples={},
      num_classes=10, input_shape=[8, 8, 1], parameters=1, transition=None,
      transition_estimates={}, seconds={'wall': 1., 'steps': 1., 'epochs': []},
      steps_per_second=1., versions={}, device={}, weights=None)
  training.write_result(result, task['output_dir'])


class _RayPool(ray_pool.Pool):
  """Notes when runs end."""

  def __init__(self):
    super().__init__(module='benchmarks.ray_overhead')
    self.ends = []

  def wait(self, seconds):
    answers = super().wait(seconds)
    self.ends += [time.perf_counter() for _, answer in answers
                  if 'status' in answer]
    return answers


class _PoolOfNone:
  """Does everything at once, in this process."""
  slots = 1

  def __init__(self):
    self._answers = []
    self.ends = []

  def submit(self, key, task):
    train_alone(task, lambda text: None)
    self.ends.append(time.perf_counter())
    self._answers.append((key, {'status': 'done'}))

  def wait(self, seconds):
    del seconds
    answers, self._answers = self._answers, []
    return answers

  def close(self):
    pass


def sweep_all(pool: plan_lib.Pool, runs: list[training.Run]) -> float:
  """Seconds for all runs."""
  with tempfile.TemporaryDirectory() as directory:
    start = time.perf_counter()
    results = plan_lib.execute(
        plan_lib.Plan(runs, directory), pool, stream=io.StringIO())
    seconds = time.perf_counter() - start
  if len(results) != len(runs):
    raise RuntimeError(f'Not all runs have finished: {results.failures}')
  return seconds


def main():
  number = int(sys.argv[1]) if len(sys.argv) > 1 else _RUNS
  runs = [dataclasses.replace(training.Run(method='CE'), seed=seed)
          for seed in range(number)]
  for name, make in (('no Ray', _PoolOfNone), ('Ray', _RayPool)):
    start = time.perf_counter()
    with contextlib.closing(make()) as pool:
      sweep_all(pool, runs[:2 * pool.slots])
      ready = time.perf_counter() - start
      pool.ends.clear()
      seconds = sweep_all(pool, runs)
      median = statistics.median(
          after - before for before, after in zip(pool.ends, pool.ends[1:]))
      print(f'{name}: {pool.slots} at a time, ready after {ready:.1f} s, '
            f'{number} runs in {seconds:.1f} s: mean '
            f'{1e3 * seconds / number:.1f}, median {1e3 * median:.1f} ms a run '
            f'(load {os.getloadavg()[0]:.1f}).', flush=True)


if __name__ == '__main__':
  main()

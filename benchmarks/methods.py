"""What each method costs: its training step and its state beside CE's.

All methods take turns, with the hyperparameters that were tuned for digits with
40 % symmetric noise. The state is what a checkpoint keeps: weights, optimiser,
averages, rows by example. Not among them: Forward, which takes a whole run of
CE before its own, and SGN-EMA, a reading of SGN's run.

Takes about ten minutes on two idle cores.
"""

import dataclasses

from benchmarks import step
from benchmarks import timing
from experiments import methods
from experiments import training
from experiments.paper import tuned
from experiments.training import devices
from experiments.training import trainer as trainer_lib

_NAMES = [name for name in methods.NAMES if name not in ('Forward', 'SGN-EMA')]
_NOISE = 'sym:0.4'


def make_run(name: str, **settings) -> training.Run:
  """A run of a method with what was tuned for digits."""
  return training.Run(
      method=name, noise=_NOISE, hyperparameters=dataclasses.asdict(
          tuned.method(name, 'digits', _NOISE)), **settings)


def measure() -> list[timing.Row]:
  """All rows."""
  digits = training.load_splits(training.Run(method='CE', noise=_NOISE))
  images = step.random_splits((28, 28, 1), 10, 20 * 256)
  lenet = dict(dataset='mnist', model='lenet5', batch_size=256)
  return [
      *measure_network('MLP on digits', {}, digits, epochs=3, rounds=12),
      *measure_network('LeNet-5', lenet, images, epochs=1, rounds=6)]


def measure_network(title, settings, splits, epochs, rounds):
  """A row for each method but CE."""
  runs = {name: make_run(name, **settings) for name in _NAMES}
  times = timing.take_turns(
      {name: step.make_loop(run, splits, epochs)
       for name, run in runs.items()}, rounds)
  sizes = {name: state_size(run, splits) for name, run in runs.items()}
  rows = []
  for name in _NAMES[1:]:
    row = timing.ratio(f'{name} / CE, {title}', times, name, 'CE')
    rows.append(dataclasses.replace(
        row, detail=f'{row.detail}; state {sizes[name] / sizes["CE"]:.2f}'))
  return rows


def state_size(run: training.Run, splits) -> int:
  """Bytes of what a checkpoint of a run keeps."""
  loop = trainer_lib.Trainer(
      run, run.resolve_method(), splits, devices.create('one'))
  return sum(array.nbytes for array in loop.state().values())

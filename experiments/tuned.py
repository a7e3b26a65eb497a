"""Tuned hyperparameters: the paper's, and ours where the paper has none.

Ours are winners of the same search (`python -m experiments.hyperparameters`),
in files of the same form, `experiments/tuned/*.csv`.
"""

import csv
import dataclasses
import functools
import pathlib
from typing import Any

from experiments import pairs
from experiments import published
from ln_tfp import data
from ln_tfp import methods

DIRECTORY = pathlib.Path(__file__).resolve().parent / 'tuned'
# The paper's tables are of the data sets on the right.
_AS = {'fashion_mnist': 'mnist'}
_MNIST_LAMBDA = .316


class NotTunedError(ValueError):
  """There are no tuned hyperparameters for what was asked."""


def method(
    name: str, dataset: str, noise: str, *,
    printed_lambda: bool = False) -> methods.Method:
  """A method with the hyperparameters tuned for a data set and noise.

  Args:
    name: of the method.
    dataset: of the data set.
    noise: as in `training.Run`.
    printed_lambda: take LN's lambda on MNIST as the paper's table prints it.
      By default its 0.1 is read as lambda^2, see docs/protocol.md.
  """
  first, *others = type(methods.get(name)).grid(dataset)
  if not others:
    return first  # nothing to tune
  noise = str(data.parse_noise(noise))
  key = _AS.get(dataset, dataset), name, noise
  if key in published.hyperparameters():
    values = dict(published.hyperparameters()[key])
    if values.get('min_scale') == .1 and not printed_lambda:
      values['min_scale'] = _MNIST_LAMBDA  # only MNIST's block has it
  elif key in ours():
    values = ours()[key]
  else:
    raise NotTunedError(
        f'{name} has no tuned hyperparameters for {dataset} with noise '
        f'{noise}; search for them with --search.')
  return dataclasses.replace(first, **values)


@functools.cache
def ours() -> dict[tuple[str, str, str], dict[str, Any]]:
  """(dataset, method, noise) -> the winners of our search."""
  winners = {}
  for file in sorted(DIRECTORY.glob('*.csv')):
    with file.open(encoding='utf-8', newline='') as stream:
      for row in csv.DictReader(stream):
        key = row['dataset'], row['method'], row['noise']
        winners[key] = pairs.parse(row['hyperparameters'])
  return winners

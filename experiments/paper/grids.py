"""What the paper's tables and figures are of, and the runs behind them."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any

from experiments import training

Place = tuple[str, str]  # (row, column) of a table
Cells = dict[Place, list['training.Run']]

# In the order of the tables. Other methods are asked for by name.
METHODS = ('CE', 'GCE', 'NAN', 'Forward', 'LS', 'Het', 'Het-tau',
           'Het-tau-Sigma', 'LN')
# With hyperparameters to search for, in the order of that table.
SEARCHED = ('Het-tau', 'Het-tau-Sigma', 'NAN', 'GCE', 'LS', 'LN')

SYNTHETIC_DATASETS = ('digits', 'mnist', 'fashion_mnist', 'cifar10', 'cifar100')
SYMMETRIC = ('sym:0.2', 'sym:0.4', 'sym:0.6')
ASYMMETRIC = ('asym:0.2', 'asym:0.3', 'asym:0.4')
SYNTHETIC_NOISES = ('none', *SYMMETRIC, *ASYMMETRIC)

_FIVE = ('human:random1', 'human:random2', 'human:random3', 'human:aggregate',
         'human:worst')
# The training labels of Clothing1M are noisy as they are.
NATURAL_NOISES = {'digits_n': _FIVE, 'cifar10n': _FIVE,
                  'cifar100n': ('human:noisy',), 'clothing1m': ('none',)}

ABLATION_NOISES = {'digits_n': 'human:worst', 'cifar10n': 'human:worst',
                   'cifar100n': 'human:noisy'}
# Row, as in the files of tuned hyperparameters -> settings of LN.
ABLATION_ROWS = {
    'LN-identity': dict(covariance='identity'),
    'LN-isotropic': dict(covariance='isotropic'),
    'LN-diagonal': dict(covariance='diagonal'),
    'LN': dict(covariance='full'),
    'LN-no-dummy': dict(covariance='full', dummy_class=False),
}

# Data set with annotators -> the one that is trained on.
CALIBRATION_DATASETS = {'digits_n': 'digits', 'cifar10n': 'cifar10'}
CALIBRATION_METHODS = ('Het-tau-Sigma', 'CE', 'GCE', 'NAN', 'LN')
ANNOTATORS = ('random1', 'random2', 'random3')

TOY_DATASETS, TOY_NOISE = ('two_moons', 'circles'), 'asym:0.2'
EVOLUTION_METHODS, EVOLUTION_NOISES = ('Het-tau-Sigma', 'LN'), SYMMETRIC
SENSITIVITY_NOISE = SMOOTHING_NOISE = 'sym:0.4'
RESIDUALS_MAIN, RESIDUALS_LOG, RESIDUALS_SYMMETRIC = (
    'asym:0.2', 'sym:0.4', 'sym:0.2')
RESIDUALS_HUMAN = ('human:aggregate', 'human:random2', 'human:worst')


def seeded(
    chosen: Mapping[Place, training.Run], seeds: Sequence[int]) -> Cells:
  """The runs of each cell: the chosen one with all seeds."""
  return {
      place: [dataclasses.replace(run, seed=seed) for seed in seeds]
      for place, run in chosen.items()}


def flat(cells: Mapping[Any, Iterable[training.Run]]) -> list[training.Run]:
  """All runs of a table or figure."""
  return [run for runs in cells.values() for run in runs]


def serves_calibration(run: training.Run) -> bool:
  """Whether the calibration table needs the weights of a run."""
  return (run.dataset in CALIBRATION_DATASETS.values() and run.noise == 'none'
          and run.method in CALIBRATION_METHODS)

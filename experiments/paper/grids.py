"""What the paper's tables and figures are of, and the runs behind them."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any

from experiments import training
from experiments.data import registry

Place = tuple[str, str]  # (row, column) of a table
Cells = dict[Place, list['training.Run']]

# In the order of the tables. Other methods are asked for by name.
METHODS = ('CE', 'GCE', 'NAN', 'Forward', 'LS', 'Het', 'Het-tau',
           'Het-tau-Sigma', 'LN')
# With hyperparameters to search for, in the order of that table.
SEARCHED = ('Het-tau', 'Het-tau-Sigma', 'NAN', 'GCE', 'LS', 'LN')

TOY_DATASETS, TOY_NOISE = ('two_moons', 'circles'), 'asym:0.2'
_TRAITS = {name: registry.traits(name) for name in registry.NAMES}

SYNTHETIC_DATASETS = tuple(
    name for name, traits in _TRAITS.items()
    if traits.mapping and not traits.label_sets and name not in TOY_DATASETS)
SYMMETRIC = ('sym:0.2', 'sym:0.4', 'sym:0.6')
ASYMMETRIC = ('asym:0.2', 'asym:0.3', 'asym:0.4')
SYNTHETIC_NOISES = ('none', *SYMMETRIC, *ASYMMETRIC)

_HUMAN = {
    name: tuple(f'human:{labels}' for labels in traits.label_sets)
    for name, traits in _TRAITS.items() if traits.label_sets}
# Some data sets' training labels are noisy as they are.
NATURAL_NOISES = _HUMAN | {
    name: ('none',) for name, traits in _TRAITS.items() if traits.given_name}

ABLATION_NOISES = {name: noises[-1] for name, noises in _HUMAN.items()}
# Row, as in the files of tuned hyperparameters -> settings of LN.
ABLATION_ROWS = {
    'LN-identity': dict(covariance='identity'),
    'LN-isotropic': dict(covariance='isotropic'),
    'LN-diagonal': dict(covariance='diagonal'),
    'LN': dict(covariance='full'),
    'LN-no-dummy': dict(covariance='full', dummy_class=False),
}

ANNOTATORS = ('random1', 'random2', 'random3')
# Data set with annotators -> the one that is trained on.
CALIBRATION_DATASETS = {
    name: traits.clean for name, traits in _TRAITS.items()
    if set(ANNOTATORS) <= set(traits.label_sets)}
CALIBRATION_METHODS = ('Het-tau-Sigma', 'CE', 'GCE', 'NAN', 'LN')

EVOLUTION_METHODS, EVOLUTION_NOISES = ('Het-tau-Sigma', 'LN'), SYMMETRIC
SENSITIVITY_NOISE = SMOOTHING_NOISE = 'sym:0.4'
RESIDUALS_MAIN, RESIDUALS_LOG, RESIDUALS_SYMMETRIC = (
    'asym:0.2', 'sym:0.4', 'sym:0.2')
# Which terms are followed from the middle panel to the right one.
RESIDUALS_ENDS = ('the lowest tenth of right labels',
                  'the highest tenth of right labels',
                  'the highest tenth of wrong labels')
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

"""The estimates of time and the page that states them are one."""

import pathlib
import re
import statistics

from absl.testing import flagsaver
import pytest

from experiments import training
from experiments.cli import recipes
from experiments.sweep import estimates
from experiments.sweep import store

_ROOT = pathlib.Path(__file__).resolve().parents[3]
_PAGE = _ROOT / 'docs' / 'scaling.md'


@pytest.mark.parametrize('dataset, row', [
    ('digits', r'synthetic noise \| digits'), ('mnist', r' MNIST'),
    ('cifar10', ' CIFAR-10, CIFAR-100, each')])
def test_the_page_says_what_a_dry_run_says(dataset, row):
  with flagsaver.flagsaver():
    recipes.parse(['program', f'--dataset={dataset}'])
    seconds = estimates.Estimates().seconds(recipes.base_run())
  line = re.search(
      rf'^\|.*{row} \| (\d+) .*? \| .*? \| (.*?) \| (.*?) \|$',
      _PAGE.read_text(encoding='utf-8'), re.M)
  assert line[2] == estimates.duration(seconds)
  units = {'min': 60, 'days': 86400, 'years': 365 * 86400}
  amount, unit = line[3].split()
  assert int(line[1]) * seconds / 2 == pytest.approx(
      float(amount) * units[unit], rel=.05)


@pytest.mark.parametrize('dataset, epochs', [
    ('digits', 100), ('digits_n', 100), ('mnist', 100), ('two_moons', 2000)])
def test_the_first_estimate_is_that_of_the_stored_runs(dataset, epochs):
  stored = store.read(_ROOT / 'results' / 'evidence' / f'{dataset}.zip')
  whole = [result for result in stored.values()
           if result.run['epochs'] == epochs]
  first = estimates.Estimates()
  # The median: some were trained beside much other work.
  ratio = statistics.median(
      result.seconds['wall'] / first.seconds(
          training.Run.from_dict(result.run)) for result in whole)
  assert 1 / 1.5 < ratio < 1.5

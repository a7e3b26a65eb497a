"""The estimates of time and the page that states them are one."""

import pathlib
import re

from absl.testing import flagsaver
import pytest

from experiments.cli import recipes
from experiments.sweep import estimates

_PAGE = pathlib.Path(__file__).resolve().parents[3] / 'docs' / 'scaling.md'


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
  units = {'min': 60, 'h': 3600, 'years': 365 * 86400}
  amount, unit = line[3].split()
  assert int(line[1]) * seconds / 2 == pytest.approx(
      float(amount) * units[unit], rel=.05)

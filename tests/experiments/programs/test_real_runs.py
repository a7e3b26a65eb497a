"""Tables of real runs, through the command line."""

import pathlib
import re
import subprocess
import sys

import pytest

from experiments import calibration
from tests.experiments.programs import calling

_ROOT = pathlib.Path(__file__).resolve().parents[3]

pytestmark = [pytest.mark.slow, pytest.mark.thorough]


@pytest.fixture(name='directory', scope='module')
def _directory(tmp_path_factory):
  return tmp_path_factory.mktemp('results')


@pytest.fixture(name='done', scope='module')
def _done(directory):
  """The program as a user calls it, with a worker process."""
  return subprocess.run(
      [sys.executable, '-m', 'experiments.synthetic_noise', '--epochs=3',
       '--jobs=1', '--methods=CE,Forward,LN', '--noise=none',
       f'--output_dir={directory}'],
      cwd=_ROOT, capture_output=True, text=True, check=True)


def test_the_terminal_shows_nothing_but_the_sweep_and_the_table(done):
  lines = done.stderr.splitlines()
  assert sum(line.startswith('Trains on ') for line in lines) == 1
  assert all(
      ' runs' in line or line.startswith('Trains on ') for line in lines), lines
  assert done.stdout.startswith('Test accuracy')
  assert re.search(r'^Forward +\d\d\.\d\d', done.stdout, re.M)


def test_calibration_finds_the_weights_that_the_table_has_kept(
    done, directory):
  del done
  assert len(list(directory.glob('*.json'))) == 3
  # Of the first seed of small networks all weights are kept.
  assert len(list(directory.glob('*.npz'))) == 3
  status, output, errors = calling.call(
      calibration, '--epochs=3', '--methods=CE,LN', '--dataset=digits_n',
      f'--output_dir={directory}')
  assert status == 0
  assert '2 runs finished before, 0 to train' in errors
  assert re.search(r'^LN +\d\.\d\d', output, re.M)

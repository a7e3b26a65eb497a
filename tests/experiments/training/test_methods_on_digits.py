"""The paper's point on a data set that comes along: LN learns through noise."""

import pytest

from experiments import data
from experiments import methods
from experiments import training

pytestmark = [pytest.mark.slow, pytest.mark.thorough]
# Clean labels need no noise on the targets: the least one of the grid. And
# the official moving average is one of many more steps; co-teaching is told the
# rate of the noise.
_CLEAN = {
    'NAN': {'sigma': .1}, 'SGN-EMA': {'decay': .99},
    'co-teaching': {'noise_rate': 0.},
    'ANL-CE': {'alpha': 10., 'beta': 1., 'penalty': 5e-7}}


@pytest.fixture(name='source', scope='module')
def _source():
  return data.load('digits')


@pytest.fixture(name='output_dir', scope='module')
def _output_dir(tmp_path_factory):
  """Where one test finds the runs of another."""
  return tmp_path_factory.mktemp('runs')


def _accuracy(source, output_dir, **settings):
  result = training.train(
      training.Run(**settings), source=source, strategy='one',
      output_dir=output_dir)
  return 100 * result.metrics['test_accuracy']


@pytest.mark.parametrize('noise, margin', [
    ('sym:0.4', 15.), ('asym:0.3', 8.)])
def test_ln_is_far_above_ce_under_noise(source, output_dir, noise, margin):
  ce = _accuracy(source, output_dir, noise=noise, method='CE')
  ln = _accuracy(source, output_dir, noise=noise, method='LN')
  assert ln - ce >= margin, (ln, ce)


def test_gce_is_above_ce_under_symmetric_noise(source, output_dir):
  ce = _accuracy(source, output_dir, noise='sym:0.4', method='CE')
  gce = _accuracy(source, output_dir, noise='sym:0.4', method='GCE')
  assert gce > ce


@pytest.mark.parametrize('name', methods.NAMES)
def test_every_method_learns_clean_labels(source, output_dir, name):
  run = training.Run(
      method=name, epochs=30, hyperparameters=_CLEAN.get(name, {}))
  result = training.train(
      run, source=source, output_dir=output_dir, strategy='one')
  assert result.metrics['test_accuracy'] > .95

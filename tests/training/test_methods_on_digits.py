"""The paper's point on a data set that comes along: LN learns through noise."""

import statistics

import pytest

from ln_tfp import data
from ln_tfp import methods
from ln_tfp import training

_SEEDS = range(5)


@pytest.fixture(name='source', scope='module')
def _source():
  return data.load('digits')


def _accuracies(source, **settings):
  return [
      100 * training.train(
          training.Run(seed=seed, **settings), source=source, strategy='one',
      ).metrics['test_accuracy']
      for seed in _SEEDS]


@pytest.mark.slow
@pytest.mark.parametrize('noise, margin, temperature, min_scale', [
    ('sym:0.4', 15., .5, .5), ('asym:0.3', 8., .5, .5)])
def test_ln_is_far_above_ce_under_noise(
    source, noise, margin, temperature, min_scale):
  ce = _accuracies(source, noise=noise, method='CE')
  ln = _accuracies(
      source, noise=noise, method='LN',
      hyperparameters={'temperature': temperature, 'min_scale': min_scale})
  assert statistics.mean(ln) - statistics.mean(ce) >= margin, (ln, ce)


@pytest.mark.slow
def test_gce_is_above_ce_under_symmetric_noise(source):
  ce = _accuracies(source, noise='sym:0.4', method='CE')
  gce = _accuracies(source, noise='sym:0.4', method='GCE')
  assert statistics.mean(gce) > statistics.mean(ce), (gce, ce)


@pytest.mark.slow
@pytest.mark.parametrize('name', methods.NAMES)
def test_every_method_learns_clean_labels(source, name):
  run = training.Run(method=name, noise='none')
  result = training.train(run, source=source, strategy='one')
  assert result.metrics['test_accuracy'] > .95

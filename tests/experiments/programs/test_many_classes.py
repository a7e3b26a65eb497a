"""The experiment with thousands of classes, here with few."""

import re

from absl import flags
from absl.testing import flagsaver
import pytest

from experiments import many_classes
from tests.experiments.programs import calling

FLAGS = flags.FLAGS


@pytest.fixture(autouse=True)
def _restore_flags():
  with flagsaver.flagsaver():
    yield


@pytest.mark.slow
@pytest.mark.thorough
def test_a_table_and_a_figure_come_from_measurements_made_once(
    tmp_path, monkeypatch):
  monkeypatch.setattr(many_classes, '_BATCH', 64)
  monkeypatch.setattr(many_classes, '_RATES', (1e-3,))  # the next test: more
  arguments = ('--classes=20', '--epochs=2', '--noise=sym:0.4',
               f'--output_dir={tmp_path}')
  status, output, errors = calling.call(many_classes, *arguments)
  assert not status, errors
  for method in many_classes.METHODS:
    assert re.search(
        rf'\| sym:0.4 \| {method} \| 0.001 \| 2 \|', output)
  assert (tmp_path / 'figures/many_classes.png').stat().st_size
  before = (tmp_path / 'many_classes/measurements.csv').read_bytes()
  monkeypatch.setattr(
      many_classes, 'measure', lambda *_: pytest.fail('measured again'))
  calling.call(many_classes, *arguments)
  assert (tmp_path / 'many_classes/measurements.csv').read_bytes() == before


def test_each_loss_has_the_rate_that_serves_noisy_labels_best(monkeypatch):
  best = {'LN, Gram': 1e-2, 'CE': 3e-3}

  class Fake:
    def __init__(self, method, num_classes, rate, num_steps):
      self._distance = abs(rate - best[method])
      assert num_classes == 50 and num_steps

    def warm_up(self, x, y):
      pass

    def train(self, x, y, batch_size):
      assert len(x) == len(y) <= 450 and batch_size

    def accuracy(self, x, y):
      assert len(x) == len(y) == 50
      return -self._distance

  monkeypatch.setattr(many_classes, 'Contestant', Fake)
  assert many_classes.find_rates(200, 'sym:0.4', epochs=1) == {
      **best, 'LN, packed': 1e-2}


def test_noise_is_in_the_training_labels_alone():
  x, given, test_x, test = many_classes.make_data(50, 'asym:0.4')
  _, clean, other_x, other = many_classes.make_data(50, 'none')
  wrong = given != clean
  assert .3 < wrong.mean() < .5
  assert set((given - clean)[wrong] % 50) == {1}
  assert (test_x == other_x).all() and (test == other).all()
  assert x.shape == (500, 64)

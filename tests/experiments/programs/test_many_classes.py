"""The experiment with thousands of classes, here with few."""

import re

from absl import flags
from absl.testing import flagsaver
import numpy as np
import pytest

from experiments import many_classes
from tests.experiments.programs import calling

FLAGS = flags.FLAGS


@pytest.fixture(autouse=True)
def _restore_flags():
  with flagsaver.flagsaver():
    FLAGS.mark_as_parsed()
    yield


@pytest.mark.slow
@pytest.mark.thorough
def test_a_table_and_a_figure_come_from_measurements_made_once(
    tmp_path, monkeypatch):
  monkeypatch.setattr(many_classes, '_BATCH', 64)
  monkeypatch.setattr(  # the next test: more
      many_classes, 'RATES', {'LN, Gram': (1e-2,), 'CE': (1e-3,)})
  arguments = ('--classes=20', '--updates=3', '--noise=sym:0.4',
               f'--output_dir={tmp_path}')
  status, output, errors = calling.call(many_classes, *arguments)
  assert not status, errors
  for method in many_classes.METHODS:
    for sizes in ('20 | 10', '40 | 2'):
      assert re.search(
          rf'\| {sizes} \| sym:0.4 \| {method} \| 0.0?01 \| 3 \|', output)
  assert (tmp_path / 'figures/many_classes.png').stat().st_size
  before = (tmp_path / 'many_classes/measurements.csv').read_bytes()
  monkeypatch.setattr(
      many_classes, 'measure', lambda *_: pytest.fail('measured again'))
  calling.call(many_classes, *arguments)
  assert (tmp_path / 'many_classes/measurements.csv').read_bytes() == before


@pytest.fixture(name='trials')
def _trials(monkeypatch, tmp_path):
  """Trials of contestants that are fakes, each with a rate that serves best."""
  best = {'LN, Gram': 1.7e-2, 'CE': 3e-3}
  made = []

  class Fake:
    def __init__(self, method, regime, rate, updates):
      assert regime == (50, 32, 512) and updates == 6
      self._distance = abs(rate - best[method])
      made.append((method, rate))

    def warm_up(self, x, y):
      assert len(x) == len(y) == 512

    def train(self, x, y):
      assert len(x) == len(y) == 6 * 512

    def accuracy(self, x, y):
      assert len(x) == len(y) == 50 * 8
      return 100. * (1. - self._distance)

  monkeypatch.setattr(many_classes, 'Contestant', Fake)
  FLAGS.output_dir = str(tmp_path)
  return made


def find_rates():
  return many_classes.find_rates(
      many_classes.Regime(200, 128, 2_048), 'sym:0.4', updates=6)


def test_each_loss_has_the_rate_that_serves_noisy_labels_best(trials):
  assert find_rates() == {
      'LN, Gram': 1.7e-2, 'LN, packed': 1.7e-2, 'CE': 3e-3}
  numbers = {method: len([each for each in trials if each[0] == method])
             for method in ('LN, Gram', 'CE')}
  assert numbers['LN, Gram'] == numbers['CE'] == 5


def test_a_search_that_was_interrupted_goes_on(trials, monkeypatch):
  write = many_classes.write
  for stop in (3, 8):
    def interrupted(*arguments, stop=stop, **values):
      write(*arguments, **values)
      if len(trials) == stop:
        raise KeyboardInterrupt
    monkeypatch.setattr(many_classes, 'write', interrupted)
    with pytest.raises(KeyboardInterrupt):
      find_rates()
  monkeypatch.setattr(many_classes, 'write', write)
  assert find_rates()['CE'] == 3e-3
  assert len(trials) == len(set(trials)) == 10


def test_the_search_has_as_many_features_for_a_class():
  for regime, _ in many_classes.plan(1_000, ['sym:0.4']):
    small = regime.quarter()
    assert small.width / small.classes == regime.width / regime.classes
    assert small.batch / small.classes == regime.batch / regime.classes


def test_all_contestants_meet_the_same_batches_in_turns():
  seen = []

  class Fake:
    def warm_up(self, x, y):
      pass

    def train(self, x, y):
      assert (x[:, 0] == y).all()
      seen.append(y)

  y = np.arange(10)
  done = list(many_classes.train(
      [Fake(), Fake()], y[:, np.newaxis], y, batch=4, updates=7, turns=3))
  assert done == [3, 5, 7]
  for one, other in zip(seen[::2], seen[1::2]):
    np.testing.assert_array_equal(one, other)
  order = np.concatenate(seen[::2])
  assert len(order) == 28
  for epoch in (order[:10], order[10:20]):
    assert set(epoch) == set(range(10))


def test_noise_is_in_the_training_labels_alone():
  (x, given), (test_x, test) = many_classes.make_data(50, 'asym:0.4')
  (_, clean), (_, other) = many_classes.make_data(50, 'none')
  wrong = given != np.tile(np.arange(50), 50)
  assert .3 < wrong.mean() < .5
  assert set((given - np.tile(np.arange(50), 50))[wrong] % 50) == {1}
  assert (clean == np.tile(np.arange(50), 20)).all() and (test == other).all()
  assert x.shape == (2_500, 64) and len(test_x) == 4_000
  (x, _), (held_x, held) = many_classes.make_data(50, 'asym:0.4', num_held=8)
  assert len(x) == 2_500 and held_x.shape == (400, 64)
  assert .3 < (held != np.tile(np.arange(50), 8)).mean() < .5

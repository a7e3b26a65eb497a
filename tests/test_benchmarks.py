"""The benchmarks compare like with like, and report what they measured."""

import numpy as np
import pytest

from benchmarks import __main__ as program
from benchmarks import heteroscedastic
from benchmarks import loss
from benchmarks import memory
from benchmarks import process
from benchmarks import timing
import ln_tfp


@pytest.mark.parametrize('rank', [1, 4])
def test_ln_and_tfps_composition_compute_the_same(rank):
  labels, _, packed = loss.make_outputs(8, 10, rank)
  ours = loss.value_and_gradient(ln_tfp.nll, labels, packed, False)()
  theirs = loss.value_and_gradient(loss.composition, labels, packed, False)()
  np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize('rank', [1, 4])
def test_both_monte_carlo_losses_compute_the_same(rank):
  chunked, materialised = (
      heteroscedastic.make(name, 50, rank)()
      for name in heteroscedastic.CONTESTANTS)
  np.testing.assert_allclose(chunked, materialised, rtol=1e-3, atol=1e-6)


def test_the_stream_of_the_process_is_the_same_at_every_pass():
  batches = process.make_stream(12_000, 8, 3)
  for (x, y), (again_x, again_y) in zip(batches(), batches()):
    np.testing.assert_array_equal(x, again_x)
    np.testing.assert_array_equal(y, again_y)
  assert sum(len(x) for x, _ in batches()) == 12_000
  process.fit_stream(12_000, 8, 3)


@pytest.mark.slow
def test_the_memory_of_a_process_is_its_own():
  held = np.ones(1_500_000_000, np.uint8)  # ours must not count
  assert 90 < memory.rise(np.ones, 12_500_000) < 110
  del held


def test_ratios_are_of_the_minima_and_the_spread_of_the_rounds():
  row = timing.ratio(
      'a / b', {'a': [2., 4., 3.], 'b': [1., 1., 2.]}, 'a', 'b', '<= 1.5')
  assert (row.value, row.median, row.low, row.high, row.n) == (
      2., 3., 1.5, 4., 3)
  assert row.is_met is False


def test_the_slope_of_a_power_is_its_exponent():
  row = timing.slope('x', [1, 10, 100], [3., 30., 300.], 's')
  assert row.value == pytest.approx(1.)


@pytest.mark.parametrize(
    'goal, met', [('', None), ('<= 2', True), ('>= 2.1', False)])
def test_a_goal_is_compared_with_the_value(goal, met):
  assert timing.Row('x', 2., goal=goal).is_met is met


def test_the_report_shows_every_row_and_what_is_not_met():
  rows = [{'name': 'a / b', 'value': 2.5, 'goal': '<= 2'},
          {'name': 'c / d', 'value': 1.}]
  text = program.to_markdown({'setup': 'A machine.', 'benchmarks': {
      'loss': rows}})
  assert '| a / b | 2.50 |  |  | 1 | <= 2 | **no** |' in text
  assert '| c / d | 1.00 |' in text

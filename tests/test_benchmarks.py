"""The benchmarks compare like with like, and report what they measured."""

import json
import subprocess
import sys

import numpy as np
import pytest

from benchmarks import __main__ as program
from benchmarks import audit
from benchmarks import audit_cells
from benchmarks import audit_contestants
from benchmarks import audit_tables
from benchmarks import heteroscedastic
from benchmarks import loss
from benchmarks import memory
from benchmarks import process
from benchmarks import timing
import ln_tfp


@pytest.mark.parametrize('rank', [1, 4])
@pytest.mark.slow
def test_ln_and_tfps_composition_compute_the_same(rank):
  labels, _, packed = loss.make_outputs(8, 10, rank)
  ours = loss.value_and_gradient(ln_tfp.nll, labels, packed, False)()
  theirs = loss.value_and_gradient(loss.composition, labels, packed, False)()
  np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize('rank', [1, 4])
@pytest.mark.slow
def test_both_monte_carlo_losses_compute_the_same(rank):
  chunked, materialised = (
      heteroscedastic.make(name, 50, rank)()
      for name in heteroscedastic.CONTESTANTS)
  np.testing.assert_allclose(chunked, materialised, rtol=1e-3, atol=1e-6)


@pytest.mark.slow
def test_the_stream_of_the_process_is_the_same_at_every_pass():
  batches = process.make_stream(12_000, 8, 3)
  for (x, y), (again_x, again_y) in zip(batches(), batches()):
    np.testing.assert_array_equal(x, again_x)
    np.testing.assert_array_equal(y, again_y)
  assert sum(len(x) for x, _ in batches()) == 12_000
  process.fit_stream(12_000, 8, 3)


@pytest.mark.slow
@pytest.mark.thorough
def test_the_memory_of_a_process_is_its_own():
  held = np.ones(300_000_000, np.uint8)  # ours must not count
  assert 90 < memory.rise(np.ones, 12_500_000) < 110
  del held


@pytest.mark.slow
@pytest.mark.thorough
def test_the_scale_of_an_audit_is_measured_in_a_process_of_its_own(tmp_path):
  path = tmp_path / 'scale.json'
  subprocess.run(
      [sys.executable, '-m', 'benchmarks.audit_scale', '--rows', '3000',
       '--features=40', '--classes=20', f'--results={path}'], check=True)
  figures, = json.loads(path.read_text(encoding='utf-8')).values()
  assert figures['rows'] == 3_000 and figures['precision'] > .5
  assert audit_tables.scale_table({'x': figures}).count('\n') == 3


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


def test_the_figures_of_an_audit_are_those_of_its_ranking_and_decision():
  given, true = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 1, 0, 2])
  part = audit_cells.Part(np.zeros([5, 1]), given, true, 3)
  verdict = audit_contestants.Verdict(
      np.array([.9, .1, .2, .3, .8]), np.array([0, 1, 1, 0, 0], bool))
  figures = audit.measure(part, verdict)
  assert figures['auroc'] == pytest.approx(5 / 6)
  assert figures['missed'] == .5  # of the two worst, one is wrong
  assert figures['f1'] == .5 and figures['false_alarms'] == 1


def test_contestants_are_compared_on_the_parts_that_both_have():
  make = lambda value: {
      'n': 10, 'noise': .2, 'auroc': value, 'average_precision': value,
      'f1': value, 'cpu_seconds': 1., 'false_alarms': 1}
  rival = 'cleanlab, logistic regression'
  results = {
      'digits/sym:0.2 | 0 | closed form': make(.9),
      'digits/sym:0.2 | 1 | closed form': make(.5),
      f'digits/sym:0.2 | 0 | {rival}': make(.8),
      'cifar10n/worst | 0 | closed form': make(.7) | {'cpu_seconds': .1},
      f'cifar10n/worst | 0 | {rival}': make(.75)}
  grouped = audit_tables.group(results)
  assert list(grouped) == ['cifar10n/worst', 'digits/sym:0.2']
  leads = [audit_tables.lead(contestants, rival, 'f1')
           for contestants in grouped.values()]
  np.testing.assert_allclose(leads, [-.05, .1])
  best, behind, _, fast = audit_tables.goals(grouped).splitlines()[2:]
  assert '1 of 2; not in cifar10n/worst (-0.050) | **no**' in best
  assert '0.050 in cifar10n/worst' in behind and '**no**' in behind
  assert '0.10 of it' in fast and fast.endswith('| yes |')

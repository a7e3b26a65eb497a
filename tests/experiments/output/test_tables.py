"""Tests of tables, of bold print and of what is written."""

import csv
import io
import re

import numpy as np
import pytest
from scipy import stats

from experiments import training
from experiments.output import render
from experiments.output import tables
from experiments.paper import published
from experiments.paper import tuned
from tests.experiments.sweep import fake_worker


def _result(run, **arguments):
  return training.Result(**fake_worker.document(
      run.to_dict(), run.key, **arguments))


def _table(accuracies, paper=None, **options):
  """A table of two methods and a noise; an accuracy of None diverged."""
  cells, results = {}, {}
  for method, values in accuracies.items():
    runs = [training.Run(method=method, seed=i) for i in range(len(values))]
    cells[method, 'none'] = runs
    for run, value in zip(runs, values):
      if value is None:
        results[run.key] = _result(run, status='diverged')
      elif value != 'missing':
        results[run.key] = _result(run, accuracy=value)
  return tables.build(
      'Title', list(accuracies), [tables.noise_column('none')], cells, results,
      published=paper, **options)


def test_a_cell_has_mean_and_sample_deviation_in_percent():
  cell = _table({'CE': [.5, .6, .7]}).cells['CE', 'none']
  assert cell.mean == pytest.approx(60)
  assert cell.std == pytest.approx(10)


def test_bold_follows_welchs_test():
  rng = np.random.default_rng(0)
  for _ in range(50):
    best = rng.normal(80, 1, size=5)
    other = rng.normal(78, rng.uniform(.5, 5), size=5)
    if best.mean() < other.mean():
      continue
    expected = stats.ttest_ind(best, other, equal_var=False).pvalue >= .05
    entries = [(x.mean(), x.std(ddof=1), 5) for x in (other, best)]
    assert tables.not_worse(entries) == [expected, True]


def test_bold_marks_the_least_where_lower_is_better():
  assert tables.not_worse(
      [(1., .1, 5), (2., .1, 5)], lower_is_better=True) == [True, False]


def test_bold_of_single_runs_is_the_best_alone():
  assert tables.not_worse(
      [(1., None, 1), (2., None, 1), (None, None, 0)]) == [False, True, False]


def test_bold_without_spread_needs_equal_means():
  assert tables.not_worse(
      [(1., 0., 3), (2., 0., 3), (2., 0., 3)]) == [False, True, True]
  assert tables.not_worse([(None, None, 0)]) == [False]


def test_diverged_and_missing_runs_are_shown():
  table = _table({
      'CE': [None, None], 'LN': [.9, None, 'missing'], 'GCE': ['missing'],
      'LS': []})
  text = render.to_text(table)
  assert re.search(r'^CE +diverged$', text, re.M)
  assert re.search(r'^LN +90.00\* \(1 diverged, 1 not run\)$', text, re.M)
  assert re.search(r'^GCE +not run$', text, re.M)
  assert re.search(r'^LS +not run$', text, re.M)
  for other in (render.to_markdown(table), render.to_latex(table)):
    assert '1 diverged, 1 not run' in other


def test_the_papers_number_stands_beside_ours_with_the_difference():
  paper = {('LN', 'none'): published.Number(91.5, .25, True)}
  table = _table({'CE': [.8, .9], 'LN': [.9, .92]}, paper)
  text = render.to_text(table)
  assert re.search(r'paper +91.50 ± 0.25', text)
  assert re.search(r'difference +-0.50', text)
  assert 'paper 91.50 ± 0.25 (-0.50)' in render.to_markdown(table)
  assert r'91.50 $\pm$ 0.25' in render.to_latex(table)
  rows = list(csv.DictReader(io.StringIO(render.to_csv(table))))
  assert rows[0]['paper_mean'] == ''
  assert rows[1]['paper_mean'] == '91.5'
  assert float(rows[1]['difference']) == pytest.approx(-.5)
  assert len(rows[1]['runs'].split()) == 2


def test_latex_has_the_papers_groups_and_names():
  run = training.Run(method='Het-tau-Sigma')
  columns = [tables.noise_column(noise)
             for noise in ('none', 'sym:0.2', 'sym:0.4', 'human:random1')]
  cells = {('Het-tau-Sigma', column.key): [run] for column in columns}
  latex = render.to_latex(tables.build(
      'Title', ['Het-tau-Sigma'], columns, cells, {run.key: _result(run)}))
  assert r'\multicolumn{2}{c}{Symmetric}' in latex
  assert r'$\text{Het}^{\tau}_{\bm{\Sigma}_{\textbf{full}}}$ &' in latex
  assert r'& 0\% & 20\% & 40\% & Random 1 \\' in latex
  body = latex[latex.index(r'\midrule'):]
  assert r'\textbf{90.00}' in body
  assert latex.count('{') == latex.count('}')


def test_notes_state_n_epochs_and_hardware():
  notes = '\n'.join(_table({'CE': [.5, .6], 'LN': [.5]}).notes)
  assert 'n = 1 or 2' in notes
  assert '100 epochs' in notes
  assert 'CPU, TensorFlow 2' in notes


@pytest.mark.parametrize('protocols, whose', [
    (['paper'], "the paper's text"), (['authors'], "the authors' code"),
    (['paper', 'authors'], "the authors' code or the paper's text")])
def test_notes_state_whose_protocol_it_is(protocols, whose):
  results = [_result(training.Run(protocol=name)) for name in protocols]
  notes = tables.provenance([tables.Cell(values=(.5,))], results)
  assert f'Protocol: {whose} (docs/protocol.md).' in notes


def test_the_winner_is_the_best_on_noisy_validation_labels():
  runs = [training.Run(method='GCE', hyperparameters={'q': q})
          for q in (.1, .3, .5, .7, .9)]
  results = {
      runs[0].key: _result(runs[0], validation=.4, accuracy=1.),
      runs[1].key: _result(runs[1], validation=.6, accuracy=.1),
      runs[2].key: _result(runs[2], validation=.6, earlier=.7, accuracy=.1),
      runs[3].key: _result(runs[3], validation=.6, earlier=.7, accuracy=.2),
      runs[4].key: _result(runs[4], status='diverged')}
  place = 'GCE', 'none'
  winners = tuned.winners({place: runs, ('LN', 'none'): []}, results)
  # Of equal ones the one that was better before, of those the first.
  assert winners == {place: runs[2]}
  text = tuned.to_csv({place: runs}, winners, results)
  [row] = csv.DictReader(io.StringIO(text))
  assert row == {
      'dataset': 'digits', 'method': 'GCE', 'noise': 'none',
      'hyperparameters': 'q=0.5', 'validation_accuracy': '60.00'}

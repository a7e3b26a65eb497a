"""Tests of the report on a small store of real results."""

import dataclasses
import json

import pytest

from experiments import training
from experiments.output import evidence
from experiments.output import figures
from experiments.output import render
from experiments.output import report
from experiments.output import tables
from experiments.paper import claims
from experiments.paper import figure_claims
from experiments.paper import table_claims
from tests import browser

METHODS = ('CE', 'LN')
NOISES = ('asym:0.2', 'asym:0.3')


@pytest.fixture(scope='module', name='directory')
def _directory(tmp_path_factory):
  """Four runs, a table and a figure of them, and two damaged files."""
  directory = tmp_path_factory.mktemp('results')
  runs = {
      (method, noise): [training.Run(method=method, noise=noise, epochs=2)]
      for method in METHODS for noise in NOISES}
  results = {}
  for [run] in runs.values():
    results[run.key] = training.train(run, output_dir=directory)
  table = tables.build(
      'Accuracy', ('CE', 'GCE', 'LN'), list(map(tables.noise_column, NOISES)),
      runs, results)
  (directory / 'tables').mkdir()
  (directory / 'tables' / 'synthetic_noise-digits.csv').write_text(
      render.to_csv(table), encoding='utf-8')
  with figures.style():
    figure, axes = figures.panels(1, 1)
    axes[0, 0].plot([1, 2])
    figures.save(figure, directory, figures.Record(
        name='sensitivity-digits', title='A <title>', caption='A caption.',
        runs=(runs['LN', 'asym:0.2'][0].key, 'gone')))
  (directory / 'tables' / 'hyperparameters-digits.csv').write_text(
      'method,run\nLN,' + runs['LN', 'asym:0.2'][0].key + '\n')
  (directory / 'broken.json').write_text('{')
  (directory / 'figures' / 'foreign.json').write_text('{"a": 1}')
  return directory


@pytest.fixture(scope='module', name='file')
def _file(directory):
  file = directory / 'report.html'
  report.build(directory).save(file)
  return file


@pytest.mark.slow
def test_numbers_come_from_the_results_and_not_from_the_tables_file(directory):
  facts = evidence.Facts(directory)
  cells = facts.cells('synthetic_noise', 'digits')
  for path in directory.glob('digits-asym0.2-LN-*.json'):
    document = json.loads(path.read_text(encoding='utf-8'))
    assert cells['LN', 'asym:0.2'].mean == pytest.approx(
        100. * document['metrics']['test_accuracy'])
  with pytest.raises(claims.NotRun, match='GCE with asym:0.2'):
    cells['GCE', 'asym:0.2']  # pylint: disable=pointless-statement


def test_what_ran_is_judged_and_the_rest_is_not_run(directory):
  verdicts = {(v.claim.text, v.dataset): v
              for v in claims.judge(
                  evidence.Facts(directory),
                  (*table_claims.CLAIMS, *figure_claims.CLAIMS))}
  judged = [v for v in verdicts.values() if v.status != claims.NOT_RUN]
  [verdict] = judged  # only LN's two asymmetric cells are all it needs
  assert 'barely affected' in verdict.claim.text
  assert verdict.dataset == 'digits'
  assert 'n = 1, ' in verdict.basis
  assert 'Not the recipe of digits: epochs=2' in verdict.basis


def test_a_figure_whose_runs_are_gone_supports_no_claim(directory):
  with pytest.raises(claims.NotRun, match='gone is missing'):
    evidence.Facts(directory).figure('sensitivity-digits', 'asym:0.2')


def test_a_figure_of_another_noise_supports_no_claim(directory):
  facts = evidence.Facts(directory)
  record = facts.records['sensitivity-digits']
  facts.records['sensitivity-digits'] = dataclasses.replace(
      record, runs=record.runs[:1])
  assert facts.figure('sensitivity-digits', 'asym:0.2')
  with pytest.raises(claims.NotRun, match='is of asym:0.2, not of sym:0.4'):
    facts.figure('sensitivity-digits', 'sym:0.4')


def test_a_cell_with_a_diverged_or_missing_run_supports_no_claim(directory):
  facts = evidence.Facts(directory)
  cells = dict(facts.tables['synthetic_noise-digits'].cells)
  one, other = (('LN', noise) for noise in NOISES)
  cells[one] = dataclasses.replace(
      cells[one], keys=(*cells[one].keys, 'x'), diverged=1)
  cells[other] = dataclasses.replace(
      cells[other], keys=(*cells[other].keys, 'x'))
  facts.tables['synthetic_noise-digits'] = dataclasses.replace(
      facts.tables['synthetic_noise-digits'], cells=cells)
  found = facts.cells('synthetic_noise', 'digits')
  for place, why in ((one, '1 diverged'), (other, '1 not run')):
    with pytest.raises(claims.NotRun, match=f'LN with {place[1]}: {why}'):
      found[place]  # pylint: disable=pointless-statement


def test_hyperparameters_that_are_not_the_tuned_ones_are_named(directory):
  facts = evidence.Facts(directory)
  [text] = facts.settings(
      facts.tables['synthetic_noise-digits'].cells['LN', 'asym:0.2'].keys,
      tuned_ones=True) - {'Not the recipe of digits: epochs=2'}
  assert text.startswith('LN on asym:0.2 with ')


def test_damaged_and_foreign_files_are_named(directory):
  problems = '\n'.join(evidence.Facts(directory).problems)
  assert 'broken.json' in problems
  assert 'foreign.json' in problems


def test_the_page_has_every_run_with_its_configuration(directory, file):
  text = file.read_text(encoding='utf-8')
  for key, result in evidence.Facts(directory).results.items():
    assert f'id="{key}"' in text
    assert f'href="#{key}"' in text
    assert result.versions['tensorflow'] in text
  assert 'A &lt;title&gt;' in text
  assert 'hyperparameters-digits: 1 points' in text
  assert 'python -m experiments.ablation' in text  # not run, and how to


def test_an_empty_directory_gives_a_page_on_which_nothing_holds(tmp_path):
  text = report.build(tmp_path).html()
  assert 'class="holds">holds</span></td><td>digits' not in text
  assert 'not run' in text


@pytest.mark.slow
def test_the_page_works_in_a_browser(file):
  with browser.open_page(file) as tab:
    assert tab.errors() == []
    assert tab.requests() == []
    headings = tab.texts('h2')
    assert headings[0] == 'The claims of the paper'
    assert {'Tables', 'Figures', 'Runs'} <= set(headings)
    assert 'not run' in tab.texts('.missing')
    assert tab.run(
        'return document.querySelector("figure img").naturalWidth > 0')


@pytest.mark.slow
def test_the_page_fits_a_narrow_screen(file):
  with browser.open_page(file, width=360, height=700) as tab:
    content, window = tab.widths()
    assert window == 360
    assert content <= window
    assert tab.errors() == []

"""The paper's numbers: against its LaTeX where that is present."""

import collections
import pathlib
import re

import pytest

from experiments import data
from experiments import methods
from experiments.output import tables
from experiments.paper import grids
from experiments.paper import published
from experiments.paper import tuned

_LATEX = pathlib.Path(__file__).resolve().parents[4] / 'shared/paper/paper.tex'
_METHODS = list(grids.METHODS)
_SEARCHED = list(grids.SEARCHED)
_NOISES = list(grids.SYNTHETIC_NOISES)
_NATURAL = [('cifar10n', f'human:{name}') for name in (
    'random1', 'random2', 'random3', 'aggregate', 'worst')] + [
        ('cifar100n', 'human:noisy'), ('clothing1m', 'none')]
_NUMBER = re.compile(
    r'(\\textbf\{)?(\d+\.\d+)\}? \$\\pm\$ (?:\\textbf\{)?(\d+\.\d+)')


@pytest.fixture(name='latex')
def _latex():
  if not _LATEX.exists():
    pytest.skip(f'the paper is not at {_LATEX}')
  return _LATEX.read_text(encoding='utf-8')


def _table(latex, label):
  """The body of a table; a row's `\\` may stand on the next line."""
  begin = latex.index(rf'\label{{{label}}}')
  return latex[latex.index(r'\midrule', begin):
               latex.index(r'\end{tabular}', begin)]


def _numbers(latex, label):
  return [published.Number(float(mean), float(std), bool(bold))
          for bold, mean, std in _NUMBER.findall(_table(latex, label))]


def _method_labels(latex, label):
  """The methods of a table's rows, in our spelling."""
  labels = []
  for line in _table(latex, label).splitlines():
    cells = [cell.strip() for cell in line.split('&')]
    name = cells[0] or (cells[1] if len(cells) > 1 else '')
    name = re.sub(r'\$|\\text\{(\w+)\}', r'\1', name)
    if 'Sigma' in name:
      labels.append('Het-tau-Sigma')
    elif 'tau' in name:
      labels.append('Het-tau')
    elif name in _METHODS:
      labels.append(name)
  return labels


def test_synthetic_noise_is_that_of_the_latex(latex):
  table = published.table('synthetic_noise')
  assert list(table.values()) == _numbers(latex, 'tab:synthetic')
  assert _method_labels(latex, 'tab:synthetic') == 3 * _METHODS
  assert list(table) == [
      (dataset, method, noise) for dataset in ('mnist', 'cifar10', 'cifar100')
      for method in _METHODS for noise in _NOISES]


def test_natural_noise_is_that_of_the_latex(latex):
  table = published.table('natural_noise')
  assert list(table.values()) == _numbers(latex, 'tab:c10n')
  assert _method_labels(latex, 'tab:c10n') == _METHODS
  assert list(table) == [
      (dataset, method, noise) for method in _METHODS
      for dataset, noise in _NATURAL]


def test_ablation_is_that_of_the_latex(latex):
  table = published.table('ablation')
  assert list(table.values()) == _numbers(latex, 'tab:sigma-ablation')
  rows = re.findall(
      r'^(\w+) & \\(\w)mark', _table(latex, 'tab:sigma-ablation'), re.M)
  settings = [
      (row.get('covariance'), row.get('dummy_class', True))
      for row in grids.ABLATION_ROWS.values()]
  assert settings == [
      (covariance.lower(), mark == 'c') for covariance, mark in rows]
  assert list(table) == [
      (dataset, row, grids.ABLATION_NOISES[dataset])
      for row in grids.ABLATION_ROWS for dataset in ('cifar10n', 'cifar100n')]


def test_calibration_is_that_of_the_latex(latex):
  table = published.table('calibration')
  assert list(table.values()) == _numbers(latex, 'tab:train-calibration')
  assert [method for _, method, _ in table] == _method_labels(
      latex, 'tab:train-calibration')


@pytest.mark.parametrize('label, blocks, datasets', [
    ('tab:syn-hps', 3, ('mnist', 'cifar10', 'cifar100')),
    ('tab:c10n-hps', 1, ('cifar10n', 'cifar100n', 'clothing1m'))])
def test_hyperparameters_are_those_of_the_latex(
    latex, label, blocks, datasets):
  cells = [
      [float(number) for number in re.findall(r'[\d.]+', cell)]
      for cell in re.findall(
          r'&\s+(\[[\d., ]+\]|[\d.]+)(?=\s*(?:&|\\))', _table(latex, label))]
  ours = [
      list(values.values())
      for (dataset, _, _), values in tuned.printed().items()
      if dataset in datasets]
  assert ours == cells
  assert _method_labels(latex, label) == blocks * _SEARCHED


def test_the_tables_have_all_rows_and_columns():
  synthetic = published.table('synthetic_noise')
  assert len(synthetic) == 3 * len(_METHODS) * len(_NOISES)
  natural = published.table('natural_noise')
  assert len(natural) == len(_METHODS) * len(_NATURAL)
  assert len(published.table('ablation')) == 10
  assert len(published.table('calibration')) == 5
  assert len(tuned.printed()) == 6 * (3 * 7 + 7)
  assert collections.Counter(
      key[1] for key in tuned.printed()) == dict.fromkeys(
          _SEARCHED, 28)


def test_bold_print_of_the_paper_and_our_rule_differ_where_the_docs_say():
  """Each line of the list in docs/protocol.md is one such cell."""
  differing = set()
  for name in ('synthetic_noise', 'natural_noise'):
    table = published.table(name)
    for dataset, noise in {(key[0], key[2]) for key in table}:
      column = {method: table[dataset, method, noise] for method in _METHODS}
      ours = tables.not_worse([
          (number.mean, number.std, published.SEEDS)
          for number in column.values()])
      differing |= {
          f'| {dataset} | {noise} | {method} | '
          f'{"bold" if number.bold else "plain"} |'
          for (method, number), bold in zip(column.items(), ours)
          if number.bold != bold}
  text = (pathlib.Path(__file__).resolve().parents[3] /
          'docs/protocol.md').read_text(encoding='utf-8')
  listed = set(re.findall(
      r'^\| [\w]+ \| [\w:.]+ \| [\w-]+ \| (?:bold|plain) \|$', text, re.M))
  assert listed == differing


def test_published_hyperparameters_are_points_of_the_search():
  for dataset, name, noise in tuned.printed():
    method = tuned.method(name, dataset, noise)
    assert method in list(type(methods.get(name)).grid(
        data.traits(dataset))), (
        dataset, name, noise)


def test_mnist_lambda_is_read_as_a_square_unless_asked_otherwise():
  assert tuned.method('LN', 'mnist', 'asym:0.4').min_scale == .316
  assert tuned.method(
      'LN', 'mnist', 'asym:0.4', printed_lambda=True).min_scale == .1
  assert tuned.method('LN', 'mnist', 'sym:0.4').min_scale == .5
  assert tuned.method('LN', 'fashion_mnist', 'asym:0.4') == tuned.method(
      'LN', 'mnist', 'asym:0.4')


def test_the_embedded_data_sets_are_tuned_for_all_their_columns():
  for name in grids.METHODS:
    for noise in _NOISES:
      tuned.method(name, 'digits', noise)
    for dataset, noise in _NATURAL[:5]:
      tuned.method(name, dataset.replace('cifar10', 'digits_'), noise)


def test_what_was_not_tuned_is_an_error():
  with pytest.raises(tuned.NotTunedError, match='--search'):
    tuned.method('LN', 'digits', 'sym:0.5')
  assert tuned.method('CE', 'digits', 'sym:0.5') == methods.get('CE')


def test_samples_are_those_of_the_data_sets_search():
  assert tuned.method('Het', 'digits', 'none').samples == 100
  assert tuned.method('Het-tau', 'cifar10', 'none').samples == 1000

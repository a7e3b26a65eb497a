"""What the docs show comes from the results in results/evidence."""

import pathlib
import re
import shutil
import subprocess

from absl import flags
from absl.testing import flagsaver
import pytest

from experiments import ablation
from experiments import gp_classification
from experiments import hyperparameters
from experiments import many_classes
from experiments import natural_noise
from experiments import synthetic_noise
from experiments.classical import problems
from experiments.paper import grids
from experiments.paper import tuned
from tests.experiments.programs import calling

_ROOT = pathlib.Path(__file__).resolve().parents[3]
_EVIDENCE = _ROOT / 'results' / 'evidence'


def _remake(directory, program, name, *arguments):
  """A table made anew from the packed results alone."""
  for archive in _EVIDENCE.glob('*.zip'):
    shutil.copy(archive, directory)
  status, output, errors = calling.call(
      program, f'--output_dir={directory}', *arguments)
  assert status == 0, errors
  assert ' 0 to train' in errors
  assert 'not run' not in output
  return (directory / name).read_text(encoding='utf-8')


@pytest.mark.parametrize('program, dataset, arguments', [
    (synthetic_noise, 'digits', ['--methods=all', '--seeds=5']),
    (natural_noise, 'digits_n', ['--methods=all', '--seeds=5']),
    (synthetic_noise, 'mnist', [
        '--methods=CE,LN', '--noise=asym:0.4,sym:0.4', '--data_dir=/nonesuch',
        '--offline']),
    (synthetic_noise, 'cifar10_features', [
        '--seeds=5', '--data_dir=/nonesuch', '--offline']),
    (natural_noise, 'cifar100n_features', [
        '--seeds=5', '--data_dir=/nonesuch', '--offline']),
    (natural_noise, 'cifar10n_features', [
        '--seeds=5', '--data_dir=/nonesuch', '--offline']),
    (ablation, 'cifar10n_features', [
        '--seeds=5', '--data_dir=/nonesuch', '--offline']),
    (ablation, 'cifar100n_features', [
        '--seeds=5', '--data_dir=/nonesuch', '--offline']),
])
@pytest.mark.slow
def test_the_tables_follow_from_the_results(
    tmp_path, program, dataset, arguments):
  name = f'tables/{program.__name__.rpartition(".")[2]}-{dataset}.md'
  made = _remake(tmp_path, program, name, f'--dataset={dataset}', *arguments)
  assert made == (_EVIDENCE / name).read_text(encoding='utf-8')
  assert 'Not the recipe' not in made


def _shown(mark):
  """A table of the README."""
  readme = (_ROOT / 'README.md').read_text(encoding='utf-8')
  begin, end = (f'<!-- {mark} table: {side} -->' for side in ('begin', 'end'))
  return readme.partition(begin)[2].partition(end)[0].strip()


@pytest.mark.slow
def test_the_readme_shows_the_default_table_of_digits(tmp_path):
  made = _remake(tmp_path, synthetic_noise,
                 'tables/synthetic_noise-digits.md', '--seeds=5')
  assert _shown('digits') == made.strip()


def test_the_readme_shows_the_table_of_features():
  table = _EVIDENCE / 'tables/natural_noise-cifar10n_features.md'
  assert _shown('features') == table.read_text(encoding='utf-8').strip()


@pytest.mark.parametrize('dataset, noises', [
    ('digits', grids.SYNTHETIC_NOISES),
    ('digits_n', [f'human:{name}' for name in (
        'random1', 'random2', 'random3', 'aggregate', 'worst')])])
@pytest.mark.slow
def test_the_tuned_hyperparameters_are_the_winners(
    tmp_path, dataset, noises):
  name = f'tuned/{dataset}.csv'
  made = _remake(tmp_path, hyperparameters, name, f'--dataset={dataset}',
                 '--methods=all', f'--noise={",".join(noises)}')
  assert made == (tuned.DIRECTORY / f'{dataset}.csv').read_text(
      encoding='utf-8')


@pytest.mark.parametrize('page, name', [
    ('process', 'gp_classification'), ('many_classes', 'many_classes')])
def test_the_docs_show_the_comparison_of_classifiers(page, name):
  text = (_ROOT / 'docs' / f'{page}.md').read_text(encoding='utf-8')
  begin, end = (f'<!-- comparison: {side} -->' for side in ('begin', 'end'))
  shown = text.partition(begin)[2].partition(end)[0]
  summary = _EVIDENCE / name / 'summary.md'
  assert shown.strip() == summary.read_text(encoding='utf-8').strip()


def test_the_comparison_follows_from_the_measurements():
  found = gp_classification.read(_EVIDENCE)
  names = [name for name in problems.NAMES  # those measured at all noises
           if {place[1] for place in found if place[0] == name} == {
               *gp_classification.NOISES}]
  assert gp_classification.summarize(
      found, names, gp_classification.NOISES) == (
          _EVIDENCE / 'gp_classification/summary.md').read_text('utf-8')


def test_the_comparison_with_many_classes_follows_from_the_measurements():
  with flagsaver.flagsaver(output_dir=str(_EVIDENCE)):
    flags.FLAGS.mark_as_parsed()
    made = many_classes.summarize(
        many_classes.plan(1_000, many_classes.NOISES), updates=600)
  assert made == (
      _EVIDENCE / 'many_classes/summary.md').read_text('utf-8')


def test_no_result_and_no_page_names_a_place_of_one_machine():
  listed = subprocess.run(
      ['git', 'ls-files', '-z', 'docs', 'results'], cwd=_ROOT, text=True,
      capture_output=True)
  if listed.returncode:
    pytest.skip('not a clone')
  private = re.compile(rb'(?<![\w.-])/(root|home|tmp)/')
  files = [_ROOT / name for name in listed.stdout.split('\0') if name]
  texts = {path: path.read_bytes() for path in files
           if path.suffix not in ('.jpg', '.npz', '.pdf', '.png', '.zip')}
  assert len(texts) > 50
  assert not [str(path) for path, text in texts.items() if private.search(text)]

"""Tests of flags, recipes and of the programs as a user calls them."""

import csv
import dataclasses
import importlib.util
import pathlib
import re
import sys

from absl import flags
import pytest

from experiments import ablation
from experiments import accuracy_evolution
from experiments import calibration
from experiments import data
from experiments import hyperparameters
from experiments import natural_noise
from experiments import pack
from experiments import prepare
from experiments import residuals
from experiments import synthetic_noise
from experiments import toy_datasets
from experiments import training
from experiments.cli import app
from experiments.cli import pairs
from experiments.cli import recipes
from experiments.models import resnet
from experiments.paper import grids
from experiments.sweep import launch
from tests.experiments.programs import calling

FLAGS = flags.FLAGS
_ROOT = pathlib.Path(__file__).resolve().parents[3]
_TABLES = (synthetic_noise, natural_noise, ablation, calibration,
           hyperparameters)


pytestmark = pytest.mark.usefixtures('fake_workers')


@pytest.mark.parametrize('arguments, words', [
    (['--dataset=nonesuch'], '--dataset: must be one of two_moons'),
    (['--dataset=digits_n'], '--dataset: here it must be one of digits'),
    (['--methods=LN,XY'], '--methods: must be one of CE'),
    (['--methods=LN,LN'], '--methods: needs distinct values'),
    (['--noise=sym:1.5'], r'--noise: .* RATE in \[0, 1\]'),
    (['--noise=loud'], '--noise: must be none, sym:RATE'),
    (['--noise=human:worst', '--methods=CE'], '--noise: .* do not exist'),
    (['--noise=sym:0.5'], '--noise: .* no tuned hyperparameters'),
    (['--seeds=0'], '--seeds: must be at least 1. Received: 0'),
    (['--seeds=many'], 'seeds'),
    (['--jobs=0'], '--jobs: must be at least 1'),
    (['--epochs=0'], 'epochs'),
    (['--batch_size=-1'], 'batch_size'),
    (['--model=vgg'], '--model: must be one of mlp'),
    (['--model_arguments=depth=3'], '--model_arguments: .*depth'),
    (['--options=pad=x'], '--options: Option `pad` must be int'),
    (['--options=truck=true'], '--options: Option `truck` is one of CIFAR'),
    (['--options=padding=3'], 'padding'),
    (['--options=pad'], '--options: Settings must be NAME=VALUE'),
    (['--hyperparameters=LN.tau=1'], '--hyperparameters: LN has no'),
    (['--hyperparameters=LN.temperature=x'],
     '--hyperparameters: Argument `temperature` must be .*x'),
    (['--protocol=mine'], 'protocol'),
    (['--strategy=many'], 'strategy'),
    (['--strategy=multi_worker'],
     '--strategy: TF_CONFIG must be such as .* Received: nothing'),
    (['--nonesuch'], 'nonesuch'),
    (['extra'], 'Not a flag: extra'),
    (['--output_dir=/dev/null/results'], '--output_dir: cannot be written'),
    (['--launcher=slurm'], 'launcher'),
    (['--ray_address=head:6379'], '--ray_address: needs --launcher=ray'),
    (['--cpus_per_run=2'], '--cpus_per_run: needs --launcher=ray'),
    (['--launcher=ray', '--jobs=2'], '--jobs: needs --launcher=local'),
    (['--launcher=ray', '--cpus_per_run=0'], '--cpus_per_run: must be pos'),
    (['--launcher=ray', '--gpus_per_run=1.5'], '--gpus_per_run: must be a fr'),
    (['--launcher=ray', '--ray_address=ray://head:10001'],
     '--ray_address: must be HOST:PORT or auto'),
    (['--dataset=mnist', '--data_dir=/nonesuch', '--offline'],
     'experiments.prepare --dataset=mnist --data_dir=/nonesuch'),
])
def test_a_bad_flag_ends_with_one_line_before_any_training(
    tmp_path, arguments, words):
  status, output, _ = calling.call(
      synthetic_noise, f'--output_dir={tmp_path}', *arguments)
  assert isinstance(status, str)  # which sys.exit prints; the status is 1
  assert '\n' not in status
  assert re.match(rf'synthetic_noise: .*{words}', status), status
  assert not output
  assert not (tmp_path / 'log').exists()


@pytest.mark.parametrize('program, argument, words', [
    (hyperparameters, '--seeds=0', 'must be at least 1'),
    (hyperparameters, '--seeds=5', 'this program has no use for it'),
    (hyperparameters, '--dataset=two_moons', 'here it must be one of digits'),
    (calibration, '--noise=loud', 'must be none, sym:RATE'),
    (calibration, '--noise=none', 'this program has no use for it'),
    (ablation, '--methods=foo', 'must be one of CE'),
    (residuals, '--methods=LN', 'this program has no use for it'),
    (toy_datasets, '--search', 'this program has no use for it'),
    (accuracy_evolution, '--noise=none,sym:0.2', 'without noise'),
])
def test_a_flag_is_checked_by_programs_without_use_for_it(
    tmp_path, program, argument, words):
  status, _, _ = calling.call(program, f'--output_dir={tmp_path}', argument)
  flag = argument.partition('=')[0]
  name = program.__name__.rpartition('.')[2]
  assert re.match(f'{name}: {flag}: {words}', status), status
  assert not (tmp_path / 'log').exists()


def test_classes_are_drawn_apart_under_asymmetric_noise_alone(tmp_path):
  status, _, _ = calling.call(
      accuracy_evolution, f'--output_dir={tmp_path}', '--by_class',
      '--noise=sym:0.2')
  assert '--by_class is for asymmetric --noise' in status


def test_a_search_on_human_labels_is_for_these(tmp_path):
  _, output, _ = calling.call(
      hyperparameters, f'--output_dir={tmp_path}', '--dataset=digits_n',
      '--methods=GCE', '--dry_run')
  assert 'humanworst' in output
  assert 'sym' not in output


def test_a_search_can_be_over_ratios_of_lambda_and_tau(tmp_path):
  _, output, _ = calling.call(
      hyperparameters, f'--output_dir={tmp_path}', '--grid=ratio',
      '--methods=LN,GCE', '--noise=none', '--dry_run')
  assert len(re.findall('LN-seed0', output)) == 9
  assert 'min_scale=0.0316' in output
  assert len(re.findall('GCE-seed0', output)) == 5


def test_a_table_says_which_hyperparameters_are_not_the_papers(tmp_path):
  arguments = (f'--output_dir={tmp_path}', '--methods=CE,LN', '--noise=none')
  _, output, _ = calling.call(synthetic_noise, *arguments)
  assert 'hyperparameters' not in output
  _, output, _ = calling.call(
      synthetic_noise, *arguments, '--hyperparameters=LN.temperature=3')
  assert 'Replaced hyperparameters: LN.temperature=3.' in output
  run = recipes.base_run('mnist')
  for noise, expected in ('asym:0.4', True), ('sym:0.4', False):
    notes = app.notes(run, [app.tuned_run(run, 'LN', noise)])
    assert any('0.316' in note for note in notes) is expected


@pytest.mark.slow
def test_a_narrower_call_leaves_the_rest_to_the_report(tmp_path):
  arguments = (f'--output_dir={tmp_path}', '--methods=CE,LN')
  calling.call(
      synthetic_noise, *arguments, '--noise=none,sym:0.2', '--seeds=2')
  file = tmp_path / 'tables' / 'synthetic_noise-digits.csv'
  before = file.read_text()
  _, output, _ = calling.call(synthetic_noise, *arguments, '--noise=sym:0.2')
  assert 'No noise' not in output
  assert file.read_text() == before
  calling.call(
      synthetic_noise, *arguments, '--noise=sym:0.2,sym:0.4',
      '--hyperparameters=LN.temperature=3')
  rows = list(csv.DictReader(file.read_text().splitlines()))
  assert [(row['row'], row['column'], row['n']) for row in rows] == [
      ('CE', 'none', '2'), ('CE', 'sym:0.2', '2'), ('LN', 'none', '2'),
      ('LN', 'sym:0.2', '1'), ('CE', 'sym:0.4', '1'), ('LN', 'sym:0.4', '1')]


def test_without_ray_the_extra_is_named(tmp_path, monkeypatch):
  monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None)
  status, _, _ = calling.call(
      synthetic_noise, f'--output_dir={tmp_path}', '--launcher=ray')
  assert status == ('synthetic_noise: --launcher: Ray is not installed; '
                    "pip install -e '.[ray]' does that.")


def test_the_recipe_is_loaded_and_the_command_line_overrides_it():
  recipes.parse(['program', '--dataset=cifar10', '--epochs=2'])
  assert recipes.base_run() == training.Run(
      dataset='cifar10', model='wide_resnet', optimizer='sgd',
      learning_rate=1e-2, weight_decay=5e-4, batch_size=128, epochs=2)
  recipes.parse(['program', '--epochs=3', '--dataset=mnist'])
  assert recipes.base_run() == training.Run(
      dataset='mnist', model='lenet5', batch_size=256, epochs=3)


def test_another_data_sets_run_has_its_own_recipe(monkeypatch):
  argv = ['program', '--dataset=digits_n', '--epochs=7', '--seeds=2']
  monkeypatch.setattr(sys, 'argv', argv)
  recipes.parse(argv)
  assert recipes.base_run('mnist') == training.Run(
      dataset='mnist', model='lenet5', batch_size=256, epochs=7)
  assert recipes.base_run() == training.Run(dataset='digits_n', epochs=7)


def test_what_deviates_from_the_recipe_is_noted():
  recipes.parse(['program', '--dataset=mnist', '--epochs=1', '--seeds=3'])
  assert recipes.deviations(recipes.base_run()) == [
      'Not the recipe of mnist: epochs=1.']
  recipes.parse(['program', '--dataset=mnist'])
  assert not recipes.deviations(recipes.base_run())


def test_the_digits_recipe_is_that_of_a_default_run():
  recipes.parse(['program', '--dataset=digits'])
  assert recipes.base_run() == training.Run()


@pytest.mark.parametrize('dataset', data.NAMES)
def test_each_line_of_a_recipe_has_a_comment_and_makes_a_run(dataset):
  lines = recipes.path(dataset).read_text().splitlines()
  for before, line in zip(lines, lines[1:]):
    assert line.startswith('#') or before.startswith('#'), line
  recipes.parse(['program', f'--dataset={dataset}'])
  assert recipes.base_run().dataset == dataset
  given = {line.partition('=')[0][2:] for line in lines if line[0] == '-'}
  assert given >= {'model', 'optimizer', 'batch_size', 'learning_rate',
                   'weight_decay', 'epochs'}


def test_settings_are_read_as_they_are_written():
  settings = {'widths': [20, 30], 'weights': 'imagenet', 'pad': 4, 'x': .5,
              'truck': True}
  assert pairs.parse(pairs.write(settings)) == settings


def test_the_synthetic_table_has_the_papers_number_of_runs():
  recipes.parse(['program', '--seeds=5'])
  tables, searches = set(), set()
  for dataset in ('mnist', 'cifar10', 'cifar100'):
    base = training.Run(dataset=dataset)
    chosen = {(method, noise): app.tuned_run(base, method, noise)
              for method in grids.METHODS for noise in grids.SYNTHETIC_NOISES}
    tables.update(grids.flat(grids.seeded(chosen, app.seeds())))
    for noise in grids.SYNTHETIC_NOISES:
      for method in grids.SEARCHED:
        searches.update(app.search_points(base, method, noise))
  assert len(tables) == 945
  assert len(searches) == 882
  assert len(tables & searches) == 126


@pytest.mark.parametrize('program', _TABLES)
def test_a_dry_run_lists_the_runs_and_trains_nothing(tmp_path, program):
  defaults = {synthetic_noise: 'digits', hyperparameters: 'digits'}
  status, output, _ = calling.call(
      program, f'--output_dir={tmp_path}', '--dry_run',
      f'--dataset={defaults.get(program, "digits_n")}')
  assert status == 0
  count = int(re.search(r'(\d+) to train', output)[1])
  assert len(re.findall(r'^ .*seed0.* 100 epochs', output, re.M)) == count
  expected = {
      synthetic_noise: 63, natural_noise: 45, calibration: 5,
      hyperparameters: 7 * 44}
  assert count == expected.get(program, count)
  assert not list(tmp_path.glob('*.json'))


@pytest.mark.parametrize('program, dataset', [
    (synthetic_noise, 'digits'), (natural_noise, 'digits_n')])
def test_a_table_is_printed_and_written(tmp_path, program, dataset):
  arguments = (f'--output_dir={tmp_path}', '--methods=CE,Forward,LN',
               '--seeds=2', f'--dataset={dataset}')
  status, output, _ = calling.call(program, *arguments)
  assert status == 0
  assert re.search(r'^LN +90.00 ± 0.00\*', output, re.M)
  name = program.__name__.rpartition('.')[2]
  for suffix in ('md', 'tex', 'csv'):
    assert (tmp_path / f'tables/{name}-{dataset}.{suffix}').stat().st_size
  # A second call trains nothing and gives the same.
  log = (tmp_path / 'log').read_text()
  assert calling.call(program, *arguments)[1] == output
  assert (tmp_path / 'log').read_text() == log


def test_the_papers_numbers_stand_in_the_table_of_its_data_set(
    tmp_path, monkeypatch):
  monkeypatch.setattr(launch, '_prepare', lambda runs: None)  # no data here
  status, output, _ = calling.call(
      synthetic_noise, f'--output_dir={tmp_path}', '--dataset=cifar100',
      '--methods=LN', '--noise=asym:0.4')
  assert status == 0
  assert re.search(r'paper +61.20 ± 1.22', output)
  assert re.search(r'difference +\+28.80', output)


@pytest.mark.slow
def test_a_search_is_followed_by_the_other_seeds_of_its_winners(tmp_path):
  status, output, _ = calling.call(
      synthetic_noise, f'--output_dir={tmp_path}', '--search', '--seeds=3',
      '--methods=GCE', '--noise=sym:0.4')
  assert status == 0
  assert 'n = 3' in output
  starts = (tmp_path / 'log').read_text().count('start')
  assert starts == 5 + 2
  assert 'GCE,sym:0.4,q=0.1' in (tmp_path / 'tuned/digits.csv').read_text()


@pytest.mark.slow
def test_a_search_with_failed_points_has_no_winners(tmp_path):
  (tmp_path / 'script.json').write_text('{"GCE": "exit"}')
  status, output, _ = calling.call(
      synthetic_noise, f'--output_dir={tmp_path}', '--search',
      '--methods=CE,GCE', '--noise=sym:0.4')
  assert re.match('synthetic_noise: The search has no winners yet: 5', status)
  assert not output


def test_prepare_says_where_the_weights_belong_and_fetches_them(
    tmp_path, monkeypatch):
  monkeypatch.setenv('HOME', str(tmp_path))
  file = resnet.weights_file('imagenet')
  arguments = ('--dataset=clothing1m', f'--data_dir={tmp_path}')
  status, output, _ = calling.call(prepare, *arguments)
  assert output == (f'Weights: {file} is missing; copy it there, or fetch it '
                    'by --weights.\n')
  assert 'its authors give the data set on request' in status

  def fetch():
    file.parent.mkdir(parents=True)
    file.touch()

  monkeypatch.setattr(resnet, 'fetch_weights', fetch)
  _, output, _ = calling.call(prepare, *arguments, '--weights')
  assert output == f'Weights: {file} is there.\n'


def test_data_that_cannot_be_fetched_is_one_line(tmp_path, monkeypatch):
  def fail(*unused):
    raise OSError('no network,\nnot today')

  monkeypatch.setattr(data, 'prepare', fail)
  status, _, errors = calling.call(
      synthetic_noise, f'--output_dir={tmp_path}', '--dataset=mnist',
      '--data_dir=/nonesuch')
  assert status.startswith(
      'synthetic_noise: mnist is missing and could not be fetched: OSError')
  assert '\n' not in status
  assert 'Fetching mnist' in errors


def test_the_search_lists_winners_and_all_points(tmp_path):
  status, output, _ = calling.call(
      hyperparameters, f'--output_dir={tmp_path}', '--methods=GCE,LN',
      '--noise=sym:0.4')
  assert status == 0
  assert re.search(r'^LN +\[0.1, 0.316\]  50.00', output, re.M)
  points = (tmp_path / 'tables/hyperparameters-digits.csv').read_text()
  assert len(points.splitlines()) == 1 + 5 + 9


def test_a_narrower_search_leaves_the_whole_table(tmp_path):
  call = lambda *arguments: calling.call(
      hyperparameters, f'--output_dir={tmp_path}', *arguments)
  read = lambda: {file: file.read_text() for folder in ('tables', 'tuned')
                  for file in (tmp_path / folder).iterdir()}
  call('--methods=LS,GCE,LN', '--noise=none,sym:0.4')
  whole = read()
  assert len(whole) == 4
  _, output, _ = call('--methods=LN', '--noise=sym:0.4')
  assert 'GCE' not in output.partition('Het-tau: tau')[0]
  assert read() == whole


def test_winners_of_ones_own_are_read_before_ours(tmp_path):
  folder = tmp_path / 'tuned'
  folder.mkdir()
  (folder / 'mine.csv').write_text(
      'dataset,method,noise,hyperparameters\ndigits,GCE,none,q=0.25\n')
  recipes.parse(['program', f'--output_dir={tmp_path}'])
  tuned_q = lambda: app.tuned_run(
      app.base_run(), 'GCE', 'none').resolve_method().q
  assert tuned_q() == .25
  (folder / 'mine.csv').unlink()
  assert tuned_q() == .1


def test_the_ablation_takes_a_single_noise(tmp_path):
  status, _, _ = calling.call(
      ablation, f'--output_dir={tmp_path}', '--dataset=digits_n',
      '--noise=human:worst,human:random1')
  assert status.startswith('ablation: --noise: here it must be a single one')


def test_the_ablation_searches_identity_without_lambda():
  recipes.parse(['program', '--dataset=digits_n'])
  base = app.base_run()
  points = set(ablation.points(base, 'LN-identity', 'human:worst'))
  assert len(points) == 3
  assert len(set(ablation.points(base, 'LN-no-dummy', 'human:worst'))) == 9


def test_the_ablations_full_row_is_the_run_of_the_natural_noise_table():
  recipes.parse(['program', '--dataset=cifar10n'])
  base = app.base_run()
  natural = app.tuned_run(base, 'LN', 'human:worst')
  assert natural in set(ablation.points(base, 'LN', 'human:worst'))


def test_calibration_uses_the_clean_runs_of_the_synthetic_table():
  recipes.parse(['program', '--dataset=digits'])
  synthetic = app.tuned_run(app.base_run(), 'LN', 'none')
  recipes.parse(['program', '--dataset=digits_n'])
  clean = app.tuned_run(app.base_run('digits'), 'LN', 'none')
  assert clean == synthetic
  assert grids.serves_calibration(synthetic)
  assert not grids.serves_calibration(
      dataclasses.replace(synthetic, noise='sym:0.4'))


def test_a_failed_run_is_reported_with_status_1(tmp_path):
  (tmp_path / 'script.json').write_text('{"LN": "raise"}')
  status, output, errors = calling.call(
      synthetic_noise, f'--output_dir={tmp_path}', '--methods=CE,LN',
      '--noise=none')
  assert status == 1
  assert re.search(r'^LN +not run', output, re.M)
  assert re.search('Failed: digits-none-LN.*out of numbers', errors)
  assert 'left alone: ' in errors  # script.json is no result


def test_a_long_sweep_says_so_first(tmp_path):
  _, _, errors = calling.call(
      synthetic_noise, f'--output_dir={tmp_path}', '--methods=CE',
      '--noise=none', '--epochs=200000')
  assert 'more than an hour' in errors


def test_packed_results_give_the_same_table(tmp_path):
  arguments = (f'--output_dir={tmp_path}', '--methods=CE,LN', '--noise=none')
  _, output, _ = calling.call(synthetic_noise, *arguments)
  (tmp_path / 'mine.json').write_text('{}')
  status, _, _ = calling.call(pack, f'--output_dir={tmp_path}')
  assert not status
  assert [file.name for file in tmp_path.glob('*.json')] == ['mine.json']
  log = (tmp_path / 'log').read_text()
  assert calling.call(synthetic_noise, *arguments)[1] == output
  assert (tmp_path / 'log').read_text() == log


def test_packing_destroys_nothing(tmp_path):
  status, _, _ = calling.call(pack, f'--output_dir={tmp_path}')
  assert status == f'pack: {tmp_path} has no results of digits.'
  calling.call(synthetic_noise, f'--output_dir={tmp_path}', '--methods=CE',
               '--noise=none')
  (tmp_path / 'digits.zip').write_text('damaged')
  status, _, _ = calling.call(pack, f'--output_dir={tmp_path}')
  assert 'It would be overwritten: ' in status
  assert (tmp_path / 'digits.zip').read_text() == 'damaged'

"""Tests of the program that makes every table and figure."""

import re

import pytest

from experiments import all as all_programs
from experiments import data
from experiments import synthetic_noise
from experiments.output import assembled
from experiments.paper import tuned
from experiments.sweep import launch
from tests.experiments.programs import calling

pytestmark = pytest.mark.usefixtures('fake_workers')


def _lines(output):
  """(runs, to train) by the name of a line of a dry run."""
  found = re.findall(r'^([\w-]+) +(\d*) +(\d+)(?: +[\d.]+ \w+)?$', output, re.M)
  return {name: (int(runs or 0), int(new)) for name, runs, new in found}


def test_a_dry_run_counts_a_shared_run_once_and_writes_nothing(tmp_path):
  status, output, _ = calling.call(
      all_programs, f'--output_dir={tmp_path}', '--seeds=5', '--dry_run')
  assert status == 0
  lines = _lines(output)
  assert lines['synthetic_noise-digits'] == (315, 315)
  points = 7 * (5 + 15 + 5 + 5 + 5 + 3 * len(
      data.traits('digits').min_scales))
  assert lines['hyperparameters-digits'] == (points, points - 6 * 7)
  assert lines['calibration-digits_n'] == (25, 0)
  assert lines['all'][1] == sum(
      new for name, (_, new) in lines.items() if name != 'all')
  assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_numbers_of_the_whole_paper_stay_apart(tmp_path):
  _, output, _ = calling.call(
      all_programs, f'--output_dir={tmp_path}', '--seeds=5', '--dry_run',
      '--data=paper')
  lines = _lines(output)
  assert lines['synthetic_noise-cifar100'] == (315, 315)
  assert lines['residuals-mnist'] == (1, 0)
  assert lines['all'][1] == sum(
      new for name, (_, new) in lines.items() if name != 'all')


@pytest.mark.slow
def test_a_dry_run_foresees_what_follows_a_search(tmp_path):
  arguments = (f'--output_dir={tmp_path}', '--seeds=5', '--dry_run')
  _, output, _ = calling.call(all_programs, *arguments, '--data=features')
  lines = _lines(output)
  assert lines['synthetic_noise-cifar10_features'] == (315, 315)
  points = 7 * (5 + 15 + 5 + 5 + 5 + 6)
  assert lines['hyperparameters-cifar10_features'] == (points, points - 6 * 7)
  _, output, _ = calling.call(
      synthetic_noise, *arguments, '--dataset=digits', '--search',
      '--methods=CE,GCE', '--noise=sym:0.4')
  assert ' 14 to train' in output  # 5 of CE, 5 points, 4 more seeds


@pytest.mark.slow
def test_all_is_trained_once_and_written(tmp_path):
  arguments = (f'--output_dir={tmp_path}', '--seeds=2', '--dry_run',
               '--programs=natural_noise,ablation')
  _, output, _ = calling.call(all_programs, *arguments)
  expected = _lines(output)['all'][1]
  arguments = arguments[:2] + arguments[3:]
  status, output, errors = calling.call(all_programs, *arguments)
  assert status == 0
  assert len(re.findall('to train', errors)) == 1  # one sweep
  assert (tmp_path / 'log').read_text().count('start') == expected
  for name in ('natural_noise-digits_n.md', 'ablation-digits_n.md',
               'embedded-natural_noise.tex', 'embedded-ablation.tex'):
    assert (tmp_path / 'tables' / name).stat().st_size
  assert re.search(r'^Claims: \d+ holds, \d+ fails, \d+ not run\.$', output,
                   re.M)
  assert (tmp_path / 'report.html').stat().st_size
  log = (tmp_path / 'log').read_text()
  assert calling.call(all_programs, *arguments)[1] == output
  assert (tmp_path / 'log').read_text() == log


@pytest.mark.slow
@pytest.mark.thorough
def test_searches_come_first_and_their_winners_follow(tmp_path, monkeypatch):
  monkeypatch.setattr(launch, '_prepare', lambda runs: None)  # no data here
  monkeypatch.setattr(tuned, 'ours', dict)  # nothing is tuned
  status, output, errors = calling.call(
      all_programs, f'--output_dir={tmp_path}', '--data=features',
      '--seeds=2', '--programs=hyperparameters,natural_noise')
  assert status == 0, errors
  # The points and CE, Forward and Het, then the winners' second seeds.
  assert len(re.findall('to train', errors)) == 2
  starts = (tmp_path / 'log').read_text().count('start')
  points = (7 + 7 + 5 + 1) * (5 + 15 + 5 + 5 + 5 + 6)
  assert starts == points + 6 * 9 * 2 - 6 * 6
  assert 'n = 2' in output


@pytest.mark.slow
def test_a_failed_run_is_missing_from_its_table_alone(tmp_path):
  (tmp_path / 'script.json').write_text('{"LN": "raise"}')
  status, output, errors = calling.call(
      all_programs, f'--output_dir={tmp_path}', '--seeds=1',
      '--programs=natural_noise')
  assert status == 1
  assert re.search(r'^LN +not run', output, re.M)
  assert re.search(r'^CE +90.00', output, re.M)
  assert 'Failed: digits_n-humanworst-LN' in errors


def test_a_program_that_does_not_exist_is_named(tmp_path):
  status, _, _ = calling.call(
      all_programs, f'--output_dir={tmp_path}', '--programs=nonesuch')
  assert status.startswith('all: --programs: must be some of')


def test_without_numbers_no_table_is_assembled(tmp_path):
  assert not list(assembled.write(tmp_path))

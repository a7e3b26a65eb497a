"""A program on two workers, as a user starts it."""

import signal
import time

import pytest

from experiments import training
from experiments.cli import recipes
from experiments.sweep import launch
from tests import forks
from tests.experiments.training import loopback

_SECONDS = 400


def _program(tmp_path, *arguments):
  """The same command on both workers, but for the output directory."""
  return loopback.workers(*(
      (forks.program, 'experiments.synthetic_noise',
       '--strategy=multi_worker', '--methods=CE,LN', '--noise=sym:0.4',
       '--batch_size=167',
       f'--output_dir={tmp_path / name}', *arguments)
      for name in ('chief', 'other')))


def _finish(processes):
  outcomes = [process.communicate(timeout=_SECONDS) for process in processes]
  assert [process.returncode for process in processes] == [0, 0], outcomes
  (table, progress), (nothing, line) = outcomes
  assert not nothing
  assert not (progress + line).count('INFO')
  [line] = line.splitlines()
  assert line.startswith('worker 1 (127.0.0.1:')
  return table, progress


@pytest.mark.parametrize('flag, words', [
    ('--jobs=2', '--jobs: must be 1 with --strategy=multi_worker'),
    ('--jit', '--jit: not with --strategy=multi_worker'),
])
def test_flags_that_make_no_sense_are_refused(flag, words, monkeypatch):
  monkeypatch.setenv('TF_CONFIG', loopback.tf_config(['a:1', 'b:1'], 1))
  recipes.parse(['program', '--strategy=multi_worker', flag])
  with pytest.raises(recipes.BadFlagError, match=words):
    launch.check_flags()


@pytest.mark.slow
@pytest.mark.thorough
def test_the_chief_prints_and_writes_and_says_what_is_finished(tmp_path):
  with _program(tmp_path, '--epochs=2') as processes:
    table, progress = _finish(processes)
  assert table.startswith('Test accuracy')
  assert '0 runs finished before, 2 to train, 1 at a time' in progress
  assert not (tmp_path / 'other').exists()
  files = sorted((tmp_path / 'chief').glob('*.json'))
  assert [training.read_result(file).device['workers']
          for file in files] == [2, 2]
  times = [file.stat().st_mtime_ns for file in files]
  with _program(tmp_path, '--epochs=2') as processes:
    again, progress = _finish(processes)
  assert again == table
  assert '2 runs finished before, 0 to train' in progress
  assert [file.stat().st_mtime_ns for file in files] == times


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize('victim', [0, 1])
def test_a_worker_that_is_told_to_end_ends_the_other_with_one_line(
    victim, tmp_path):
  with _program(tmp_path, '--epochs=100000') as processes:
    deadline = time.monotonic() + _SECONDS
    while not list(tmp_path.glob('chief/checkpoints/*/*.ckpt')):
      assert all(process.poll() is None for process in processes)
      assert time.monotonic() < deadline
      time.sleep(.1)
    processes[victim].send_signal(signal.SIGTERM)
    _, errors = processes[victim].communicate(timeout=60)
    assert processes[victim].returncode == 128 + signal.SIGINT
    assert 'synthetic_noise: interrupted; the same command' in errors
    survivor = processes[1 - victim]
    _, errors = survivor.communicate(timeout=60)
  assert survivor.returncode == 1
  assert 'Traceback' not in errors
  last = errors.splitlines()[-1]
  assert last.startswith(f'synthetic_noise: Worker {victim} (127.0.0.1:')
  assert 'Start all workers again: digits-sym0.4-' in last

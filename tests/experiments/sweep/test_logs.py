"""What a run leaves to read when it fails."""

import io
import json
import os

from absl.testing import flagsaver
import pytest

from experiments import training
from experiments.sweep import in_process
from experiments.sweep import launch
from experiments.sweep import logs
from experiments.sweep import plan as plan_lib
from experiments.sweep import pool as pool_lib
from experiments.sweep import worker

_FAKE = 'tests.experiments.sweep.fake_worker'
_RUN = training.Run(method='LN', noise='sym:0.4', epochs=2)


def _sweep(directory, action, **settings):
  (directory / 'script.json').write_text(json.dumps({'LN': action}))
  stream = io.StringIO()
  pool = pool_lib.Pool(1, module=_FAKE)
  try:
    results = plan_lib.execute(
        plan_lib.Plan([_RUN], directory), pool, stream=stream, **settings)
  finally:
    pool.close()
  return results, stream.getvalue()


def test_a_failure_is_named_with_its_log_and_the_log_has_the_traceback(
    tmp_path):
  results, said = _sweep(tmp_path, 'raise')
  log = tmp_path / 'logs' / f'{_RUN.key}.log'
  assert str(log) in results.failures[_RUN.key] and str(log) in said
  text = log.read_text()
  assert 'Traceback' in text and 'ArithmeticError: out of numbers' in text
  assert (tmp_path / 'logs' / f'{_RUN.key}.log.1').exists()  # the first try


def test_a_success_leaves_no_log_unless_it_is_asked_for(tmp_path):
  _sweep(tmp_path, 'finish')
  assert not (tmp_path / 'logs').exists()
  (tmp_path / f'{_RUN.key}.json').unlink()
  _sweep(tmp_path, 'finish', keep_logs=True)
  assert logs.path(tmp_path, _RUN.key).exists()


def test_what_a_run_prints_is_in_its_log_and_not_elsewhere(tmp_path, capfd):
  task = {'output_dir': tmp_path, 'key': 'k', 'keep_logs': True}
  with logs.writing(task):
    os.write(2, b'from C++\n')
    print('from Python', file=open(2, 'w', closefd=False))  # noqa: SIM115
  os.write(2, b'after\n')
  assert 'from C++\nfrom Python\n' in logs.path(tmp_path, 'k').read_text()
  assert capfd.readouterr().err == 'after\n'


def test_a_log_that_cannot_be_written_does_not_stop_a_run(tmp_path):
  (tmp_path / 'logs').write_text('in the way')
  with logs.writing({'output_dir': tmp_path, 'key': 'k'}):
    pass


def test_the_directory_keeps_the_last_logs(tmp_path, monkeypatch):
  monkeypatch.setattr(logs, '_MOST', 3)
  for index in range(5):
    task = {'output_dir': tmp_path, 'key': f'k{index}', 'keep_logs': True}
    with logs.writing(task):
      pass
    os.utime(logs.path(tmp_path, f'k{index}'), (index, index))
  assert sorted(os.listdir(tmp_path / 'logs')) == [
      'k2.log', 'k3.log', 'k4.log']


def test_in_process_a_run_is_trained_here_and_its_errors_are_raised(
    tmp_path, monkeypatch):
  processes = []

  def train(task, tell):
    processes.append(os.getpid())
    raise ArithmeticError('look at me')

  monkeypatch.setattr(worker, 'train_alone', train)
  with pytest.raises(ArithmeticError, match='look at me'):
    plan_lib.execute(
        plan_lib.Plan([_RUN], tmp_path), in_process.Pool(), in_process=True,
        stream=io.StringIO())
  assert processes == [os.getpid()]
  assert not (tmp_path / 'logs').exists()


def test_a_worker_calls_a_function_that_measures(tmp_path):
  file = tmp_path / 'made'
  task = {'call': 'os:mkdir', 'arguments': {'path': str(file)},
          'output_dir': str(tmp_path), 'key': 'mkdir-k'}
  assert worker.perform(task, None) == 'done'
  assert file.is_dir()
  assert not (tmp_path / 'logs').exists()


def test_a_measurement_that_fails_names_the_log_with_its_traceback(tmp_path):
  with flagsaver.flagsaver():
    launch.FLAGS(['program', f'--output_dir={tmp_path}', '--jobs=1'])
    with pytest.raises(launch.IncompleteError) as caught:
      launch.measure('json:loads', [{'s': '[]'}, {'s': '['}])
  log = tmp_path / 'logs' / 'loads-1.log'
  assert '1 of 2 measurements failed: JSONDecodeError' in str(caught.value)
  assert f'(log: {log})' in str(caught.value)
  assert 'Traceback' in log.read_text()

"""Tests of the sweep, with real processes that train nothing."""

import contextlib
import dataclasses
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import zipfile

import pytest

from experiments import training
from experiments.sweep import estimates as estimates_lib
from experiments.sweep import locks
from experiments.sweep import plan as plan_lib
from experiments.sweep import pool as pool_lib
from experiments.sweep import progress
from experiments.sweep import store
from tests import waiting
from tests.experiments.sweep import fake_worker

_FAKE = 'tests.experiments.sweep.fake_worker'


def _runs(*methods, **settings):
  return [training.Run(method=method, noise='sym:0.4', epochs=2, **settings)
          for method in methods]


def _sweep(runs, directory, jobs=2, stream=None):
  with contextlib.closing(pool_lib.Pool(jobs, module=_FAKE)) as pool:
    return plan_lib.execute(
        plan_lib.Plan(runs, directory), pool, stream=stream or io.StringIO())


def _script(directory, **actions):
  (directory / 'script.json').write_text(json.dumps(actions))


def _log(directory):
  return [line.split() for line in (directory / 'log').read_text().splitlines()]


def _gone(pid, seconds=10.):
  """Whether a process has ended, or does so in a while."""
  deadline = time.monotonic() + seconds
  while time.monotonic() < deadline:
    try:
      os.kill(pid, 0)
      status = pathlib.Path(f'/proc/{pid}/stat').read_text().split(')')[1]
      if status.split()[0] == 'Z':
        return True
    except (ProcessLookupError, FileNotFoundError):
      return True
    time.sleep(.05)
  return False


def test_all_runs_are_trained_once(tmp_path):
  runs = _runs('CE', 'LN', 'GCE', 'CE')
  results = _sweep(runs, tmp_path)
  assert set(results) == {run.key for run in runs}
  assert not results.failures
  starts = [line[1] for line in _log(tmp_path) if line[0] == 'start']
  assert sorted(starts) == ['CE', 'GCE', 'LN']


@pytest.mark.slow
def test_a_prerequisite_is_added_and_waited_for(tmp_path):
  _script(tmp_path, CE='sleep 1')
  results = _sweep(_runs('Forward', 'LN'), tmp_path)
  assert {result.run['method'] for result in results.values()} == {
      'CE', 'Forward', 'LN'}
  words = [line[:2] for line in _log(tmp_path)]
  assert words.index(['end', 'CE']) < words.index(['start', 'Forward'])
  # The other worker was not idle meanwhile.
  assert words.index(['start', 'LN']) < words.index(['end', 'CE'])


def test_finished_runs_are_skipped(tmp_path):
  _sweep(_runs('CE', 'LN'), tmp_path)
  before = _log(tmp_path)
  plan = plan_lib.Plan(_runs('CE', 'LN'), tmp_path)
  results = plan_lib.execute(plan, pool=None)
  assert len(results) == 2
  assert _log(tmp_path) == before


def test_an_archived_result_is_finished_and_serves_as_prerequisite(tmp_path):
  [key] = _sweep(_runs('CE'), tmp_path)
  file = tmp_path / f'{key}.json'
  result = training.read_result(file)
  store.pack([result], tmp_path / 'old.zip')
  file.unlink()
  results = _sweep(_runs('CE', 'Forward'), tmp_path)
  assert len(results) == 2
  assert [line[1] for line in _log(tmp_path) if line[0] == 'start'] == [
      'CE', 'Forward']
  assert training.read_result(file) == result  # for Forward to find


@pytest.mark.slow
def test_a_crash_is_tried_once_more(tmp_path):
  _script(tmp_path, LN='exit once')
  results = _sweep(_runs('CE', 'LN'), tmp_path)
  assert len(results) == 2
  assert not results.failures


@pytest.mark.parametrize('action, reason', [
    ('exit', 'status 3'), ('kill', 'signal 9'),
    ('raise', 'ArithmeticError: out of numbers'), ('nothing', 'no result')])
def test_a_run_that_crashes_twice_is_reported_and_the_rest_goes_on(
    tmp_path, action, reason):
  _script(tmp_path, LN=action)
  runs = _runs('LN', 'CE', 'GCE')
  results = _sweep(runs, tmp_path, jobs=1)
  assert set(results) == {run.key for run in runs[1:]}
  assert list(results.failures) == [runs[0].key]
  assert reason in results.failures[runs[0].key]
  assert [line[1] for line in _log(tmp_path)].count('LN') >= 2


@pytest.mark.slow
def test_a_run_whose_prerequisite_failed_is_not_tried(tmp_path):
  _script(tmp_path, CE='raise')
  [run] = _runs('Forward')
  results = _sweep([run], tmp_path, jobs=1)
  assert not results
  assert 'which failed' in results.failures[run.key]
  assert {line[1] for line in _log(tmp_path)} == {'CE'}


def test_a_diverged_run_is_a_result(tmp_path):
  _script(tmp_path, LN='diverge')
  [result] = _sweep(_runs('LN'), tmp_path).values()
  assert result.status == 'diverged'


@pytest.mark.slow
def test_two_sweeps_of_one_directory_train_each_run_once(tmp_path):
  methods = ('CE', 'GCE', 'LS', 'NAN', 'Forward')
  _script(tmp_path, **dict.fromkeys(methods, 'sleep 0.3'))
  found = {}

  def one(name):
    found[name] = _sweep(_runs(*methods), tmp_path)

  threads = [threading.Thread(target=one, args=(i,)) for i in range(2)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  assert found[0] == found[1]
  assert len(found[0]) == 5
  starts = [line[1] for line in _log(tmp_path) if line[0] == 'start']
  assert sorted(starts) == sorted(methods)


def test_the_lock_of_a_process_that_died_is_free(tmp_path):
  holder = subprocess.Popen(
      [sys.executable, '-c', 'import sys, time\n'
       'from experiments.sweep import locks\n'
       'with locks.hold(sys.argv[1], "run") as free:\n'
       '  print(free, flush=True)\n  time.sleep(60)', str(tmp_path)],
      stdout=subprocess.PIPE)
  with holder:
    assert holder.stdout.readline() == b'True\n'
    with locks.hold(tmp_path, 'run') as free:
      assert not free
    with locks.hold(tmp_path, 'another') as free:
      assert free
    holder.kill()
  with locks.hold(tmp_path, 'run') as free:
    assert free
  assert not list((tmp_path / '.locks').iterdir())


@pytest.mark.parametrize('content', ['{"key": ', '[]', '{"key": "x"}', '\xff'])
def test_a_damaged_result_is_reported_and_left_alone(tmp_path, content):
  runs = _runs('LN', 'CE')
  file = tmp_path / f'{runs[0].key}.json'
  file.write_text(content, encoding='latin-1')
  results = _sweep(runs, tmp_path)
  assert set(results) == {runs[1].key}
  assert file.name in results.failures[runs[0].key]
  assert file.read_text(encoding='latin-1') == content


def test_a_foreign_file_is_named_and_left_alone(tmp_path):
  runs = _runs('CE')
  results = _sweep(runs, tmp_path)
  (tmp_path / 'mine.json').write_text('{"my": "notes"}')
  (tmp_path / 'renamed.json').write_text(results[runs[0].key].to_json())
  (tmp_path / 'broken.zip').write_text('no archive')
  store.pack(results.values(), tmp_path / 'flipped.zip')
  content = bytearray((tmp_path / 'flipped.zip').read_bytes())
  content[100:110] = bytes(10)
  (tmp_path / 'flipped.zip').write_bytes(content)
  with zipfile.ZipFile(tmp_path / 'foreign.zip', 'w') as archive:
    archive.writestr('notes.txt', 'mine')
  found, problems = store.Store(tmp_path).everything
  assert set(found) == {runs[0].key}
  assert len(problems) == 5
  for name in ('mine.json', 'renamed.json', 'broken.zip', 'flipped.zip',
               'foreign.zip'):
    assert sum(name in problem for problem in problems) == 1
    assert (tmp_path / name).exists()


def test_an_interrupt_leaves_no_process_behind(tmp_path):
  _script(tmp_path, LN='sleep 60')
  log = tmp_path / 'log'

  def interrupt():
    waiting.wait_for(log.exists)
    signal.raise_signal(signal.SIGINT)

  threading.Thread(target=interrupt).start()
  begin = time.monotonic()
  with pytest.raises(KeyboardInterrupt):
    _sweep(_runs('LN'), tmp_path)
  assert time.monotonic() - begin < 30
  [[_, _, pid]] = _log(tmp_path)
  assert _gone(int(pid))
  # And what was left undone can be done.
  _script(tmp_path)
  assert len(_sweep(_runs('LN'), tmp_path)) == 1


def test_the_workers_of_a_sweep_that_is_killed_end_themselves(tmp_path):
  _script(tmp_path, LN='sleep 60')
  run, = _runs('LN')
  task = {'output_dir': str(tmp_path), 'key': run.key, 'run': run.to_dict()}
  sweeping = subprocess.Popen(
      [sys.executable, '-c', 'import json, sys\n'
       'from experiments.sweep import pool\n'
       f'workers = pool.Pool(1, module={_FAKE!r})\n'
       'workers.submit("key", json.loads(sys.argv[1]))\n'
       'workers.wait(60)\nworkers.wait(60)', json.dumps(task)])
  with sweeping:
    waiting.wait_for((tmp_path / 'log').exists)
    sweeping.kill()
  [[_, _, pid]] = _log(tmp_path)
  assert _gone(int(pid))


@pytest.mark.slow
def test_a_worker_is_replaced_when_it_has_grown(tmp_path, monkeypatch):
  monkeypatch.setattr(pool_lib, 'GROWTH_BYTES', -1)
  runs = _runs('CE', 'LN', 'GCE', 'NAN', 'LS')
  assert len(_sweep(runs, tmp_path, jobs=1)) == 5
  pids = [line[2] for line in _log(tmp_path) if line[0] == 'start']
  assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [1] * 5


def test_waiting_for_another_sweep_wears_out_no_worker(tmp_path, monkeypatch):
  monkeypatch.setattr(pool_lib, 'GROWTH_BYTES', -1)
  [run] = _runs('CE')
  task = {'output_dir': str(tmp_path), 'key': run.key, 'run': run.to_dict()}
  pool = pool_lib.Pool(1, module=_FAKE)
  pids = set()
  try:
    with locks.hold(tmp_path, run.key):
      for _ in range(4):
        pool.submit(run.key, task)
        assert pool.wait(120) == [(run.key, {'status': 'busy'})]
        pids |= set(pool.pids())
  finally:
    pool.close()
  assert len(pids) == 1


def test_the_estimate_follows_finished_runs():
  one, other = _runs('CE', 'LN')
  longer = training.Run(method='CE', epochs=20)
  estimates = estimates_lib.Estimates()
  assert not estimates.knows(one)
  document = fake_worker.document(one.to_dict(), one.key)
  document['seconds'] = {'wall': 7., 'steps': 1., 'epochs': [1., 2.]}
  estimates.add(training.Result(**document))
  assert estimates.knows(other)
  assert estimates.seconds(longer) == pytest.approx(4 + 20 * 1.5)
  assert estimates.seconds(other) == pytest.approx(7)
  document['seconds'] = {'wall': 9., 'steps': 1., 'epochs': [2., 3.]}
  estimates.add(training.Result(**document))
  assert estimates.seconds(longer) == pytest.approx(4 + 20 * 2)


def test_workers_share_out_threads_and_gpus():
  pool = pool_lib.Pool(
      2, gpus=['3', '5'], module='tests.experiments.sweep.tell')
  seen = {}
  try:
    for key in ('a', 'b'):
      pool.submit(key, {'variables': ['CUDA_VISIBLE_DEVICES',
                                      'TF_NUM_INTRAOP_THREADS']})
    while len(seen) < 2:
      seen.update({key: answer['status'] for key, answer in pool.wait(30)})
  finally:
    pool.close()
  threads = max(1, len(os.sched_getaffinity(0)) // 2)
  assert sorted(seen.values()) == [f'3 {threads}', f'5 {threads}']


def test_the_progress_counts_runs_by_state(tmp_path):
  _script(tmp_path, LN='raise')
  stream = io.StringIO()
  _sweep(_runs('LN', 'CE'), tmp_path, jobs=1, stream=stream)
  text = stream.getvalue()
  assert '0/2 runs, 1 running, 0 failed' in text
  assert 'trying once more' in text
  assert 'given up' in text


class _Terminal(io.StringIO):

  def isatty(self):
    return True


def test_a_terminal_shows_a_bar_for_the_sweep_and_one_for_each_run(
    monkeypatch):
  monkeypatch.setenv('TERM', 'xterm')
  monkeypatch.setenv('COLUMNS', '120')
  stream, runs = _Terminal(), _runs('CE', 'LN')
  with progress.Display(
      stream, runs, 0, estimates_lib.Estimates()) as display:
    for run in runs:
      display.note(run.key, {
          'epoch': 1, 'epochs': 2, 'loss': .5, 'accuracy': .25})
    display.show(0, 2, 0, 2)
    display.say('[not markup]')
    time.sleep(.3)  # bars are drawn ten times a second
  text = stream.getvalue()
  assert '0/2 runs, 2 running, 0 failed' in text
  for run in runs:
    assert (f'digits-sym0.4-{run.method}-seed0  epoch 1/2  loss 0.5  accuracy '
            '25.00 %') in text
  assert '[not markup]' in text


@pytest.mark.slow
def test_the_line_of_a_run_names_its_gpu(tmp_path, monkeypatch):
  monkeypatch.setenv('TERM', 'xterm')
  monkeypatch.setenv('COLUMNS', '120')
  runs, stream = _runs('CE', 'LN'), _Terminal()
  pool = pool_lib.Pool(2, gpus=['3', '5'], module=_FAKE)
  told = {}
  try:
    for run in runs:
      pool.submit(run.key, {
          'output_dir': str(tmp_path), 'key': run.key, 'run': run.to_dict()})
    while len(told) < 2:
      told |= {key: answer['progress'] for key, answer in pool.wait(60)
               if 'progress' in answer}
  finally:
    pool.close()
  with progress.Display(
      stream, runs, 0, estimates_lib.Estimates()) as display:
    for key, each in told.items():
      display.note(key, each)
    display.show(0, 2, 0, 2)
    time.sleep(.3)  # bars are drawn ten times a second
  for gpu, run in zip((3, 5), runs):
    assert f'GPU {gpu}: digits-sym0.4-{run.method}-seed0' in stream.getvalue()


def test_weights_that_are_needed_and_gone_mean_a_new_training(tmp_path):
  [run] = _runs('CE')
  file = tmp_path / f'{run.key}.json'
  document = fake_worker.document(run.to_dict(), run.key)
  document['weights'] = {'file': f'{run.key}.npz', 'sha256': '0'}
  file.write_text(json.dumps(document))
  always = lambda run: True
  assert not plan_lib.Plan([run], tmp_path, keep_weights=always).pending
  assert plan_lib.Plan([run], tmp_path, need_weights=always).pending
  (tmp_path / f'{run.key}.npz').touch()
  assert not plan_lib.Plan([run], tmp_path, need_weights=always).pending


@pytest.mark.slow
@pytest.mark.thorough
def test_a_killed_training_goes_on_where_it_was(tmp_path):
  """With a real worker: killed in the middle, tried again, finished."""
  [run] = _runs('LN')
  run = dataclasses.replace(run, epochs=60)
  checkpoints = tmp_path / 'checkpoints' / run.key
  pool = pool_lib.Pool(1)

  def kill():
    waiting.wait_for(lambda: any(
        int(file.stem[-6:]) > 3 for file in checkpoints.glob('epoch-*.ckpt')),
              seconds=120)
    os.kill(pool.pids()[0], signal.SIGKILL)

  killer = threading.Thread(target=kill)
  killer.start()
  stream = io.StringIO()
  try:
    results = plan_lib.execute(
        plan_lib.Plan([run], tmp_path), pool, stream=stream)
  finally:
    killer.join()
    pool.close()
  assert 'signal 9' in stream.getvalue()
  assert len(results[run.key].history['loss']) == 60
  assert results[run.key].metrics['test_accuracy'] > .5
  assert not checkpoints.exists()


def test_the_time_left_follows_the_pace_of_the_runs(monkeypatch):
  now = 100.
  monkeypatch.setattr(time, 'monotonic', lambda: now)
  run, = _runs('CE')
  run = dataclasses.replace(run, epochs=100)
  stream = io.StringIO()
  display = progress.Display(stream, [run], 0, estimates_lib.Estimates())
  told = {'epochs': 100, 'loss': 1., 'accuracy': None}
  display.note(run.key, told | {'epoch': 1})
  now = 300.  # long after what was guessed
  display.note(run.key, told | {'epoch': 51})
  display.show(0, 1, 0, 2)
  assert '3 min left' in stream.getvalue()  # 49 epochs of 4 s


@pytest.mark.parametrize('stream, seconds', [
    (io.StringIO(), 10.), (_Terminal(), .5)])
def test_the_time_left_is_not_computed_at_every_epoch(
    monkeypatch, stream, seconds):
  now, asked = 100., []
  monkeypatch.setattr(time, 'monotonic', lambda: now)
  monkeypatch.setenv('TERM', 'xterm')
  estimates = estimates_lib.Estimates()
  monkeypatch.setattr(
      estimates, 'seconds', lambda run: asked.append(run) or 1.)
  runs = _runs('CE', 'LN')
  display = progress.Display(stream, runs, 0, estimates)
  for _ in range(100):
    display.show(0, 2, 0, 2)
  assert len(asked) == len(runs)
  now += seconds
  display.show(0, 2, 0, 2)
  assert len(asked) == 2 * len(runs)

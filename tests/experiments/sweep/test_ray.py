"""Tests of sweeps over Ray clusters: real nodes, all on this machine.

Each cluster has its own directory and its own ports.
"""

import contextlib
import dataclasses
import io
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

from absl.testing import flagsaver
import psutil
import pytest

from experiments import synthetic_noise
from experiments import training
from experiments.sweep import plan as plan_lib
from experiments.sweep import pool as pool_lib
from tests import waiting
from tests.experiments.programs import calling

ray = pytest.importorskip(
    'ray', reason="Ray is not installed: pip install -e '.[ray]'")
from experiments.sweep import ray_pool  # noqa: E402, needs Ray

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

_ROOT = pathlib.Path(__file__).resolve().parents[3]
_EPOCHS = 40
_RUNS = [
    training.Run(method=method, noise='sym:0.4', epochs=_EPOCHS)
    for method in ('Forward', 'LN')]  # and CE, for Forward
_WAIT_SECONDS = 400.
_LIMIT_SECONDS = 600  # for a machine that is busy otherwise


@pytest.fixture(autouse=True)
def _limit():
  """Ends a test that hangs."""
  def fail(*unused):
    pytest.fail(f'The test took more than {_LIMIT_SECONDS} s.')

  before = signal.signal(signal.SIGALRM, fail)
  signal.alarm(_LIMIT_SECONDS)
  yield
  signal.alarm(0)
  signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def _settings(monkeypatch):
  _set_up(monkeypatch)


def _set_up(monkeypatch):
  for name, value in ray_pool.SETTINGS.items():
    monkeypatch.setenv(name, value)
  monkeypatch.setenv('RAY_health_check_period_ms', '500')
  monkeypatch.delenv('RAY_ADDRESS', raising=False)


@contextlib.contextmanager
def _start_cluster(nodes):
  """A cluster of its own; each of its nodes has one CPU."""
  from ray import cluster_utils
  cluster = cluster_utils.Cluster()
  directory = tempfile.mkdtemp(prefix='ray')  # names of sockets must be short
  os.mkdir(os.path.join(directory, 'ray'))
  with pytest.MonkeyPatch.context() as patch:
    patch.setenv('RAY_TMPDIR', directory)  # where it notes the address
    for _ in range(nodes):
      cluster.add_node(num_cpus=1, include_dashboard=False, temp_dir=directory)
  yield cluster
  ray.shutdown()
  mine = _family(cluster.list_all_nodes())
  cluster.shutdown()
  shutil.rmtree(directory, ignore_errors=True)
  _, left = psutil.wait_procs(mine, timeout=20)
  assert not left


@pytest.fixture(name='two_nodes')
def _two_nodes():
  with _start_cluster(2) as cluster:
    yield cluster


@pytest.fixture(name='one_node', scope='module')
def _one_node():
  with pytest.MonkeyPatch.context() as patch:
    _set_up(patch)
    with _start_cluster(1) as cluster:
      yield cluster


@pytest.fixture(name='reference', scope='module')
def _reference(tmp_path_factory):
  """The same runs by processes of this machine, with a thread each."""
  directory = tmp_path_factory.mktemp('reference')
  pool = pool_lib.Pool(len(os.sched_getaffinity(0)))
  try:
    return directory, plan_lib.execute(
        plan_lib.Plan(_RUNS, directory, keep_weights=_is_ln), pool,
        stream=io.StringIO())
  finally:
    pool.close()


def _is_ln(run):
  return run.method == 'LN'


def _family(nodes):
  """All processes of nodes."""
  return [
      process for node in nodes for infos in node.all_processes.values()
      for info in infos if psutil.pid_exists(info.process.pid)
      for parent in [psutil.Process(info.process.pid)]
      for process in [parent, *parent.children(recursive=True)]]


def _kill(node):
  """As if the power went: no process of the node sees its end coming."""
  for process in _family([node]):
    process.kill()


def _epochs(directory):
  """The last checkpoint of each run that has one."""
  last = {}
  for file in directory.glob('checkpoints/*/epoch-*.ckpt'):
    key, epoch = file.parent.name, int(file.stem[-6:])
    last[key] = max(epoch, last.get(key, 0))
  return last


def _numbers(results):
  """All that must be equal, number by number."""
  return {
      key: dataclasses.replace(
          result, seconds={}, steps_per_second=0.).to_json()
      for key, result in results.items()}


class _Watched(ray_pool.Pool):
  """Notes the answers."""

  def __init__(self, *arguments):
    super().__init__(*arguments)
    self.seen = []

  def wait(self, seconds):
    answers = super().wait(seconds)
    self.seen += answers
    return answers


def test_a_node_is_killed_and_the_results_are_those_of_a_local_sweep(
    tmp_path, two_nodes, reference):
  victim = next(iter(two_nodes.worker_nodes))

  def kill_when_both_train():
    waiting.wait_for(lambda: len(_epochs(tmp_path)) == 2, _WAIT_SECONDS)
    _kill(victim)

  pool = _Watched(two_nodes.address)
  try:
    assert pool.slots == 2
    threading.Thread(target=kill_when_both_train, daemon=True).start()
    results = plan_lib.execute(
        plan_lib.Plan(_RUNS, tmp_path, keep_weights=_is_ln), pool,
        stream=io.StringIO())
    # Ray itself takes a while to see it.
    waiting.wait_for(lambda: pool.slots == 1, _WAIT_SECONDS)
  finally:
    pool.close()
  assert not results.failures
  directory, expected = reference
  assert _numbers(results) == _numbers(expected)
  name = next(result.weights['file'] for result in results.values()
              if result.weights is not None)
  assert (tmp_path / name).read_bytes() == (directory / name).read_bytes()
  # It was really lost, and went on where it was.
  [lost] = [index for index, (_, answer) in enumerate(pool.seen)
            if answer.get('status') == 'lost']
  key = pool.seen[lost][0]
  first = next(answer['progress'] for other, answer in pool.seen[lost + 1:]
               if other == key)
  assert first['epoch'] > 1
  assert not _epochs(tmp_path)


def test_nodes_that_do_not_see_the_output_directory_send_their_results(
    tmp_path, one_node, reference):
  """Through the command line; a driver that is killed is started again."""
  results = tmp_path / 'results'
  # What this is depends on the process: the driver's is not that of a worker.
  output_dir = '/proc/self/cwd/results'
  command = [
      sys.executable, '-m', 'experiments.synthetic_noise', '--launcher=ray',
      f'--ray_address={one_node.address}', '--methods=Forward',
      '--noise=sym:0.4', f'--epochs={_EPOCHS}', f'--output_dir={output_dir}',
      '--keep_weights=none']
  environment = {**os.environ, 'PYTHONPATH': str(_ROOT)}
  with subprocess.Popen(
      command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL) as one:
    waiting.wait_for(lambda: list(results.glob('*.json')), _WAIT_SECONDS)
    one.kill()
  before = {file: file.read_bytes() for file in results.glob('*.json')}
  assert len(before) == 1  # CE
  two = subprocess.run(
      command, cwd=tmp_path, env=environment, capture_output=True, text=True,
      timeout=400, check=False)
  assert two.returncode == 0, two.stderr
  assert '1 runs finished before, 1 to train' in two.stderr
  for file, content in before.items():
    assert file.read_bytes() == content
  found = {file.stem: training.read_result(file)
           for file in results.glob('*.json')}
  _, expected = reference
  assert len(found) == 2
  assert _numbers(found) == _numbers({key: expected[key] for key in found})
  assert not (results / 'checkpoints').exists()


def test_a_process_that_has_grown_is_replaced_without_a_loss(
    tmp_path, one_node, monkeypatch):
  monkeypatch.setattr(pool_lib, 'GROWTH_BYTES', -1)
  runs = [training.Run(method='CE', seed=seed) for seed in range(3)]
  pool = _Watched(
      one_node.address, 1., 0., 'tests.experiments.sweep.fake_worker')
  try:
    results = plan_lib.execute(
        plan_lib.Plan(runs, tmp_path), pool, stream=io.StringIO())
  finally:
    pool.close()
  assert len(results) == 3
  assert not results.failures
  assert {answer.get('status', 'done') for _, answer in pool.seen} == {'done'}
  lines = (tmp_path / 'log').read_text().splitlines()
  assert len({line.split()[-1] for line in lines}) == 3


def test_a_cluster_that_is_absent_or_too_small_is_one_line(
    tmp_path, one_node):
  for flags, words in (
      (['--ray_address=127.0.0.1:9'], 'nobody answers at 127.0.0.1:9'),
      ([f'--ray_address={one_node.address}', '--gpus_per_run=1'],
       'no node of the cluster has that much. Received: 1 and 1')):
    with flagsaver.flagsaver():
      status, _, _ = calling.call(
          synthetic_noise, '--launcher=ray', '--dry_run',
          f'--output_dir={tmp_path}', *flags)
    assert words in status
    assert '\n' not in status


def test_an_interrupt_ends_the_cluster_of_the_sweep(tmp_path):
  command = [
      sys.executable, '-m', 'experiments.synthetic_noise', '--launcher=ray',
      '--methods=LN', '--noise=sym:0.4', '--epochs=100000',
      f'--output_dir={tmp_path}']
  with subprocess.Popen(
      command, cwd=_ROOT, stderr=subprocess.PIPE, text=True) as driver:
    waiting.wait_for(lambda: _epochs(tmp_path), _WAIT_SECONDS)
    mine = psutil.Process(driver.pid).children(recursive=True)
    assert any('ray::perform' in process.name() for process in mine)
    driver.send_signal(signal.SIGINT)
    _, errors = driver.communicate(timeout=200)
  assert driver.returncode == 130
  assert 'the same command goes on from here' in errors
  _, left = psutil.wait_procs(mine, timeout=20)
  assert not left
  assert _epochs(tmp_path)  # to go on from

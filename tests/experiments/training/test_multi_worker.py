"""Several workers: they meet, one is killed, and the run goes on."""

import signal
import socket
import time
from unittest import mock

import pytest
import tensorflow as tf

from experiments import training
from experiments.training import cluster as cluster_lib
from experiments.training import devices
from experiments.training import store as store_lib
from tests.experiments.training import loopback

_SECONDS = 200
_RUN = dict(method='NAN', noise='sym:0.4', batch_size=167, epochs=20)


def _train(directory):
  training.train(
      training.Run(**_RUN), output_dir=directory, strategy='multi_worker',
      keep_weights=True)


def _workers(chief):
  return loopback.workers(*(
      (_train, directory) for directory in (chief, chief / 'of_the_other')))


def _run_to_the_end(directory):
  with _workers(directory) as processes:
    for process in processes:
      process.output(_SECONDS)
  return training.read_result(
      directory / f'{training.Run(**_RUN).key}.json')


@pytest.fixture(name='whole', scope='module')
def _whole(tmp_path_factory):
  return _run_to_the_end(tmp_path_factory.mktemp('whole'))


def _wait_for_epoch(epoch, directory, processes):
  deadline = time.monotonic() + _SECONDS
  while not any(
      int(file.stem.removeprefix('epoch-')) >= epoch
      for file in directory.glob('epoch-*.ckpt')):
    assert all(process.poll() is None for process in processes)
    assert time.monotonic() < deadline
    time.sleep(.002)


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize('victim', [0, 1])
def test_a_killed_worker_ends_the_other_and_the_run_resumes_bit_identical(
    victim, whole, tmp_path):
  directory = tmp_path / 'checkpoints' / whole.key
  with _workers(tmp_path) as processes:
    _wait_for_epoch(3, directory, processes)
    processes[victim].kill()
    survivor = processes[1 - victim]
    _, errors = survivor.communicate(timeout=60)
  assert survivor.returncode not in (0, -signal.SIGKILL)
  last = errors.strip().splitlines()[-1]
  assert 'LostWorkerError' in last
  assert f'Worker {victim} (127.0.0.1:' in last
  assert f'Start all workers again: {whole.key} goes on after epoch' in last
  assert not (tmp_path / f'{whole.key}.json').exists()
  epochs = store_lib.State.from_bytes(store_lib.Checkpoints(
      directory).latest()).records['epoch_seconds']
  result = _run_to_the_end(tmp_path)
  assert result.seconds['epochs'][:len(epochs)] == epochs, 'it began again'
  assert result.metrics == whole.metrics
  assert result.history == whole.history
  assert result.weights == whole.weights
  assert not (tmp_path / 'of_the_other').exists()


@pytest.mark.parametrize('text', [
    '', '{', '[]', '{}', '{"cluster": {"worker": ["a:1"]}}',
    '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker"}}',
    loopback.tf_config(['a:1'], 1), loopback.tf_config(['a'], 0),
    loopback.tf_config(['a:1', 'a:1'], 0), loopback.tf_config([], 0),
    '{"cluster": {"chief": ["a:1"], "worker": ["b:1"]}, '
    '"task": {"type": "worker", "index": 0}}',
])
def test_what_describes_no_workers_is_refused(text, monkeypatch):
  monkeypatch.setenv('TF_CONFIG', text)
  with pytest.raises(training.BadClusterError, match='TF_CONFIG must be such'):
    training.create_strategy('multi_worker')


@pytest.mark.slow
def test_a_worker_that_never_comes_is_named(monkeypatch):
  addresses = loopback.free_addresses(3)
  _, _, port = addresses[0].rpartition(':')
  monkeypatch.setenv('TF_CONFIG', loopback.tf_config(addresses, 1))
  with (socket.create_server(('127.0.0.1', int(port))),
        pytest.raises(training.LostWorkerError) as caught):
    training.create_strategy('multi_worker', wait_seconds=.5)
  assert f'in vain for worker 2 ({addresses[2]}).' in str(caught.value)


def test_workers_wait_at_the_address_that_they_are_told_and_at_no_other():
  [address] = loopback.free_addresses(1)
  host, _, port = address.rpartition(':')
  with cluster_lib._listen(host, int(port)) as listener:
    assert listener.getsockname()[0] == '127.0.0.1'


@pytest.mark.parametrize('address, is_public', [
    ('8.8.8.8:2222', True), ('[2001:4860:4860::8888]:2222', True),
    ('[::ffff:8.8.8.8]:2222', True), ('0.0.0.0:2222', True),
    ('[::]:2222', True),
    ('127.0.0.1:2222', False), ('10.1.2.3:2222', False),
    ('192.168.0.7:2222', False), ('[::1]:2222', False)])
def test_public_addresses_are_refused(address, is_public):
  cluster = cluster_lib.Cluster(('127.0.0.1:2221', address), 0)
  if not is_public:
    cluster_lib.check_private(cluster)
    return
  with pytest.raises(training.BadClusterError, match='Worker 1 .*public'):
    cluster_lib.check_private(cluster)


def test_a_strategy_over_public_addresses_is_not_even_tried(monkeypatch):
  monkeypatch.setenv('TF_CONFIG', loopback.tf_config(
      ['127.0.0.1:2221', '8.8.8.8:2222'], 0))
  with pytest.raises(training.BadClusterError, match='public address'):
    training.create_strategy('multi_worker')


def test_a_port_in_use_is_named(monkeypatch):
  [address] = loopback.free_addresses(1)
  monkeypatch.setenv('TF_CONFIG', loopback.tf_config([address], 0))
  with (socket.create_server(('', int(address.rpartition(':')[2]))),
        pytest.raises(training.LostWorkerError, match='Address already in')):
    training.create_strategy('multi_worker')


@pytest.mark.parametrize('error, words', [
    (tf.errors.UnavailableError(None, None, (
        'Collective ops is aborted by: Connection reset by peer\nfrom remote '
        'target /job:worker/replica:0/task:2 while calling RecvBuf')),
     r'Worker 2 \(c:1\) was lost. Go on.'),
    (tf.errors.InternalError(None, None, (
        'Collective ops is aborted by: /task:1 says /task:0 crashed')),
     r'Worker 0 \(a:1\) was lost.'),
    (tf.errors.DeadlineExceededError(None, None, (
        'Deadline Exceeded\nRPC: /tensorflow.CoordinationService/Heartbeat')),
     r'Worker 0 \(a:1\) was lost.'),
    (tf.errors.CancelledError(None, None, ''), 'A worker was lost.'),
])
def test_the_lost_worker_is_named(error, words):
  strategy = mock.Mock(
      cluster_resolver=tf.distribute.cluster_resolver.SimpleClusterResolver(
          tf.train.ClusterSpec({'worker': ['a:1', 'b:1', 'c:1']}),
          task_type='worker', task_id=1))
  with (pytest.raises(training.LostWorkerError, match=words),
        devices.naming_lost_workers(strategy, lambda: 'Go on.')):
    raise error


def test_other_errors_are_left_alone():
  error = tf.errors.ResourceExhaustedError(None, None, 'out of memory')
  with (pytest.raises(tf.errors.ResourceExhaustedError),
        devices.naming_lost_workers(mock.MagicMock())):
    raise error
  with (pytest.raises(tf.errors.CancelledError),
        devices.naming_lost_workers(tf.distribute.get_strategy())):
    raise tf.errors.CancelledError(None, None, '')

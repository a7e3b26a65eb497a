"""A pool whose workers are the processes of a Ray cluster.

A run is a task of Ray that is tried once: whether it is tried again, a sweep
decides. Our code travels to the nodes with the job, and files travel with tasks
and answers, so the nodes need no common file system; where they see the output
directory they keep checkpoints there, and a run goes on wherever it is tried
again.
"""

import contextlib
import logging
import os
import pathlib
import shutil
import signal
import socket
import tempfile
import threading
import time
from typing import Any
import uuid

import ray

from experiments import training
from experiments.sweep import locks
from experiments.sweep import machine
from experiments.sweep import pool as pool_lib
from experiments.sweep import ray_worker
from ln_tfp import files

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_LOOK_SECONDS = 1.
_ANSWER_SECONDS = 5.
# Variables of ours that change what TensorFlow computes or prints.
_PASSED_ON = (
    'NVIDIA_TF32_OVERRIDE', 'TF_CPP_MIN_LOG_LEVEL', 'TF_ENABLE_ONEDNN_OPTS',
    'TF_XLA_FLAGS', 'XLA_FLAGS')
# For a cluster of our own; by default Ray's workers give way to everybody.
SETTINGS = {'RAY_USAGE_STATS_ENABLED': '0', 'RAY_worker_niceness': '0'}
# Not the fault of the run.
_LOSSES = (
    ray.exceptions.LocalRayletDiedError, ray.exceptions.NodeDiedError,
    ray.exceptions.ObjectLostError)


class Pool:
  """The part of a Ray cluster that runs can use.

  Has what a sweep uses of `pool.Pool`, and holds the lock of each run on behalf
  of its worker.

  Args:
    address: of a node of the cluster, HOST:PORT or 'auto'; this machine must be
      one of its nodes. None starts a cluster of this machine alone.
    cpus_per_run: CPUs that Ray reserves for a run; also its threads.
    gpus_per_run: GPUs that Ray reserves for a run; it sees no others. None is
      one where the cluster has GPUs.
    module: has `train_alone`, see `worker`.
  """

  def __init__(
      self, address: str | None = None, cpus_per_run: float = 1.,
      gpus_per_run: float | None = None,
      module: str = 'experiments.sweep.worker'):
    self._module = module
    self._running = {}  # stream of answers -> (key, output directory, lock)
    self._answers = []
    self._slots, self._next_look = 0, 0.
    self._temporary = None if address else _private_directory()
    self._needs = {'CPU': cpus_per_run, 'GPU': gpus_per_run or 0.}
    with machine.gpus_shown():  # the cluster of this machine counts them
      _connect(address, self._runtime(), self._temporary)
    if gpus_per_run is None:
      has_gpus = ray.cluster_resources().get('GPU', 0.) >= 1.
      self._needs['GPU'] = gpus_per_run = 1. if has_gpus else 0.
    self.gpus_per_run = gpus_per_run
    variables = {} if gpus_per_run else {'CUDA_VISIBLE_DEVICES': '-1'}
    self._perform = ray.remote(
        num_cpus=cpus_per_run, num_gpus=gpus_per_run, max_retries=0,
        num_returns='streaming', runtime_env={'env_vars': variables},
        # TensorFlow stays with the GPUs that it has seen first, and the next
        # task may be given others. 0 has no limit: see `ray_worker.perform`.
        max_calls=1 if gpus_per_run else 0)(ray_worker.perform)

  @property
  def slots(self) -> int:
    """How many runs the nodes have room for; nodes come and go."""
    if time.monotonic() >= self._next_look:
      self._slots = sum(
          self._room(node['Resources']) for node in ray.nodes()
          if node['Alive'])
      self._next_look = time.monotonic() + _LOOK_SECONDS
    return self._slots

  def submit(self, key: str, task: dict[str, Any]) -> None:
    """Gives a task to the cluster."""
    directory = pathlib.Path(task['output_dir'])
    lock = contextlib.ExitStack()
    if not lock.enter_context(locks.hold(directory, key)):
      lock.close()
      self._answers.append((key, {'status': 'busy'}))
      return
    needed = training.Run.from_dict(task['run']).prerequisites()
    names = [f'{run.key}.json' for run in needed]
    if (directory / f'{key}.json').exists():
      names.append(f'{key}.json')
    stream = self._perform.remote({
        **task, 'module': self._module, 'identity': _identity(directory),
        'growth_bytes': pool_lib.GROWTH_BYTES,
        'needed': {name: (directory / name).read_bytes() for name in names},
        **{name: os.path.abspath(task[name])
           for name in ('data_dir', 'tensorboard_dir') if task[name]}})
    self._running[stream] = (key, directory, lock)

  def wait(self, seconds: float) -> list[tuple[str, dict[str, Any]]]:
    """The (key, answer) pairs that come within this time."""
    answers, self._answers = self._answers, []
    streams = list(self._running)
    if not streams and not answers:
      time.sleep(seconds)
    if streams:
      ray.wait(streams, timeout=0 if answers else seconds)
      ready, _ = ray.wait(streams, num_returns=len(streams), timeout=0)
      answers += [self._receive(stream) for stream in ready]
    return answers

  def close(self) -> None:
    """Ends all tasks, in the middle of a training if need be."""
    for stream, (_, _, lock) in self._running.items():
      with contextlib.suppress(ray.exceptions.RayError):
        ray.cancel(stream, force=True)
      lock.close()
    self._running = {}
    ray.shutdown()
    if self._temporary is not None:
      shutil.rmtree(self._temporary, ignore_errors=True)

  def trains_on(self) -> str:
    """The cluster, for a person."""
    there = ray.cluster_resources()
    gpus = f'{there.get("GPU", 0.):g} GPUs and ' if self._needs['GPU'] else ''
    return f'a Ray cluster: {gpus}{there.get("CPU", 0.):g} CPU cores'

  def _receive(
      self, stream: ray.ObjectRefGenerator) -> tuple[str, dict[str, Any]]:
    """The next answer of a task; where it is the last, its files are kept."""
    key, directory, lock = self._running[stream]
    answer = _get(stream)
    if 'status' in answer:
      del self._running[stream]
      for name, content in answer.pop('files', {}).items():
        files.write_atomically(directory / name, content)
      lock.close()
    return key, answer

  def _room(self, resources: dict[str, float]) -> int:
    return min(int(resources.get(name, 0.) / amount + 1e-6)
               for name, amount in self._needs.items() if amount)

  def _runtime(self) -> dict[str, Any]:
    """What a process on any node has in common with one of `pool.Pool`."""
    packages = {'experiments', 'ln_tfp', self._module.partition('.')[0]}
    environment = pool_lib.threads_environment(int(self._needs['CPU'])) | {
        name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {
        'py_modules': [str(_ROOT / name) for name in sorted(packages)],
        'excludes': ['__pycache__'], 'env_vars': environment}


def _private_directory() -> pathlib.Path:
  """A new directory that nobody else can enter, with a short name.

  Ray's own default, /tmp/ray, belongs to whoever came first; and the names of
  its sockets must not have more than 107 bytes.
  """
  return pathlib.Path(tempfile.mkdtemp(prefix='ln-ray-', dir='/tmp'))


def _connect(
    address: str | None, runtime: dict[str, Any],
    temporary: pathlib.Path | None) -> None:
  """Connects to a cluster; raises `ConnectionError` where there is none."""
  arguments = dict(
      runtime_env=runtime, log_to_driver=False, logging_level=logging.ERROR)
  handler = signal.getsignal(signal.SIGTERM)
  try:
    if address is None:
      os.environ.update(SETTINGS | os.environ)
      ray.init('local', num_cpus=machine.cores(), include_dashboard=False,
               _temp_dir=str(temporary), **arguments)
    else:
      _check_answers(address)
      try:
        ray.init(address, **arguments)
      except ConnectionError as error:
        raise ConnectionError(
            f'{error}. A cluster that asks for a token needs '
            'RAY_AUTH_MODE=token here, too.') from error
  finally:
    if threading.current_thread() is threading.main_thread():
      signal.signal(signal.SIGTERM, handler)  # Ray has put its own there


def _check_answers(address: str) -> None:
  """Raises `ConnectionError` at once, where Ray would try for minutes."""
  host, _, port = address.rpartition(':')
  if not port.isdecimal():  # 'auto'
    return
  hosts = [host]
  if host in ('127.0.0.1', 'localhost'):  # by which Ray means its own address
    hosts.append(ray.util.get_node_ip_address())
  for host in hosts:
    with contextlib.suppress(OSError):
      socket.create_connection((host, int(port)), _ANSWER_SECONDS).close()
      return
  raise ConnectionError(f'nobody answers at {address}.')


def _get(stream: ray.ObjectRefGenerator) -> dict[str, Any]:
  """The next answer of a task, or what became of it."""
  try:
    return ray.get(next(stream))
  except _LOSSES as error:
    return {'status': 'lost', 'message': _line(error)}
  except (ray.exceptions.RayError, StopIteration) as error:
    return {'status': 'died', 'message': _line(error)}


def _line(error: Exception) -> str:
  """What matters of a message that may be a page long."""
  text = str(error).strip()
  if isinstance(error, ray.exceptions.RayTaskError):  # a traceback
    return text.rpartition('\n')[2]
  sentence = text.partition('\n')[0].partition('. ')[0]
  return f'{type(error).__name__}: {sentence}'


def _identity(directory: pathlib.Path) -> str:
  """The name by which a node recognises the output directory."""
  file = directory / '.locks' / 'identity'
  if not file.exists():
    files.write_atomically(file, uuid.uuid4().hex.encode())
  return files.read_bounded(file, 2**10).decode()

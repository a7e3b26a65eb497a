"""A pool of worker processes on this machine."""

import contextlib
import json
import os
import pathlib
import selectors
import subprocess
import sys
import tempfile
import time
from typing import Any

from experiments.sweep import machine

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_TERM_SECONDS = 3.
# A process that has grown by this much since its first run is replaced by a
# fresh one, see `worker.Growth`.
GROWTH_BYTES = 2**29
# What a process of a small run takes; more are not started than fit.
WORKER_BYTES = 2**30


def threads_environment(threads: int) -> dict[str, str]:
  """The variables that give a process its threads, at least one."""
  return dict.fromkeys(
      ('TF_NUM_INTRAOP_THREADS', 'TF_NUM_INTEROP_THREADS', 'OMP_NUM_THREADS'),
      str(max(1, threads)))


class Worker:
  """One process; it trains one task at a time.

  Args:
    module: its program, see `worker`.
    environment: variables on top of ours.

  Attributes:
    key: of its task; None where it is idle.
    is_worn_out: whether it has grown so much that a fresh one is better.
  """

  def __init__(self, module: str, environment: dict[str, str]):
    self.key = None
    self.is_worn_out = False
    self._errors = tempfile.TemporaryFile()  # noqa: SIM115, closed by `wait`
    path = os.pathsep.join(
        filter(None, [str(_ROOT), os.environ.get('PYTHONPATH')]))
    self._process = subprocess.Popen(
        [sys.executable, '-m', module],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
        env={**machine.environment(), 'PYTHONPATH': path, **environment})
    os.set_blocking(self._process.stdout.fileno(), False)
    self._rest = b''

  @property
  def pid(self) -> int:
    return self._process.pid

  def fileno(self) -> int:
    return self._process.stdout.fileno()

  def send(self, key: str, task: dict[str, Any]) -> None:
    """Starts a task; the answer may be that the process has died."""
    self.key = key
    with contextlib.suppress(BrokenPipeError):  # `receive` finds out
      self._process.stdin.write(json.dumps(
          {**task, 'growth_bytes': GROWTH_BYTES}).encode() + b'\n')
      self._process.stdin.flush()

  def receive(self) -> list[dict[str, Any]]:
    """The answers that have come; a dead process answers 'died'."""
    content = self._process.stdout.read()
    if content == b'':
      return [{'status': 'died', 'message': self._post_mortem()}]
    *lines, self._rest = (self._rest + (content or b'')).split(b'\n')
    answers = [json.loads(line) for line in lines]
    self.is_worn_out |= any(
        answer.pop('is_worn_out', False) for answer in answers)
    return answers

  def end(self) -> None:
    """Asks the process to end; `wait` makes sure."""
    self._process.terminate()

  def wait(self, deadline: float) -> None:
    """Waits until the process is gone, and kills it at the deadline."""
    try:
      self._process.wait(max(0., deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
      self._process.kill()
      self._process.wait()
    with contextlib.suppress(BrokenPipeError):  # a task it never read
      self._process.stdin.close()
    self._process.stdout.close()
    self._errors.close()

  def _post_mortem(self) -> str:
    code = self._process.wait()
    self._errors.seek(0)
    lines = self._errors.read().decode(errors='replace').strip().splitlines()
    last = f': {lines[-1]}' if lines else ''
    if code < 0:
      return f'the process was ended by signal {-code}{last}'
    return f'the process ended with status {code}{last}'


class Pool:
  """Workers that are started when they are first needed.

  A sweep uses `slots`, `submit`, `wait` and `close`, nothing else.

  Args:
    jobs: the number of workers; None is one per GPU, or one per core where
      there is none, as many as the memory has room for.
    gpus: the names of the GPUs for `CUDA_VISIBLE_DEVICES`, shared out over the
      workers.
    module: the program of a worker.
  """

  def __init__(
      self, jobs: int | None = None, gpus: list[str] | None = None,
      module: str = 'experiments.sweep.worker'):
    self._module = module
    self._gpus = gpus or []
    cores = machine.cores()
    self.slots = jobs or len(self._gpus) or _that_fit(cores)
    self._threads = cores // self.slots
    self._workers = [None] * self.slots
    self._selector = selectors.DefaultSelector()

  def submit(self, key: str, task: dict[str, Any]) -> None:
    """Gives a task to an idle worker; there must be one."""
    for index, worker in enumerate(self._workers):
      if worker is not None and worker.key is not None:
        continue
      if worker is not None and worker.is_worn_out:
        worker.end()
        self._remove(index)
      if self._workers[index] is None:
        worker = Worker(self._module, self._environment(index))
        self._workers[index] = worker
        self._selector.register(worker, selectors.EVENT_READ, index)
      self._workers[index].send(key, task)
      return
    raise RuntimeError('All workers are busy.')

  def wait(self, seconds: float) -> list[tuple[str, dict[str, Any]]]:
    """The (key, answer) pairs that come within this time."""
    answers = []
    for event, _ in self._selector.select(seconds):
      worker = event.fileobj
      for answer in worker.receive():
        if self._gpus and 'progress' in answer:
          answer['progress']['place'] = f'GPU {self._gpu(event.data)}'
        answers.append((worker.key, answer))
        if answer.get('status') == 'died':
          self._remove(event.data)
        elif 'status' in answer:
          worker.key = None
    return [(key, answer) for key, answer in answers if key is not None]

  def pids(self) -> list[int]:
    """The processes that there are."""
    return [worker.pid for worker in self._workers if worker is not None]

  def close(self) -> None:
    """Ends all workers, in the middle of a training if need be."""
    workers = [worker for worker in self._workers if worker is not None]
    for worker in workers:
      worker.end()
    deadline = time.monotonic() + _TERM_SECONDS
    for worker in workers:
      worker.wait(deadline)
    self._workers = [None] * self.slots
    self._selector.close()

  def _remove(self, index: int) -> None:
    """Lets go of a process that has ended, or is about to."""
    worker, self._workers[index] = self._workers[index], None
    self._selector.unregister(worker)
    worker.wait(time.monotonic() + _TERM_SECONDS)

  def _environment(self, index: int) -> dict[str, str]:
    environment = threads_environment(self._threads)
    if self._gpus:
      environment['CUDA_VISIBLE_DEVICES'] = self._gpu(index)
    return environment

  def _gpu(self, index: int) -> str:
    return self._gpus[index % len(self._gpus)]


def _that_fit(cores: int) -> int:
  """A process a core, as far as the memory goes."""
  available = machine.available_bytes()
  if available is None:
    return cores
  return max(1, min(cores, available // WORKER_BYTES))

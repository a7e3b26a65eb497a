"""The workers of `TF_CONFIG`: how they meet, and what is said when one is lost.

TensorFlow waits for the others for an hour at its start, deaf to signals and
to other threads, so the workers make sure of each other first. Later its
heartbeats notice within half a minute that a worker is dead or hangs.
"""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import dataclasses
import faulthandler
import json
import os
import re
import signal
import socket
import time
from typing import Any

import tensorflow as tf

WAIT_SECONDS = 300.
_POLL_SECONDS = .2
# For TensorFlow, once all workers are there.
_START_SECONDS = 120.
_LOSSES = (
    tf.errors.AbortedError, tf.errors.CancelledError,
    tf.errors.DeadlineExceededError, tf.errors.UnavailableError)
_EXAMPLE = (
    '{"cluster": {"worker": ["HOST:PORT", "HOST:PORT"]}, '
    '"task": {"type": "worker", "index": 0}}')


class BadClusterError(ValueError):
  """`TF_CONFIG` is missing or does not describe a cluster of workers."""


class LostWorkerError(RuntimeError):
  """A worker did not come, or is gone; this process cannot go on."""


@dataclasses.dataclass(frozen=True)
class Cluster:
  """The workers.

  Attributes:
    addresses: 'HOST:PORT' of each; the first is the chief.
    index: of this worker.
  """
  addresses: tuple[str, ...]
  index: int

  def name(self, index: int) -> str:
    """A worker, for a person."""
    return f'worker {index} ({self.addresses[index]})'


def read() -> Cluster:
  """The cluster that `TF_CONFIG` describes; raises `BadClusterError`."""
  text = os.environ.get('TF_CONFIG', '')
  try:
    return _parse(json.loads(text))
  except (AttributeError, KeyError, TypeError, ValueError) as error:
    raise BadClusterError(
        f'TF_CONFIG must be such as {_EXAMPLE}. Received: '
        f'{text or "nothing"}') from error


def _parse(document: dict[str, Any]) -> Cluster:
  task = document['task']
  if set(document['cluster']) != {'worker'} or task['type'] != 'worker':
    raise ValueError('Only workers are known here.')
  addresses = tuple(document['cluster']['worker'])
  index = int(task['index'])
  if not 0 <= index < len(addresses) or len(set(addresses)) < len(addresses):
    raise ValueError('Not one of the workers.')
  for address in addresses:
    _split(address)
  return Cluster(addresses, index)


def connect(
    seconds: float = WAIT_SECONDS) -> tf.distribute.MultiWorkerMirroredStrategy:
  """The strategy over the workers of `TF_CONFIG`, once all have come.

  Args:
    seconds: how long to wait for them. Raises `LostWorkerError` then.
  """
  cluster = read()
  _meet(cluster, seconds)
  # Its C++ thread can end the process whatever holds the interpreter's lock.
  faulthandler.dump_traceback_later(_START_SECONDS, exit=True)
  try:
    return tf.distribute.MultiWorkerMirroredStrategy()
  except tf.errors.OpError as error:
    raise LostWorkerError(
        'The workers are there, but TensorFlow cannot connect them (is one '
        f'left over from a start before?): {_first_line(error)}') from error
  finally:
    faulthandler.cancel_dump_traceback_later()
    _take_back_sigterm()


def _meet(cluster: Cluster, seconds: float) -> None:
  """Waits until each other worker, or its TensorFlow, answers at its port."""
  _, port = _split(cluster.addresses[cluster.index])
  try:
    listener = socket.create_server(('', port), backlog=128)
  except OSError as error:
    raise LostWorkerError(
        f'{cluster.name(cluster.index).capitalize()}, this process, cannot '
        f'use its port: {error.strerror or error}.') from error
  missing = set(range(len(cluster.addresses))) - {cluster.index}
  deadline = time.monotonic() + seconds
  with listener:
    while missing:
      missing = {
          index for index in missing
          if not _answers(cluster.addresses[index])}
      if missing and time.monotonic() > deadline:
        names = ', '.join(cluster.name(index) for index in sorted(missing))
        raise LostWorkerError(
            f'Waited {seconds:.0f} seconds in vain for {names}. Start the same '
            'command on all workers of TF_CONFIG.')
      if missing:
        time.sleep(_POLL_SECONDS)


def _answers(address: str) -> bool:
  try:
    socket.create_connection(_split(address), timeout=2.).close()
  except OSError:
    return False
  return True


def _split(address: str) -> tuple[str, int]:
  host, _, port = address.rpartition(':')
  if not host:
    raise ValueError(f'Not HOST:PORT: {address}')
  return host.strip('[]'), int(port)


def _take_back_sigterm() -> None:
  """TensorFlow takes SIGTERM for itself, and then nothing ends a worker."""
  with contextlib.suppress(ValueError):  # only the main thread may
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))


@contextlib.contextmanager
def naming_lost_workers(
    strategy: tf.distribute.Strategy,
    describe: Callable[[], str] = lambda: '') -> Iterator[None]:
  """Turns TensorFlow's errors about a lost worker into `LostWorkerError`.

  Args:
    strategy: of a single worker it changes nothing.
    describe: called for what more there is to say.
  """
  try:
    yield
  except tf.errors.OpError as error:
    resolver = strategy.cluster_resolver
    addresses = resolver.cluster_spec().as_dict() if resolver else {}
    if not addresses or not _tells_a_loss(error):
      raise
    cluster = Cluster(tuple(addresses['worker']), resolver.task_id)
    raise LostWorkerError(
        f'{_culprit(str(error), cluster)} was lost. {describe()}'.strip()
    ) from error


def _tells_a_loss(error: tf.errors.OpError) -> bool:
  return isinstance(error, _LOSSES) or 'Collective ops is aborted' in str(error)


def _culprit(message: str, cluster: Cluster) -> str:
  """The worker that an error is about; the first that is named, not we."""
  named = [int(index) for index in re.findall(r'/task:(\d+)', message)]
  if not named and 'CoordinationService' in message:
    named = [0]  # the chief does that
  others = [index for index in named if index != cluster.index]
  if not others or others[0] >= len(cluster.addresses):
    return 'A worker'
  return cluster.name(others[0]).capitalize()


def _first_line(error: Exception) -> str:
  return str(error).strip().partition('\n')[0]

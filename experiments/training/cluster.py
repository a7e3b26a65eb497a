"""The workers of `TF_CONFIG`, and how they meet; without TensorFlow.

TensorFlow waits for the others for an hour at its start, deaf to signals and
to other threads, so the workers make sure of each other first.
"""

import dataclasses
import ipaddress
import json
import os
import socket
import time
from typing import Any

WAIT_SECONDS = 300.
_POLL_SECONDS = .2
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
  except (AttributeError, KeyError, TypeError, ValueError,
          RecursionError) as error:
    raise BadClusterError(
        f'TF_CONFIG must be such as {_EXAMPLE}. Received: '
        f'{text[:200] or "nothing"}') from error


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


def meet(cluster: Cluster, seconds: float) -> None:
  """Waits until each other worker, or its TensorFlow, answers at its port."""
  try:
    listener = _listen(*_split(cluster.addresses[cluster.index]))
  except OSError as error:
    raise LostWorkerError(
        f'{cluster.name(cluster.index).capitalize()}, this process, cannot '
        f'use its address: {error.strerror or error}.') from error
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


def check_private(cluster: Cluster) -> None:
  """Raises `BadClusterError` where a worker has an address of the internet.

  TensorFlow's workers do what anybody asks of them who reaches their port.
  """
  for index, address in enumerate(cluster.addresses):
    for found in _resolve(*_split(address)):
      ip = ipaddress.ip_address(found[4][0].partition('%')[0])
      if ip.is_global or ip.is_unspecified:  # 0.0.0.0: from everywhere
        raise BadClusterError(
            f'{cluster.name(index).capitalize()} has a public address, '
            f'{found[4][0]}, and TensorFlow obeys whoever reaches its port. '
            'Use a private network, or --allow_public_addresses behind a '
            'firewall.')


def _resolve(host: str, port: int) -> list[Any]:
  try:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
  except OSError:  # `meet` will say so
    return []


def _listen(host: str, port: int) -> socket.socket:
  """Waits at the address that TF_CONFIG names, and at no other."""
  [(family, _, _, _, address), *_] = socket.getaddrinfo(
      host, port, type=socket.SOCK_STREAM)
  return socket.create_server(address[:2], family=family, backlog=128)


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

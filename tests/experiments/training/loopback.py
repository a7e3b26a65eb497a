"""Workers as processes of this machine, none of which outlives its test."""

import contextlib
import json
import pathlib
import socket

from tests import forks

ROOT = pathlib.Path(__file__).resolve().parents[3]


def free_addresses(count):
  """Addresses that nobody listens at."""
  with contextlib.ExitStack() as stack:
    sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
    for one in sockets:
      one.bind(('127.0.0.1', 0))
    return [f'127.0.0.1:{one.getsockname()[1]}' for one in sockets]


def tf_config(addresses, index):
  return json.dumps({
      'cluster': {'worker': addresses},
      'task': {'type': 'worker', 'index': index}})


@contextlib.contextmanager
def workers(*calls):
  """Starts a process per worker: a function with its arguments each."""
  addresses = free_addresses(len(calls))
  processes = []
  try:
    for index, call in enumerate(calls):
      processes.append(forks.Fresh(
          *call, TF_CONFIG=tf_config(addresses, index)))
    yield processes
  finally:
    for process in processes:
      process.kill()
      process.communicate()

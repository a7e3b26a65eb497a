"""Workers as processes of this machine, none of which outlives its test."""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys

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
def workers(*commands):
  """Starts a command per worker: arguments of Python each.

  Yields processes whose output, that of stderr too, is text in a pipe.
  """
  addresses = free_addresses(len(commands))
  processes = []
  try:
    for index, command in enumerate(commands):
      environment = {
          **os.environ, 'PYTHONPATH': str(ROOT),
          'TF_CONFIG': tf_config(addresses, index)}
      processes.append(subprocess.Popen(
          [sys.executable, *map(str, command)], cwd=ROOT, env=environment,
          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    yield processes
  finally:
    for process in processes:
      process.kill()
      process.communicate()

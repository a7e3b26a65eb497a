"""What a node of a Ray cluster does with a task of `ray_pool`."""

from collections.abc import Callable
from collections.abc import Iterator
import errno
import importlib
import os
import pathlib
import queue
import shutil
import stat
import tempfile
import threading
import traceback
from typing import Any

from experiments.sweep import worker
from ln_tfp import files

_growth = worker.Growth()


def perform(task: dict[str, Any]) -> Iterator[dict[str, Any]]:
  """The answers of a task: progress, and a status at the end.

  A process that has grown too much ends after that, and Ray starts another.
  """
  answers = queue.SimpleQueue()
  threading.Thread(
      target=_answer, args=(task, answers.put), daemon=True).start()
  while True:
    answer = answers.get()
    yield answer
    if 'status' in answer:
      break
  if _growth.exceeds(task['growth_bytes']):
    raise SystemExit(0)  # Ray takes it for what it is, not for a crash


def _answer(
    task: dict[str, Any], put: Callable[[dict[str, Any]], None]) -> None:
  try:
    found = _train(task, lambda told: put({'progress': told}))
    put({'status': 'done', 'files': found})
  except Exception as error:  # pylint: disable=broad-except
    traceback.print_exc()
    put({'status': 'failed', 'message': f'{type(error).__name__}: {error}',
         'files': {f'logs/{task["key"]}.log': traceback.format_exc().encode()}})


def _train(task: dict[str, Any], tell: worker.Tell) -> dict[str, bytes]:
  """Trains a run and returns its files, the result last."""
  directory, key = pathlib.Path(task['output_dir']), task['key']
  reachable = _is_reachable(directory, task['identity'])
  if not reachable:
    # The same at each try: this node may have a checkpoint.
    directory = _private_directory() / task['identity'] / key
    for name, content in task['needed'].items():
      files.write_atomically(directory / name, content)
  module = importlib.import_module(task['module'])
  module.train_alone({**task, 'output_dir': str(directory)}, tell)
  names = [f'weights/{key}.npz', f'weights/{key}.json', f'{key}.npz']
  found = {name: (directory / name).read_bytes()
           for name in [*names * bool(task['keep_weights']), f'{key}.json']
           if (directory / name).exists()}
  if not reachable:
    shutil.rmtree(directory)
  return found


def _private_directory() -> pathlib.Path:
  """A directory of ours for temporary files, which nobody else can enter."""
  directory = pathlib.Path(tempfile.gettempdir(), f'ln_tfp-{os.getuid()}')
  directory.mkdir(mode=0o700, exist_ok=True)
  found = directory.lstat()
  if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
    raise PermissionError(
        errno.EACCES, 'somebody else has made this directory', str(directory))
  directory.chmod(0o700)
  return directory


def _is_reachable(directory: pathlib.Path, identity: str) -> bool:
  try:
    found = files.read_bounded(directory / '.locks' / 'identity', 2**10)
  except OSError:
    return False
  return found == identity.encode() and os.access(directory, os.W_OK)

"""What a run prints, and how it failed: OUTPUT_DIR/logs/KEY.log.

A log is there while its run is trained, and stays where that fails: with its
traceback, and that of a crash in C++. The log of the try before it is
KEY.log.1. The directory keeps the last thousand.
"""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import faulthandler
import os
import pathlib
import sys
import time
import traceback
from typing import Any

_MOST = 1000


def path(output_dir: str | os.PathLike, key: str) -> pathlib.Path:
  """The log of a run."""
  return pathlib.Path(output_dir) / 'logs' / f'{key}.log'


def mention(output_dir: str | os.PathLike, key: str) -> str:
  """What follows the message of a run that has failed: where its log is."""
  file = path(output_dir, key)
  return f' (log: {file})' if file.exists() else ''


@contextlib.contextmanager
def writing(task: dict[str, Any]) -> Iterator[None]:
  """Everything that this process prints goes to the log of a task.

  Args:
    task: of a sweep; 'keep_logs' says whether the log of a success stays.
  """
  file = path(task['output_dir'], task['key'])
  try:
    stream = _open(file)
  except OSError:  # a full disk is no reason not to train
    yield
    return
  with stream, _redirected(stream):
    try:
      yield
    except BaseException:
      traceback.print_exc()
      raise
  if not task.get('keep_logs'):
    remove(task['output_dir'], task['key'])


def remove(output_dir: str | os.PathLike, key: str) -> None:
  """Removes the logs of a run that has succeeded."""
  file = path(output_dir, key)
  for each in (file, file.with_name(f'{file.name}.1')):
    each.unlink(missing_ok=True)
  with contextlib.suppress(OSError):  # others are in it
    file.parent.rmdir()


def save_traceback(task: dict[str, Any]) -> None:
  """Writes the exception that is being handled to the log of a task."""
  file = path(task['output_dir'], task['key'])
  with contextlib.suppress(OSError), _open(file) as stream:
    stream.write(traceback.format_exc())


def _open(file: pathlib.Path):
  file.parent.mkdir(parents=True, exist_ok=True)
  if file.exists():
    file.replace(file.with_name(f'{file.name}.1'))
  _forget_the_oldest(file.parent)
  stream = file.open('w', encoding='utf-8')
  stream.write(f'{file.stem}: {time.strftime("%Y-%m-%d %H:%M:%S")}, process '
               f'{os.getpid()}\n')
  stream.flush()
  return stream


def _forget_the_oldest(directory: pathlib.Path) -> None:
  logs = list(directory.glob('*.log*'))
  if len(logs) >= _MOST:
    age = lambda file: file.stat().st_mtime if file.exists() else 0.
    for file in sorted(logs, key=age)[:len(logs) - _MOST + 1]:
      file.unlink(missing_ok=True)


@contextlib.contextmanager
def _redirected(stream) -> Iterator[None]:
  """Standard output and errors go to a file, those of C++ too."""
  saved = [os.dup(descriptor) for descriptor in (1, 2)]
  sys.stdout.flush()
  sys.stderr.flush()
  for descriptor in (1, 2):
    os.dup2(stream.fileno(), descriptor)
  faulthandler.enable(stream)
  try:
    yield
  finally:
    faulthandler.disable()
    sys.stdout.flush()
    sys.stderr.flush()
    for descriptor, kept in zip((1, 2), saved):
      os.dup2(kept, descriptor)
      os.close(kept)

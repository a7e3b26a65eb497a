"""How far a sweep is, for a person."""

from __future__ import annotations

from collections.abc import Iterable
import re
import shutil
import time
from typing import TextIO

from experiments import training
from experiments.sweep import estimates as estimates_lib

_WIDTH = 20
_LINE_SECONDS = 10.


class Bar:
  """One line that rewrites itself on a terminal, a line now and then elsewhere.

  Args:
    stream: where to write.
    pending: the runs to train.
    done: number of runs that were finished before.
    estimates: of the seconds that runs take.
  """

  def __init__(
      self, stream: TextIO, pending: Iterable[training.Run], done: int,
      estimates: estimates_lib.Estimates):
    self._stream = stream
    self._terminal = stream.isatty()
    self._left = {run.key: run for run in pending}
    self._total = done + len(self._left)
    self._estimates = estimates
    self._notes = {}
    self._progress = {}  # key -> (time, epoch) of the first and the last note
    self._shown = ''
    self._next = 0.

  def __enter__(self) -> Bar:
    return self

  def __exit__(self, *unused) -> None:
    if self._terminal:
      self._stream.write('\r' + ' ' * len(self._shown) + '\r')
      self._stream.flush()

  def note(self, key: str, text: str) -> None:
    """What a run says of itself, such as its epoch."""
    self._notes[key] = text
    found = re.search(r'epoch (\d+)/', text)
    if found:
      now = time.monotonic(), int(found[1])
      first, _ = self._progress.get(key, (now, now))
      self._progress[key] = first, now

  def stopped(self, key: str) -> None:
    """A run is not running any more."""
    self._notes.pop(key, None)
    self._progress.pop(key, None)

  def given_up(self, key: str, message: str) -> None:
    """A run has failed for good."""
    self._left.pop(key, None)
    self.say(f'{key}: {message}; given up.')

  def finished(self, result: training.Result) -> None:
    """A run is finished."""
    self._left.pop(result.key, None)
    self._estimates.add(result)
    if result.status == 'diverged':
      self.say(f'{result.key}: diverged in epoch '
               f"{result.divergence['epoch']}.")

  def say(self, message: str) -> None:
    """A line that stays."""
    start = '\r' if self._terminal else ''
    self._stream.write(f'{start}{message:<{len(self._shown)}}\n')
    self._stream.flush()
    self._next = 0.

  def show(self, done: int, running: int, failed: int, slots: int) -> None:
    """Runs by state, and the time left with this many runs at a time."""
    now = time.monotonic()
    if now < self._next:
      return
    self._next = now + (.2 if self._terminal else _LINE_SECONDS)
    total = max(self._total, done + running + failed)
    line = (f'{done}/{total} runs, {running} running, {failed} failed, '
            f'{estimates_lib.duration(self._seconds_left(now, slots))} left')
    if not self._terminal:
      self._stream.write(line + '\n')
    else:
      filled = _WIDTH * done // max(1, total)
      line = f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {line}"
      if self._notes:
        line += f'  {next(iter(self._notes.values()))}'
      line = line[:_columns()]
      self._stream.write(f'\r{line:<{len(self._shown)}}')
      self._shown = line
    self._stream.flush()

  def _seconds_left(self, now: float, slots: int) -> float:
    left = [self._seconds_left_of(run, now) for run in self._left.values()]
    # The last runs do not share their time.
    return max([sum(left) / max(1, slots), *left], default=0.)

  def _seconds_left_of(self, run: training.Run, now: float) -> float:
    """By the run's own pace, or by other runs before there is one."""
    first, last = self._progress.get(run.key, ((now, 0), (now, 0)))
    if last[1] > first[1]:
      pace = (last[0] - first[0]) / (last[1] - first[1])
      return pace * (run.epochs - last[1])
    return max(0., self._estimates.seconds(run) - (now - first[0]))


def _columns() -> int:
  return shutil.get_terminal_size().columns - 1

"""How far a sweep is, for a person."""

from __future__ import annotations

from collections.abc import Iterable
import time
from typing import Any
from typing import TextIO

from etils import epy

from experiments import training
from experiments.sweep import estimates as estimates_lib

with epy.lazy_imports():
  from rich import console as rich_console
  from rich import progress as rich_progress

_LINE_SECONDS = 10.
_BAR_SECONDS = .5


class Display:
  """Bars on a terminal, a line now and then elsewhere.

  On a terminal there is a bar for the sweep and one for each run, which names
  its GPU where there are GPUs.

  Args:
    stream: where to write.
    pending: the runs to train.
    done: number of runs that were finished before.
    estimates: of the seconds that runs take.
  """

  def __init__(
      self, stream: TextIO, pending: Iterable[training.Run], done: int,
      estimates: estimates_lib.Estimates):
    self._left = {run.key: run for run in pending}
    self._total = done + len(self._left)
    self._estimates = estimates
    self._paces = {}  # key -> (time, epoch) of the first and the last note
    self._console = rich_console.Console(file=stream)
    self._bars = rich_progress.Progress(
        rich_progress.BarColumn(10),
        rich_progress.TextColumn('{task.description}', markup=False),
        console=self._console, transient=True,
        disable=not self._console.is_terminal)
    self._sweep = self._bars.add_task('')
    self._runs = {}  # key -> task of rich
    self._next = 0.

  def __enter__(self) -> Display:
    self._bars.start()
    return self

  def __exit__(self, *unused) -> None:
    self._bars.stop()

  def note(self, key: str, told: dict[str, Any]) -> None:
    """What a run says of itself, see `worker`."""
    if 'warning' in told:
      self.say(told['warning'])
      return
    now = time.monotonic(), told['epoch']
    first, _ = self._paces.get(key, (now, now))
    self._paces[key] = first, now
    if key not in self._runs:
      self._runs[key] = self._bars.add_task(key)
    name = key.rpartition('-')[0]  # without the digest: there is little room
    text = f'{name}  epoch {told["epoch"]}/{told["epochs"]}'
    if 'place' in told:
      text = f'{told["place"]}: {text}'
    text += f'  loss {told["loss"]:.4g}'
    if told['accuracy'] is not None:
      text += f'  accuracy {100 * told["accuracy"]:.2f} %'
    self._bars.update(self._runs[key], completed=told['epoch'],
                      total=told['epochs'], description=text)

  def stopped(self, key: str) -> None:
    """A run is not running any more."""
    self._paces.pop(key, None)
    if key in self._runs:
      self._bars.remove_task(self._runs.pop(key))

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
    self._console.print(message, markup=False, highlight=False, soft_wrap=True)
    self._next = 0.

  def show(self, done: int, running: int, failed: int, slots: int) -> None:
    """Runs by state, and the time left with this many runs at a time.

    Called at every epoch of every run, it looks at what is left now and then.
    """
    now = time.monotonic()
    if now < self._next:
      return
    total = max(self._total, done + running + failed)
    line = (f'{done}/{total} runs, {running} running, {failed} failed, '
            f'{estimates_lib.duration(self._seconds_left(now, slots))} left')
    if self._console.is_terminal:
      self._bars.update(
          self._sweep, completed=done, total=total, description=line)
      self._next = now + _BAR_SECONDS
    else:
      self.say(line)
      self._next = now + _LINE_SECONDS

  def _seconds_left(self, now: float, slots: int) -> float:
    left = [self._seconds_left_of(run, now) for run in self._left.values()]
    # The last runs do not share their time.
    return max([sum(left) / max(1, slots), *left], default=0.)

  def _seconds_left_of(self, run: training.Run, now: float) -> float:
    """By the run's own pace, or by other runs before there is one."""
    first, last = self._paces.get(run.key, ((now, 0), (now, 0)))
    if last[1] > first[1]:
      pace = (last[0] - first[0]) / (last[1] - first[1])
      return pace * (run.epochs - last[1])
    return max(0., self._estimates.seconds(run) - (now - first[0]))

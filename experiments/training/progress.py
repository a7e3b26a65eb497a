"""What a run says while it runs: a progress line and TensorBoard logs."""

from collections.abc import Callable
import os
import pathlib
import time
from typing import TextIO

import tensorflow as tf

from experiments.training import runs

_BAR_WIDTH = 20


class Progress:
  """One line that rewrites itself on a terminal, plain lines elsewhere.

  Args:
    stream: where to write.
    label: the name of the run.
    epochs: number of epochs of the run.
    start: epochs already done, of a run that goes on.
    interval: least seconds between two outputs; the last one always appears.
    clock: seconds that never go back.
  """

  def __init__(
      self, stream: TextIO, label: str, epochs: int, *, start: int = 0,
      interval: float | None = None,
      clock: Callable[[], float] = time.monotonic):
    self._stream = stream
    self._terminal = stream.isatty()
    self._label = label
    self._epochs = epochs
    self._start = start
    self._clock = clock
    self._begin = clock()
    if interval is None:
      interval = .1 if self._terminal else 1.
    self._interval = interval
    self._next = self._begin
    self._numbers = ''
    self._width = 0

  def step(self, epoch: int, fraction: float) -> None:
    """Within an epoch: moves the bar of a terminal."""
    if self._terminal and self._clock() >= self._next:
      self._write(epoch + fraction)

  def epoch(self, epoch: int, loss: float, accuracy: float | None) -> None:
    """After an epoch (counted from 1): loss and validation accuracy."""
    self._numbers = f'  loss {loss:.4g}'
    if accuracy is not None:
      self._numbers += f'  accuracy {100 * accuracy:.2f} %'
    if epoch == self._epochs or self._clock() >= self._next:
      self._write(epoch)

  def close(self, message: str = '') -> None:
    """Ends the line; a message says how the run ended."""
    if self._terminal:
      self._stream.write('\n')
    if message:
      self._stream.write(f'{self._label}  {message}\n')
    self._stream.flush()

  def _write(self, done: float) -> None:
    now = self._clock()
    self._next = now + self._interval
    left = ''
    if done > self._start:
      remaining = (now - self._begin) * (
          (self._epochs - done) / (done - self._start))
      left = f'  {_duration(remaining)} left'
    counter = f'epoch {int(done)}/{self._epochs}'
    if not self._terminal:
      self._stream.write(f'{self._label}  {counter}{self._numbers}{left}\n')
    else:
      filled = int(_BAR_WIDTH * done / self._epochs)
      bar = '#' * filled + '.' * (_BAR_WIDTH - filled)
      line = f'{self._label} [{bar}] {counter}{self._numbers}{left}'
      # Blanks cover what a longer line before this one has left.
      self._stream.write(f'\r{line:<{self._width}}')
      self._width = len(line)
    self._stream.flush()


class Report:
  """Passes on what happens; a context manager.

  Args:
    run: the run.
    start: epochs already done.
    steps_per_epoch: number of training steps of an epoch.
    stream: for the progress line, or None.
    tensorboard_dir: for logs, or None.
  """

  def __init__(
      self, run: runs.Run, *, start: int, steps_per_epoch: int,
      stream: TextIO | None, tensorboard_dir: str | os.PathLike | None):
    self._steps_per_epoch = steps_per_epoch
    self._progress = None if stream is None else Progress(
        stream, run.key, run.epochs, start=start)
    self._ending = ''
    self._writer = None if tensorboard_dir is None else (
        tf.summary.create_file_writer(
            str(pathlib.Path(tensorboard_dir) / run.key)))

  def __enter__(self) -> 'Report':
    return self

  def __exit__(self, kind, error, traceback) -> None:
    if self._progress is not None:
      self._progress.close(
          self._ending if error is None else f'stopped: {error!r}')
    if self._writer is not None:
      self._writer.close()

  def step(self, epoch: int, step: int) -> None:
    """After a step: `epoch` epochs and `step` steps are done."""
    if self._progress is not None:
      self._progress.step(epoch, step / self._steps_per_epoch)

  def epoch(self, epoch: int, record: dict[str, float | None]) -> None:
    """After an epoch, counted from 1."""
    if self._progress is not None:
      self._progress.epoch(
          epoch, record['loss'], record['validation_accuracy_noisy'])
    if self._writer is not None:
      with self._writer.as_default():
        for name, value in record.items():
          if value is not None:
            tf.summary.scalar(name, value, step=epoch)
      self._writer.flush()

  def diverged(self, epoch: int, quantity: str) -> None:
    """The run ends here."""
    self._ending = f'diverged in epoch {epoch}: {quantity}'


def _duration(seconds: float) -> str:
  seconds = int(round(seconds))
  if seconds < 60:
    return f'{seconds} s'
  if seconds < 3600:
    return f'{seconds // 60} min {seconds % 60:02d} s'
  return f'{seconds // 3600} h {seconds % 3600 // 60:02d} min'

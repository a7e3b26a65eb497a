"""What a run says while it runs: a progress line and TensorBoard logs."""

import os
import pathlib
from typing import TextIO

import tensorflow as tf

from experiments.training import progress
from experiments.training import runs


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
    self._progress = None if stream is None else progress.Progress(
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

"""What a run says while it runs: to a function, and to TensorBoard."""

from collections.abc import Callable
import contextlib
import os
import pathlib

import tensorflow as tf

# Called after an epoch, counted from 1, with its loss and accuracies.
Tell = Callable[[int, dict[str, float | None]], None]


@contextlib.contextmanager
def telling(
    key: str, tell: Tell | None, tensorboard_dir: str | os.PathLike | None):
  """Yields the `Tell` that passes on to both, where they are not None.

  Args:
    key: of the run, the name of its logs.
    tell: a function.
    tensorboard_dir: for logs.
  """
  with contextlib.ExitStack() as stack:
    writer = None
    if tensorboard_dir is not None:
      writer = tf.summary.create_file_writer(
          str(pathlib.Path(tensorboard_dir) / key))
      stack.callback(writer.close)

    def pass_on(epoch, record):
      if tell is not None:
        tell(epoch, record)
      if writer is not None:
        with writer.as_default():
          for name, value in record.items():
            if value is not None:
              tf.summary.scalar(name, value, step=epoch)
        writer.flush()

    yield pass_on

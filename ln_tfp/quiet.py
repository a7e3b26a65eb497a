"""Keeps TensorFlow's start-up messages off the terminal of the audit.

Python imports this package before it runs `python -m ln_tfp.audit`, so that the
program itself comes too late. Where `ln_tfp` is imported by anything else,
nothing is touched.
"""

import atexit
from collections.abc import Iterator
import contextlib
import os
import signal
import sys

_PROGRAM = 'ln_tfp.audit'


def is_program() -> bool:
  """Whether this process is `python -m ln_tfp.audit`, about to begin."""
  return sys.argv[:1] == ['-m'] and _PROGRAM in sys.orig_argv


@contextlib.contextmanager
def stderr() -> Iterator[None]:
  """Drops what is written to stderr, by C++ code as well; not exceptions."""
  try:
    saved = os.dup(2)
  except OSError:  # There is no stderr.
    yield
    return
  with open(os.devnull, 'wb') as nowhere:
    sys.stderr.flush()
    os.dup2(nowhere.fileno(), 2)
    try:
      yield
    finally:
      os.dup2(saved, 2)
      os.close(saved)


def start() -> None:
  """Imports Keras, and has TensorFlow look for its devices, in silence.

  Who interrupts this, and what is imported until `finish`, sees no traceback.
  """
  if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _interrupt)
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')  # a user's own wins
  with stderr():
    import keras
    if keras.backend.backend() == 'tensorflow':
      import tensorflow as tf
      tf.config.list_physical_devices()


def finish() -> None:
  """Gives interrupts back to the program."""
  if signal.getsignal(signal.SIGINT) is _interrupt:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _interrupt(*_):
  # At the end, because until then nothing may reach stderr.
  atexit.register(print, '\nInterrupted. Nothing was written.',
                  file=sys.stderr)
  raise SystemExit(130)

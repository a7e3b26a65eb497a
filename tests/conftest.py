"""Settings for all tests."""

import os
import signal

# A shell that starts the tests in the background has them ignore Ctrl-C, which
# some of them are about.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
  signal.signal(signal.SIGINT, signal.default_int_handler)

# Before TensorFlow is imported anywhere.
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')

import pytest


@pytest.fixture(autouse=True)
def fixed_seeds():
  """Every test starts with the same seeds, whichever ran before it."""
  import keras  # after the lines above
  keras.utils.set_random_seed(0)

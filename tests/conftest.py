"""Settings for all tests."""

import os

# Before TensorFlow is imported anywhere.
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')

import pytest


@pytest.fixture(autouse=True)
def fixed_seeds():
  """Every test starts with the same seeds, whichever ran before it."""
  import keras  # after the lines above
  keras.utils.set_random_seed(0)

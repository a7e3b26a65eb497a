"""Settings for all tests."""

import os

# Before TensorFlow is imported anywhere.
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')

"""The tests of every backend under JAX, in one process of their own."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from tests.ln_tfp import backends

TESTS = pathlib.Path(__file__).with_name('test_every_backend.py')


@pytest.mark.slow
@pytest.mark.thorough
def test_everything_holds_on_jax_where_there_is_no_tensorflow(tmp_path):
  pytest.importorskip('jax')
  reference = tmp_path / 'tensorflow.npz'
  np.savez(reference, **backends.losses_and_gradients())
  done = subprocess.run(
      [sys.executable, '-m', 'pytest', '-p', 'no:cacheprovider', '-p',
       'no:xdist', str(TESTS)],
      capture_output=True, text=True, cwd=TESTS.parents[2],
      env={**os.environ, 'KERAS_BACKEND': 'jax',
           'LN_TFP_REFERENCE': str(reference)})
  assert done.returncode == 0, done.stdout
  assert 'skipped' not in done.stdout


@pytest.mark.slow
def test_the_import_alone_loads_no_tensorflow():
  pytest.importorskip('jax')
  subprocess.run(
      [sys.executable, '-c',
       'import sys, ln_tfp; assert "tensorflow" not in sys.modules'],
      check=True, env={**os.environ, 'KERAS_BACKEND': 'jax'})

"""The tests of every backend under JAX and PyTorch, in other processes."""

import importlib.util
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
@pytest.mark.parametrize('name', ['jax', 'torch'])
def test_everything_holds_where_there_is_no_tensorflow(tmp_path, name):
  if importlib.util.find_spec(name) is None:
    pytest.skip(f'{name} is not installed')
  reference = tmp_path / 'tensorflow.npz'
  np.savez(reference, **backends.losses_and_gradients())
  done = subprocess.run(
      [sys.executable, '-m', 'pytest', '-p', 'no:cacheprovider', '-p',
       'no:xdist', str(TESTS)],
      capture_output=True, text=True, cwd=TESTS.parents[2],
      env={**os.environ, 'KERAS_BACKEND': name,
           'LN_TFP_REFERENCE': str(reference)})
  assert done.returncode == 0, done.stdout
  assert 'skipped' not in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize('name', ['jax', 'torch'])
def test_the_import_alone_loads_no_tensorflow(name):
  if importlib.util.find_spec(name) is None:
    pytest.skip(f'{name} is not installed')
  subprocess.run(
      [sys.executable, '-c',
       'import sys, ln_tfp; assert "tensorflow" not in sys.modules'],
      check=True, env={**os.environ, 'KERAS_BACKEND': name})

"""The tests of every backend under JAX and PyTorch, in other processes."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from tests.ln_tfp import backends

HERE = pathlib.Path(__file__).parent
# On JAX those marked `tensorflow` are left out. On PyTorch only the first runs:
# NumPy does not read its tensors that have a gradient, as the others ask it to.
TESTS = [
    'test_every_backend.py', 'test_export.py', 'test_heads.py',
    'test_metrics.py', 'losses/test_forward.py', 'losses/test_gce.py']


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize('name, tests', [('jax', TESTS), ('torch', TESTS[:1])])
def test_everything_holds_where_there_is_no_tensorflow(tmp_path, name, tests):
  if importlib.util.find_spec(name) is None:
    pytest.skip(f'{name} is not installed')
  reference = tmp_path / 'tensorflow.npz'
  np.savez(reference, **backends.losses_and_gradients())
  done = subprocess.run(
      [sys.executable, '-m', 'pytest', '-p', 'no:cacheprovider', '-p',
       'no:xdist', '-p', 'tests.ln_tfp.without_tensorflow', '-m',
       'not tensorflow', *(str(HERE / test) for test in tests)],
      capture_output=True, text=True, cwd=HERE.parents[1],
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

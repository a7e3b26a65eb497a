"""What the tests of programs share."""

from absl import flags
from absl.testing import flagsaver
import pytest

from experiments.cli import app
from experiments.sweep import launch
from experiments.sweep import pool as pool_lib


@pytest.fixture(autouse=True)
def own_flags(tmp_path):
  """Flags as at the start; no test finds what a user has in `results`."""
  with flagsaver.flagsaver():
    app.FLAGS.set_default('output_dir', str(tmp_path / 'default'))
    yield flags.FLAGS


@pytest.fixture(scope='session')
def real_pool():
  """A worker that stays for the next program: TensorFlow is imported once."""
  pool = pool_lib.Pool(1)
  close, pool.close = pool.close, lambda: None
  yield pool
  close()


@pytest.fixture
def one_worker(real_pool, monkeypatch):
  """Programs train with `real_pool`."""
  monkeypatch.setattr(launch.pool_lib, 'Pool', lambda jobs, gpus: real_pool)


@pytest.fixture
def fake_workers(monkeypatch):
  """Programs train with workers that train nothing."""
  real = pool_lib.Pool
  monkeypatch.setattr(
      launch.pool_lib, 'Pool', lambda jobs, gpus: real(
          jobs, gpus, module='tests.experiments.sweep.fake_worker'))

"""What a Ray worker keeps on a node of its own."""

import os
import stat
import tempfile

import pytest

from experiments.sweep import ray_worker


@pytest.fixture(name='temporary')
def _temporary(tmp_path, monkeypatch):
  monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
  return tmp_path


def test_temporary_files_are_where_nobody_else_can_enter(temporary):
  directory = ray_worker._private_directory()
  assert directory.parent == temporary
  assert stat.S_IMODE(directory.stat().st_mode) == 0o700
  directory.chmod(0o777)
  assert ray_worker._private_directory() == directory
  assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_a_temporary_directory_of_somebody_else_is_refused(
    temporary, monkeypatch):
  other = os.getuid() + 1
  (temporary / f'ln_tfp-{other}').mkdir()
  monkeypatch.setattr(os, 'getuid', lambda: other)
  with pytest.raises(PermissionError, match='somebody else'):
    ray_worker._private_directory()


def test_a_link_to_a_directory_is_refused(temporary):
  elsewhere = temporary / 'elsewhere'
  elsewhere.mkdir()
  (temporary / f'ln_tfp-{os.getuid()}').symlink_to(elsewhere)
  with pytest.raises(PermissionError, match='somebody else'):
    ray_worker._private_directory()

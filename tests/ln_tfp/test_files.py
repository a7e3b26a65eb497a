"""Files that are whole or not there."""

import os
import stat

import pytest

from ln_tfp import files


@pytest.mark.parametrize('umask', [0o022, 0o077, 0o002])
def test_files_have_the_permissions_that_the_umask_leaves(umask, tmp_path):
  before = os.umask(umask)
  try:
    files.write_atomically(tmp_path / 'deep' / 'file', b'one')
  finally:
    os.umask(before)
  mode = stat.S_IMODE(os.stat(tmp_path / 'deep' / 'file').st_mode)
  assert mode == 0o666 & ~umask


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
  path = tmp_path / 'file'
  files.write_atomically(path, b'old')
  with pytest.raises(TypeError):
    files.write_atomically(path, 'no bytes')
  assert path.read_bytes() == b'old'
  assert os.listdir(tmp_path) == ['file']

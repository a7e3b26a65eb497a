"""Tests of what an audit does where Pillow is missing."""

import sys

import numpy as np
import pytest

from ln_tfp.audit import __main__ as command
from ln_tfp.audit.files import images
from ln_tfp.audit.review import pictures


@pytest.fixture(autouse=True)
def without_pillow(monkeypatch):
  for name in ('PIL', 'PIL.Image', 'PIL.ImageOps'):
    monkeypatch.setitem(sys.modules, name, None)


def test_pictures_say_what_to_install(tmp_path):
  with pytest.raises(ImportError, match='pip install pillow'):
    pictures.thumbnail(np.zeros((8, 8)), 0., 1., 8)
  with pytest.raises(ImportError, match='pip install pillow'):
    images.read(tmp_path / 'any.png')


def test_the_command_says_it_before_it_trains(tmp_path, capsys):
  assert command.main([f'--output={tmp_path / "audit"}', '--epochs=999']) == 2
  out, err = capsys.readouterr()
  assert err == 'error: Pictures need Pillow: pip install pillow.\n'
  assert 'examples of' not in out

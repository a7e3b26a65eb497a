"""Runs the tutorials: what they assert holds, and they print what they show."""

import pathlib
import re
import runpy

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_TUTORIALS = runpy.run_path(str(_ROOT / 'docs' / 'tutorials' / 'run.py'))


def _words(text):
  """Returns a page without its numbers, which differ between machines."""
  return re.sub(r'[+-]?[\d.,]+', '#', text).split()


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize(
    'path', _TUTORIALS['pages'](), ids=lambda path: path.stem)
def test_a_tutorial_runs_and_prints_what_it_shows(path):
  text = path.read_text(encoding='utf-8')
  assert _words(_TUTORIALS['execute'](text, path.name)) == _words(text)

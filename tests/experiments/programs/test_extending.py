"""Executes docs/extending.md: its files, then its commands."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[3]

pytestmark = [pytest.mark.slow, pytest.mark.thorough]


@pytest.fixture(name='page', scope='module')
def _page():
  return (_ROOT / 'docs' / 'extending.md').read_text(encoding='utf-8')


@pytest.fixture(name='project', scope='module')
def _project(tmp_path_factory, page):
  """A copy of the project with the files of the page."""
  copy = tmp_path_factory.mktemp('project')
  for folder in ('experiments', 'ln_tfp', 'flags'):
    shutil.copytree(_ROOT / folder, copy / folder, ignore=(
        shutil.ignore_patterns('__pycache__')))
  written = re.findall(r'```python\n# (\S+\.py)\n(.*?)```', page, re.S)
  assert len(written) == 2
  for name, text in written:
    assert not (copy / name).exists()
    (copy / name).write_text(text, encoding='utf-8')
  return copy


def _call(project, command):
  words = command.split()
  assert words[0] == 'python'
  return subprocess.run(
      [sys.executable, *words[1:]], cwd=project, capture_output=True,
      text=True, check=True, env={**os.environ, 'PYTHONPATH': str(project)})


def test_the_commands_of_the_page_make_their_tables(project, page):
  commands = re.findall(r'^    (python -m .*)$', page, re.M)
  assert len(commands) == 2
  of_method, of_dataset = (
      _call(project, f'{command} --epochs=2 --jobs=1') for command in commands)
  assert re.search(r'^MAE +\d+\.\d\d', of_method.stdout, re.M)
  assert 'n = 2' in of_method.stdout
  tuned = (project / 'mine' / 'tuned' / 'digits.csv').read_text()
  assert re.search(r'^digits,MAE,sym:0\.4,share=0\.\d+,', tuned, re.M)
  assert re.search(r'^Test accuracy \(%\) on wine', of_dataset.stdout)
  for method in ('CE', 'MAE', 'LN'):
    assert re.search(
        rf'^{method} +\d+\.\d\d\S* +\d+\.\d\d', of_dataset.stdout, re.M)
  # An estimate, though no entry tells how long an epoch takes.
  assert re.search(r'to train, 1 at a time: about \d+ ', of_dataset.stderr)
  # The winner is found without a search.
  again = _call(
      project, 'python -m experiments.synthetic_noise --dataset=wine '
      '--methods=MAE --noise=sym:0.4 --epochs=2 --output_dir=mine --dry_run')
  assert '1 runs finished before, 0 to train' in again.stdout

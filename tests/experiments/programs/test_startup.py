"""Flags are read before anything is imported that takes its time."""

import pathlib
import subprocess
import sys

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[3]
# All but those with the flags of something else, such as the audit's.
_PROGRAMS = sorted(
    path.stem for path in (_ROOT / 'experiments').glob('*.py')
    if 'app.start(main' in path.read_text(encoding='utf-8'))
_SLOW = ('keras', 'ln_tfp', 'matplotlib', 'pandas', 'ray', 'scipy', 'sklearn',
         'tensorflow', 'tensorflow_datasets', 'tensorflow_probability')
# As `python -m`, with the slow packages that were imported as a last line.
_CALL = f"""
import runpy, sys
try:
  runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)
finally:
  print(*(name for name in {_SLOW} if name in sys.modules))
"""


def _call(program, *arguments):
  """The exit status, the packages, and what stands on stderr."""
  done = subprocess.run(
      [sys.executable, '-c', _CALL, f'experiments.{program}', *arguments],
      cwd=_ROOT, capture_output=True, text=True, check=False)
  return done.returncode, done.stdout.splitlines(), done.stderr


def test_there_are_programs():
  assert {'synthetic_noise', 'report', 'prepare'} <= set(_PROGRAMS)


@pytest.mark.parametrize('program', _PROGRAMS)
def test_help_is_there_at_once(program):
  _, [*text, packages], errors = _call(program, '--help')
  assert not packages
  assert not errors
  assert f'experiments.{program}' in '\n'.join(text)


@pytest.mark.parametrize('flag, words', [
    ('--nonesuch', 'nonesuch'),
    ('--seeds=many', 'seeds'),
    ('--seeds=0', '--seeds: must be at least 1'),
    ('--dataset=nonesuch', '--dataset: must be one of'),
    ('--dataset=clothing1m', '--dataset: here it must be one of'),
    ('--methods=XY', '--methods: must be one of'),
    ('--noise=loud', '--noise: must be none, sym:RATE'),
    ('--jobs=0', '--jobs: must be at least 1'),
])
def test_a_bad_flag_is_refused_at_once(tmp_path, flag, words):
  status, [packages], errors = _call(
      'synthetic_noise', f'--output_dir={tmp_path}', flag)
  assert status == 1
  assert not packages
  [line] = errors.splitlines()
  assert line.startswith('synthetic_noise: ')
  assert words in line

"""Bad input, odd files and wrong flags: nothing is lost, nothing is silent.

Each row of the tables is a case: one line says what was received; there is no
traceback and no hang, and no file is touched that should not be.
"""

import json
import pathlib
import subprocess
import sys

import pytest

from tests.hostile import tables

_ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(name='server', scope='module')
def _server():
  """A process that has imported everything, and forks for each case."""
  with subprocess.Popen(
      [sys.executable, '-m', 'tests.hostile.server'], cwd=_ROOT, text=True,
      stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
    assert process.stdout.readline() == 'ready\n'
    yield process
    process.stdin.close()


def test_the_names_of_the_cases_are_different():
  names = [case.name for case in tables.CASES]
  assert len(set(names)) == len(names) >= 150


@pytest.mark.parametrize('name', [case.name for case in tables.CASES])
def test_a_hostile_case_is_met_with_one_clear_line(server, name):
  server.stdin.write(f'{name}\n')
  server.stdin.flush()
  outcome = json.loads(server.stdout.readline())
  assert outcome['kind'] == 'right', f'{outcome["kind"]}: {outcome["detail"]}'

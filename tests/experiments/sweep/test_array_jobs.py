"""The array job of docs/scaling.md, by a stand-in for `sbatch`."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[3]
# Starts the tasks of an array as processes, and waits for them.
_SBATCH = """
import os, re, subprocess, sys
script = open(sys.argv[1]).read()
first, last = re.search(r'#SBATCH --array=(\\d+)-(\\d+)', script).groups()
tasks = [
    subprocess.Popen(['bash', sys.argv[1]], env={
        **os.environ, 'SLURM_ARRAY_TASK_ID': str(index)})
    for index in range(int(first), int(last) + 1)]
sys.exit(max(task.wait() for task in tasks))
"""


def _script():
  """The script of the page, with two tasks and a small table."""
  page = (_ROOT / 'docs' / 'scaling.md').read_text(encoding='utf-8')
  lines = page[page.index('    #!/bin/bash'):].splitlines()
  lines = [line[4:] for line in lines[:5]]
  text = '\n'.join(lines)
  assert '--array=0-7' in text and 'experiments.synthetic_noise' in text
  text = text.replace('0-7', '0-1').replace(
      '--dataset=cifar10 --seeds=5', '--methods=CE,GCE --noise=none --epochs=2')
  return re.sub(r'^python', sys.executable, text, flags=re.MULTILINE)


@pytest.mark.slow
@pytest.mark.thorough
def test_the_tasks_of_an_array_share_the_runs_of_a_table(tmp_path):
  (tmp_path / 'table.sbatch').write_text(_script())
  done = subprocess.run(
      [sys.executable, '-c', _SBATCH, tmp_path / 'table.sbatch'], cwd=tmp_path,
      env={**os.environ, 'HOME': str(tmp_path), 'PYTHONPATH': str(_ROOT)},
      text=True, capture_output=True, timeout=600)
  assert done.returncode == 0, done.stderr
  results = tmp_path / 'results'
  files = sorted(results.glob('*.json'))
  assert len(files) == 2
  assert {json.loads(file.read_text())['run']['method'] for file in files} == {
      'CE', 'GCE'}
  assert not (results / 'logs').exists()
  table = (results / 'tables' / 'synthetic_noise-digits.md').read_text()
  assert 'not run' not in table and '| GCE |' in table

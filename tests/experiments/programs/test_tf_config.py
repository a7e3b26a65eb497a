"""Tests of TF_CONFIG from SLURM and for Ray."""

import json
import os
import subprocess
import sys

import pytest

from experiments import tf_config
from tests.experiments.training import loopback

_JOB = {
    'SLURM_JOB_ID': '4001', 'SLURM_PROCID': '2', 'SLURM_NTASKS': '5',
    'SLURM_JOB_NODELIST': 'node[9-10],gpu5', 'SLURM_TASKS_PER_NODE': '2(x2),1'}


@pytest.mark.parametrize('text, nodes', [
    ('n1', ['n1']),
    ('n[01-03,07],gpu5', ['n01', 'n02', 'n03', 'n07', 'gpu5']),
    ('n[8-11]', ['n8', 'n9', 'n10', 'n11']),
    ('n[098-101]', ['n098', 'n099', 'n100', 'n101']),
    ('rack[1-2]n[1,3]-ib', ['rack1n1-ib', 'rack1n3-ib', 'rack2n1-ib',
                            'rack2n3-ib']),
    ('a-1.b,c', ['a-1.b', 'c']),
])
def test_nodes_are_expanded_in_their_order(text, nodes):
  assert tf_config.expand_nodes(text) == nodes


@pytest.mark.parametrize('text', [
    '', ',', 'n1,', 'n[1', 'n1]', 'n[]', 'n[a-b]', 'n[3-1]', 'n[1-]', 'n 1',
    'n[1--2]', 'n[0-99999999]'])
def test_what_is_no_list_of_nodes_is_refused(text):
  with pytest.raises(ValueError, match='Not a '):
    tf_config.expand_nodes(text)


def test_tasks_per_node_are_expanded():
  assert tf_config.expand_counts('2(x3),1') == [2, 2, 2, 1]
  with pytest.raises(ValueError, match='Not numbers of tasks'):
    tf_config.expand_counts('2x3')


def test_each_task_of_slurm_is_a_worker_and_the_port_follows_from_the_job():
  config = json.loads(tf_config.from_slurm(_JOB))
  port = 10000 + 2001 % 2000 * 10
  # In SLURM's order, which is not that of the names.
  assert config == {
      'cluster': {'worker': [
          f'node9:{port}', f'node9:{port + 1}', f'node10:{port}',
          f'node10:{port + 1}', f'gpu5:{port}']},
      'task': {'type': 'worker', 'index': 2}}


def test_a_step_goes_before_its_job():
  step = {'SLURM_STEP_NODELIST': 'gpu5', 'SLURM_STEP_NUM_TASKS': '1',
          'SLURM_STEP_TASKS_PER_NODE': '1', 'SLURM_PROCID': '0'}
  config = json.loads(tf_config.from_slurm({**_JOB, **step}, port=7))
  assert config['cluster'] == {'worker': ['gpu5:7']}


@pytest.mark.parametrize('changes, words', [
    ({'SLURM_PROCID': ''}, 'SLURM_PROCID is not set: is this a task of `srun`'),
    ({'SLURM_NTASKS': '4'}, 'SLURM has 4 tasks, but 5 by node'),
    ({'SLURM_TASKS_PER_NODE': '2,2'}, 'by node'),
    ({'SLURM_PROCID': '5'}, r'`index` must be in \[0, 5\)'),
    ({'SLURMD_NODENAME': 'gpu5'}, 'on gpu5, not on node10: .*=block'),
])
def test_a_job_that_does_not_fit_is_refused(changes, words):
  with pytest.raises(ValueError, match=words):
    tf_config.from_slurm({**_JOB, **changes})


def test_the_command_finds_tf_config_set(monkeypatch, capsys):
  for name, value in {**_JOB, 'TF_CONFIG': ''}.items():
    monkeypatch.setenv(name, value)
  assert tf_config.main([]) == 0
  assert capsys.readouterr().out == tf_config.from_slurm(_JOB) + '\n'
  started = []
  monkeypatch.setattr(
      os, 'execvp', lambda file, arguments: started.append(
          (file, arguments, os.environ['TF_CONFIG'])))
  tf_config.main(['--port=7', 'python', '-m', 'program', '--strategy=x'])
  assert started == [(
      'python', ['python', '-m', 'program', '--strategy=x'],
      tf_config.from_slurm(_JOB, port=7))]


def test_outside_of_slurm_the_command_says_so(monkeypatch, capsys):
  monkeypatch.delenv('SLURM_PROCID', raising=False)
  with pytest.raises(SystemExit):
    tf_config.main(['true'])
  assert 'SLURM_PROCID is not set' in capsys.readouterr().err


_ON_RAY = """
import os
import sys
import ray
from experiments import tf_config
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
os.chdir(sys.argv[1])
print(tf_config.run_on_ray(['sh', '-c', 'echo "$TF_CONFIG" > $$'], 2))
print(tf_config.run_on_ray(['sh', '-c', 'exit 3'], 2))
"""


@pytest.mark.slow
@pytest.mark.thorough
def test_ray_starts_a_worker_for_each_index_in_this_directory(tmp_path):
  pytest.importorskip('ray')
  done = subprocess.run(
      [sys.executable, '-c', _ON_RAY, str(tmp_path)], cwd=loopback.ROOT,
      stdout=subprocess.PIPE, text=True, check=True, timeout=200)
  assert done.stdout.split() == ['0', '3']
  first, second = (
      json.loads(file.read_text()) for file in tmp_path.iterdir())
  assert first['cluster'] == second['cluster']
  assert len(set(first['cluster']['worker'])) == 2
  assert {first['task']['index'], second['task']['index']} == {0, 1}

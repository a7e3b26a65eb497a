"""Sets `TF_CONFIG` for a command, from what SLURM or Ray says of the machines.

In a SLURM job, one task per worker:

    srun python -m experiments.tf_config \\
        python -m experiments.synthetic_noise --strategy=multi_worker

On a Ray cluster, called once, on any machine of it:

    python -m experiments.tf_config --ray=2 \\
        python -m experiments.synthetic_noise --strategy=multi_worker

Without a command it prints the TF_CONFIG of this SLURM task.
"""

import argparse
from collections.abc import Mapping
from collections.abc import Sequence
import itertools
import json
import os
import re
import subprocess
import sys
from typing import NoReturn

# Below the ports that Linux gives to connections. Jobs with neighbouring
# numbers get ports that are ten apart, for the tasks of one node.
_PORTS = range(10000, 30000, 10)
# Ray's own processes have the ports from 10001 to 19999.
_RAY_PORT = 20000
_MAX_HOSTS = 100_000


def make(addresses: Sequence[str], index: int) -> str:
  """The TF_CONFIG of one worker.

  Args:
    addresses: 'HOST:PORT' of all workers, in the same order for each; the
      first is the chief.
    index: of this worker.
  """
  if not 0 <= index < len(addresses):
    raise ValueError(
        f'Argument `index` must be in [0, {len(addresses)}). '
        f'Received: index={index}.')
  return json.dumps({
      'cluster': {'worker': list(addresses)},
      'task': {'type': 'worker', 'index': index}})


def from_slurm(
    environment: Mapping[str, str], port: int | None = None) -> str:
  """The TF_CONFIG of a SLURM task; each task is a worker.

  TensorFlow's own SlurmClusterResolver sorts the nodes by name, where SLURM
  does not, and ends without `nvidia-smi`.

  Args:
    environment: that `srun` gives to the task.
    port: of the first worker of each node; by default it follows from the job.
  """
  def get(*names):
    for name in names:
      if environment.get(name):
        return environment[name]
    raise ValueError(f'{names[0]} is not set: is this a task of `srun`?')

  index = int(get('SLURM_PROCID'))
  hosts = expand_nodes(get('SLURM_STEP_NODELIST', 'SLURM_JOB_NODELIST'))
  counts = expand_counts(get(
      'SLURM_STEP_TASKS_PER_NODE', 'SLURM_TASKS_PER_NODE',
      'SLURM_NTASKS_PER_NODE'))
  if len(counts) == 1:
    counts *= len(hosts)
  total = int(get('SLURM_STEP_NUM_TASKS', 'SLURM_NTASKS'))
  if len(counts) != len(hosts) or sum(counts) != total:
    raise ValueError(
        f'SLURM has {total} tasks, but {sum(counts)} by node: {counts} on '
        f'{hosts}.')
  if port is None:
    port = _PORTS[int(get('SLURM_JOB_ID')) % len(_PORTS)]
  workers = [
      (host, port + i) for host, count in zip(hosts, counts)
      for i in range(count)]
  config = make([f'{host}:{port}' for host, port in workers], index)
  here = environment.get('SLURMD_NODENAME')
  if here and here != workers[index][0]:
    raise ValueError(
        f'Task {index} is on {here}, not on {workers[index][0]}: start it with '
        '`srun --distribution=block`.')
  return config


def expand_nodes(text: str) -> list[str]:
  """SLURM's short form of nodes, 'n[01-02,7],gpu5', in full."""
  words = re.findall(r'(?:[^,\[\]\s]|\[[\d,-]+\])+', text)
  if not words or ','.join(words) != text:
    raise ValueError(f'Not a list of nodes: {text!r}.')
  hosts = []
  for word in words:
    # Every second part is the inside of brackets.
    parts = re.split(r'\[(.*?)\]', word)
    choices = [
        _expand_ranges(part) if i % 2 else [part]
        for i, part in enumerate(parts)]
    hosts.extend(map(''.join, itertools.product(*choices)))
  return hosts


def _expand_ranges(text: str) -> list[str]:
  numbers = []
  for part in text.split(','):
    first, dash, last = part.partition('-')
    if not dash:
      last = first
    if not (first.isdigit() and last.isdigit()
            and 0 <= int(last) - int(first) < _MAX_HOSTS):
      raise ValueError(f'Not a range of nodes: {part!r}.')
    numbers.extend(
        f'{number:0{len(first)}d}'
        for number in range(int(first), int(last) + 1))
  return numbers


def expand_counts(text: str) -> list[int]:
  """SLURM's short form of tasks per node, '2(x3),1', in full."""
  counts = []
  for part in text.split(','):
    found = re.fullmatch(r'(\d+)(?:\(x(\d+)\))?', part)
    if not found:
      raise ValueError(f'Not numbers of tasks: {text!r}.')
    counts.extend([int(found[1])] * int(found[2] or 1))
  return counts


def run_on_ray(
    command: Sequence[str], num_workers: int, port: int = _RAY_PORT) -> int:
  """Runs a command as workers on a Ray cluster, one beside the other.

  The nodes get workers in turn, beginning with this one, so that the chief's
  results are here. Each runs in the directory of the same name as this process
  and has its share of the GPUs of its node.

  Args:
    command: the same for all; each has its own TF_CONFIG.
    num_workers: number of workers.
    port: of the first worker; the next has the next.

  Returns:
    The highest exit status.
  """
  import ray
  from ray.util import scheduling_strategies

  directory = os.getcwd()

  @ray.remote(max_retries=0)
  def work(config):
    return subprocess.call(
        list(command), cwd=directory, env={**os.environ, 'TF_CONFIG': config})

  if not ray.is_initialized():
    ray.init(address='auto')
  here = ray.get_runtime_context().get_node_id()
  nodes = sorted(
      (node for node in ray.nodes() if node['Alive']),
      key=lambda node: (node['NodeID'] != here, node['NodeManagerAddress']))
  places = list(itertools.islice(itertools.cycle(nodes), num_workers))
  addresses = [
      f"{node['NodeManagerAddress']}:{port + index}"
      for index, node in enumerate(places)]
  tasks = [
      work.options(
          num_gpus=node['Resources'].get('GPU', 0) // places.count(node),
          scheduling_strategy=(
              scheduling_strategies.NodeAffinitySchedulingStrategy(
                  node['NodeID'], soft=False))
      ).remote(make(addresses, index))
      for index, node in enumerate(places)]
  return max(map(abs, ray.get(tasks)))


def _become(command: Sequence[str], config: str) -> NoReturn:
  os.environ['TF_CONFIG'] = config
  os.execvp(command[0], command)


def main(argv: Sequence[str]) -> int:
  parser = argparse.ArgumentParser(
      prog='tf_config', description=__doc__,
      formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument(
      '--ray', type=int, metavar='N',
      help='start the command as N workers on the running Ray cluster')
  parser.add_argument(
      '--port', type=int, help='port of the first worker (of each node)')
  parser.add_argument(
      'command', nargs=argparse.REMAINDER,
      help='the command, which finds TF_CONFIG set')
  arguments = parser.parse_args(argv)
  if arguments.ray is not None:
    if arguments.ray < 1 or not arguments.command:
      parser.error('--ray: needs a command and at least one worker')
    try:
      return run_on_ray(
          arguments.command, arguments.ray, arguments.port or _RAY_PORT)
    except ConnectionError as error:
      parser.error(f'--ray: {error}')
  try:
    config = from_slurm(os.environ, arguments.port)
  except ValueError as error:
    parser.error(str(error))
  if not arguments.command:
    print(config)
    return 0
  return _become(arguments.command, config)


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))

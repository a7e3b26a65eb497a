"""Runs the benchmarks and prints one table of ratios.

    python -m benchmarks [NAME ...] [--json=FILE] [--docs]

Each benchmark runs in a process of its own, its contestants in turns. The
machine should be idle; all take about half an hour on two cores.
"""

import argparse
from collections.abc import Sequence
import dataclasses
import importlib
import json
import pathlib
import platform
import subprocess
import sys

import tensorflow as tf

from benchmarks import timing
from experiments.sweep import machine
from experiments.training import devices
from experiments.training import results
from ln_tfp import files

NAMES = ('loss', 'many_classes', 'heteroscedastic', 'step', 'methods', 'data',
         'sweep', 'growth', 'process')
_DOCS = pathlib.Path(__file__).parents[1] / 'docs' / 'performance.md'
_BEGIN, _END = '<!-- table: begin -->\n', '<!-- table: end -->\n'


def run_apart(name: str) -> dict:
  """The rows of a benchmark, from a process of its own."""
  process = subprocess.run(
      [sys.executable, '-m', __package__, name, '--here'], check=True,
      stdout=subprocess.PIPE, text=True)
  return json.loads(process.stdout.splitlines()[-1])


def run_here(name: str) -> None:
  """Prints the rows of a benchmark as JSON."""
  rows = importlib.import_module(f'{__package__}.{name}').measure()
  print(json.dumps([dataclasses.asdict(row) for row in rows]))


def setup() -> str:
  """Hardware and versions."""
  device = devices.describe(tf.distribute.get_strategy())
  versions = results.versions()
  cores = machine.cores()
  return (
      f'{device["name"]}, {cores} cores, TensorFlow {versions["tensorflow"]}, '
      f'Keras {versions["keras"]}, Python {platform.python_version()}.')


def to_markdown(report: dict) -> str:
  """The report as tables."""
  header = ('comparison', 'ratio', 'medians', 'rounds', 'n', 'goal', 'met',
            'measured')
  lines = []
  for name, rows in report['benchmarks'].items():
    lines += ['', f'### {name.capitalize()}', '',
              f'| {" | ".join(header)} |', '|---' * len(header) + '|']
    for row in (timing.Row(**fields) for fields in rows):
      met = {None: '', True: 'yes', False: '**no**'}[row.is_met]
      spread = '' if row.low is None else f'{row.low:.2f} to {row.high:.2f}'
      median = '' if row.median is None else f'{row.median:.2f}'
      lines.append(
          f'| {row.name} | {row.value:.2f} | {median} | {spread} | {row.n} | '
          f'{row.goal} | {met} | {row.detail} |')
  return '\n'.join([report['setup'], *lines, ''])


def write_docs(report: dict) -> None:
  """Puts the tables into docs/performance.md."""
  text = _DOCS.read_text(encoding='utf-8')
  before, rest = text.split(_BEGIN)
  after = rest.split(_END)[1]
  _DOCS.write_text(
      before + _BEGIN + to_markdown(report) + _END + after, encoding='utf-8')


def run_all(names: Sequence[str], json_file: str | None, docs: bool) -> None:
  """Runs benchmarks and reports on them."""
  report = {'setup': setup(), 'benchmarks': {}}
  if json_file and pathlib.Path(json_file).exists():
    before = json.loads(pathlib.Path(json_file).read_text(encoding='utf-8'))
    if before['setup'] == report['setup']:
      report = before
  for name in names:
    print(f'{name} ...', file=sys.stderr)
    report['benchmarks'][name] = run_apart(name)
    if json_file:  # after each: a later one may be interrupted
      files.write_atomically(
          json_file, json.dumps(report, indent=1).encode())
  print(to_markdown(report))
  if docs:
    write_docs(report)


def main() -> None:
  parser = argparse.ArgumentParser(
      prog='python -m benchmarks', description=__doc__,
      formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument(
      'names', nargs='*', metavar='NAME',
      help=f'of {", ".join(NAMES)}; default: all')
  parser.add_argument(
      '--json', help='file that keeps the report; others of the same machine '
      'and versions that are in it stay')
  parser.add_argument(
      '--docs', action='store_true', help='write docs/performance.md, too')
  parser.add_argument('--here', action='store_true', help=argparse.SUPPRESS)
  arguments = parser.parse_args()
  for name in arguments.names:
    if name not in NAMES:
      parser.error(f'NAME must be one of {", ".join(NAMES)}, not {name}')
  if arguments.here:
    run_here(*arguments.names)
  else:
    run_all(arguments.names or NAMES, arguments.json, arguments.docs)


if __name__ == '__main__':
  main()

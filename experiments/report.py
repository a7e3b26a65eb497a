"""All tables and figures of a directory on one page, after its claims.

    python -m experiments.report --output_dir=results
    python -m experiments.report --output_dir=results/evidence \
        --benchmark=docs/benchmark.md

Writes OUTPUT_DIR/report.html, one file that needs no network. Its first section
is a table of the claims of the paper's results section: each holds, fails or
was not run, with the numbers compared. Then follow all tables, all figures, the
searches, and for each number the runs behind it: configuration, seed, versions
and time. Nothing is trained; every number is computed from the stored results.
With --benchmark the generated part of that Markdown page is made anew, too: the
tables with ranks, significance, cost and commands.

Time: a few seconds.
Expected: on the committed results every claim on digits and digits_n is either
held or failed, and those on data that was not trained on are not run.
"""

import pathlib
import sys

from absl import flags
from etils import epy

from experiments.cli import app
from experiments.cli import recipes
from experiments.output import benchmark
from experiments.output import evidence
from experiments.output import report

with epy.lazy_imports():
  from ln_tfp import files

flags.DEFINE_string(
    'benchmark', None, 'A Markdown page whose generated part is made anew.')


def main(argv):
  del argv
  directory = pathlib.Path(app.FLAGS.output_dir)
  path = directory / 'report.html'
  facts = evidence.Facts(directory)
  for problem in facts.problems:
    print(f'Left alone: {problem}', file=sys.stderr)
  report.build(directory, facts).save(path)
  print(path)
  print(f'Claims: {report.counts(facts)}.')
  if app.FLAGS.benchmark:
    write_benchmark(pathlib.Path(app.FLAGS.benchmark), facts)


def write_benchmark(path, facts):
  """Makes the page of the benchmark anew, but for its head."""
  with recipes.naming('benchmark'):
    text = benchmark.update(path, facts, app.FLAGS.output_dir)
  files.write_atomically(path, text.encode())
  print(path)


if __name__ == '__main__':
  app.start(main)

"""All tables and figures of a directory on one page, after its claims.

    python -m experiments.report --output_dir=results

Writes OUTPUT_DIR/report.html, one file that needs no network. Its first section
is a table of the claims of the paper's results section: each holds, fails or
was not run, with the numbers compared. Then follow all tables, all figures, the
searches, and for each number the runs behind it: configuration, seed, versions
and time. Nothing is trained; every number is computed from the stored results.

Time: a few seconds.
Expected: on the committed results every claim on digits and digits_n is either
held or failed, and those on data that was not trained on are not run.
"""

import pathlib

from experiments.cli import app
from experiments.output import evidence
from experiments.output import report


def main(argv):
  del argv
  directory = pathlib.Path(app.FLAGS.output_dir)
  path = directory / 'report.html'
  facts = evidence.Facts(directory)
  report.build(directory, facts).save(path)
  print(path)
  print(f'Claims: {report.counts(facts)}.')


if __name__ == '__main__':
  app.start(main)

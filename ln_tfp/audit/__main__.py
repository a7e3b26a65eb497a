"""Audits the labels of a data set from the command line.

    python -m ln_tfp.audit images/ --backbone=auto
    python -m ln_tfp.audit reviews.csv --label=sentiment
    python -m ln_tfp.audit features.npy --labels labels.csv
    python -m ln_tfp.audit apply --decisions decisions.csv
        --labels labels.csv --output corrected.csv

writes `labels.csv`, `audit.html` and, for anything but a table,
`classifier.keras`. Without arguments it shows what it can do on handwritten
digits, one label in five of which it has changed.
"""

import argparse
from collections.abc import Callable
import contextlib
import re
import sys

from ln_tfp import quiet
from ln_tfp.audit import files
from ln_tfp.audit.command import applying
from ln_tfp.audit.command import named
from ln_tfp.audit.command import running

_LONGEST = 300  # characters of a complaint


def main(argv: list[str] | None = None,
         load_named: Callable[..., files.Dataset] = named.load) -> int:
  """Runs the command and returns its exit status.

  Args:
    argv: the arguments, by default those of the process.
    load_named: serves `--dataset`, as `named.load` does.
  """
  argv = sys.argv[1:] if argv is None else argv
  try:
    if argv[:1] == ['apply']:
      applying.run(_apply_parser().parse_args(argv[1:]))
    else:
      running.run(_audit_parser().parse_args(argv), load_named)
  except (files.InputError, ModuleNotFoundError, OSError,
          MemoryError) as error:
    print(f'error: {_one_line(error)}', file=sys.stderr)
    return 2
  except KeyboardInterrupt:
    print('\nInterrupted. Nothing was written.', file=sys.stderr)
    return 130
  return 0


def _one_line(error):
  if isinstance(error, OSError) and error.filename is not None:
    return f'{error.filename}: {files.reason(error)}.'
  return ' '.join(str(error).split()) or 'out of memory'


class _Parser(argparse.ArgumentParser):
  """One whose complaints are one line."""

  def error(self, message):
    message = ' '.join(message.split())
    self.exit(2, f'error: {message[:_LONGEST]} (see --help)\n')


def _audit_parser():
  parser = _Parser(
      prog='python -m ln_tfp.audit',
      description='Finds wrong labels. Without arguments: a demonstration on '
      'handwritten digits with changed labels. `apply` instead of DATA puts '
      'decisions into labels.')
  parser.add_argument(
      'data', nargs='?', metavar='DATA',
      help='a folder of images (a sub-folder for each class, or --labels); '
      '.npy or .npz of images [N, H, W(, C)] or features [N, F]; a table '
      '(.csv, .tsv, .parquet)')
  parser.add_argument('--images', help='another way to say DATA')
  parser.add_argument(
      '--dataset', help='a data set by name: digits, or one that '
      'tensorflow_datasets has prepared')
  source = parser.add_argument_group('labels and columns')
  source.add_argument(
      '--labels', help='.npy, or a table with the header label (arrays) or '
      'file,label (folder)')
  source.add_argument('--label', help='the column of the labels in a table')
  source.add_argument('--id', help='the column that names the rows of a table')
  source.add_argument(
      '--ignore', type=_names, default=(),
      help='columns of a table to leave out, separated by commas')
  source.add_argument(
      '--classes', type=_class_names, help='names of the classes, separated by '
      'commas; labels that are none of them are refused')
  source.add_argument(
      '--decisions', help='decisions.csv of an earlier audit: its labels are '
      'taken as certain')
  source.add_argument(
      '--allow_outside', action='store_true',
      help='let a list of images name files outside of the folder')
  source.add_argument(
      '--noise', help='noise to add to the labels of --dataset, e.g. sym:0.2')
  source.add_argument(
      '--data_dir', help='where the data sets of --dataset are')
  work = parser.add_argument_group('work')
  work.add_argument(
      '--backbone', help='a pretrained network that embeds images: a .keras '
      'file (images 0..255 -> features), a name of keras.applications, or '
      'auto. Without it a small network is trained')
  work.add_argument(
      '--size', type=_positive, help='side to which the images of a folder are '
      'resized (default: 32, or what the backbone takes)')
  work.add_argument(
      '--epochs', type=_positive, help='epochs of training (default: by the '
      'number of examples)')
  work.add_argument('--seed', type=_seed, default=0)
  result = parser.add_argument_group('result')
  decision = result.add_mutually_exclusive_group()
  decision.add_argument(
      '--budget', type=_positive, help='how many labels to flag')
  decision.add_argument(
      '--precision', type=_share, help='flag as many as keep this expected '
      'share of wrong ones (default: the best expected F1)')
  result.add_argument(
      '--shown', type=_positive, default=300,
      help='how many issues the page shows (default: 300)')
  result.add_argument(
      '--output', default='audit', help='folder to write to (default: audit)')
  result.add_argument(
      '--overwrite', action='store_true', help='replace files in that folder '
      'which an audit has not written')
  return parser


def _apply_parser():
  parser = _Parser(
      prog='python -m ln_tfp.audit apply',
      description='Puts decisions into labels. Writes corrected labels, and a '
      'log of changes beside them; nothing is overwritten.')
  parser.add_argument(
      '--decisions', required=True,
      help='decisions.csv of the page, or a JSON export of Label Studio')
  parser.add_argument(
      '--labels', required=True,
      help='the table that was audited, the list of labels, or labels.csv of '
      'the audit')
  parser.add_argument('--label', help='the column of the labels')
  parser.add_argument('--id', help='the column that names the rows')
  parser.add_argument(
      '--classes', type=_class_names, help='as in the audit, where it gave '
      'names to numbers; the new table has the names')
  parser.add_argument('--output', required=True, help='the new table')
  return parser


def _names(text):
  return tuple(name.strip() for name in text.split(','))


def _class_names(text):
  names = _names(text)
  if not all(names):
    raise argparse.ArgumentTypeError(f'{text!r} has a class without a name')
  return names


def _positive(text):
  if not re.fullmatch('0*[1-9][0-9]{0,17}', text):
    raise argparse.ArgumentTypeError(
        f'{text[:40]!r} is no positive whole number')
  return int(text)


def _seed(text):
  if not re.fullmatch('[0-9]{1,10}', text) or int(text) >= 2**32:
    raise argparse.ArgumentTypeError(
        f'{text[:40]!r} is no whole number from 0 to {2**32 - 1}')
  return int(text)


def _share(text):
  with contextlib.suppress(ValueError):
    if 0. < float(text) <= 1.:
      return float(text)
  raise argparse.ArgumentTypeError(f'{text[:40]!r} is not in (0, 1]')


if __name__ == '__main__':
  quiet.finish()
  sys.exit(main())

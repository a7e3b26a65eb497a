"""Audits the labels of a data set from the command line.

    python -m ln_tfp.audit --images images.npy --labels labels.csv

trains a network with a Logistic-Normal head and writes `labels.csv`,
`audit.html` and `classifier.keras`. Without arguments it shows what it can do
on handwritten digits, one label in five of which it has changed.
"""

import argparse
from collections.abc import Callable
import os
import pathlib
import shutil
import sys
import tempfile

import numpy as np

import ln_tfp
from ln_tfp.audit import files
from ln_tfp.audit import fitting
from ln_tfp.audit import named


def main(argv: list[str] | None = None,
         load_named: Callable[..., files.Dataset] = named.load) -> int:
  """Runs the command and returns its exit status.

  Args:
    argv: the arguments, by default those of the process.
    load_named: serves `--dataset`, as `named.load` does.
  """
  arguments = _parser().parse_args(argv)
  try:
    _audit(arguments, load_named)
  except (files.InputError, OSError) as error:
    print(f'error: {error}', file=sys.stderr)
    return 2
  except KeyboardInterrupt:
    print('\nInterrupted. Nothing was written.', file=sys.stderr)
    return 130
  return 0


def _parser():
  parser = argparse.ArgumentParser(
      prog='python -m ln_tfp.audit',
      description='Finds wrong labels. Without arguments: a demonstration on '
      'handwritten digits with changed labels.')
  source = parser.add_mutually_exclusive_group()
  source.add_argument(
      '--images', help='.npy or .npz file of images [N, H, W(, C)] or features '
      '[N, F], or a folder of images')
  source.add_argument(
      '--dataset', help='a data set by name: digits, or one that '
      'tensorflow_datasets has prepared (python -m experiments.audit knows '
      'those of the paper)')
  parser.add_argument(
      '--labels', help='.npy file, or CSV file with the header label (arrays) '
      'or file,label (folder)')
  parser.add_argument(
      '--classes', help='names of the classes, separated by commas; labels '
      'that are none of them are refused')
  parser.add_argument(
      '--noise', default=None, help='noise to add to the labels of --dataset, '
      'e.g. sym:0.2, asym:0.3 or human:worst')
  parser.add_argument('--data_dir', help='where the data sets of --dataset are')
  parser.add_argument(
      '--size', type=_positive, default=32, help='side to which the images of '
      'a folder are resized (default: 32)')
  parser.add_argument(
      '--epochs', type=_positive, help='epochs of training (default: by the '
      'number of examples)')
  parser.add_argument('--seed', type=int, default=0)
  parser.add_argument(
      '--output', default='audit', help='folder to write to (default: audit)')
  return parser


def _positive(text):
  value = int(text)
  if value < 1:
    raise argparse.ArgumentTypeError(f'{text} is not positive')
  return value


def _audit(arguments, load_named):
  output = pathlib.Path(arguments.output)
  _check_writable(output)
  table = output / 'labels.csv'
  if arguments.labels and table.exists() and table.samefile(arguments.labels):
    raise files.InputError(f'--output: {arguments.labels} would be lost.')
  dataset = _load(arguments, load_named)
  inputs = dataset.inputs
  if inputs.ndim == 3:
    inputs = inputs[..., np.newaxis]
  shape = inputs.shape[1:]
  print(f'{len(inputs):,} examples of shape {"x".join(map(str, shape))}, '
        f'{len(dataset.class_names)} classes; network: '
        f'{fitting.choose_network(shape)}')
  model = fitting.fit(
      inputs, dataset.labels, len(dataset.class_names),
      epochs=arguments.epochs, seed=arguments.seed, progress=sys.stderr)
  report = ln_tfp.audit_labels(
      model, inputs, dataset.labels, ids=dataset.ids,
      class_names=dataset.class_names)
  print(f'\n{report}\n')
  if dataset.clean_labels is not None:
    _print_found(report, dataset)
  _write(report, model, output)


def _load(arguments, load_named):
  if arguments.images is None:
    if arguments.labels or arguments.classes:
      raise files.InputError('--labels and --classes need --images.')
    name, noise = arguments.dataset, arguments.noise
    if name is None:
      name, noise = 'digits', noise or 'sym:0.2'
      print('Demonstration: handwritten digits, some labels changed at random.')
    return load_named(
        name, noise or 'none', arguments.data_dir, arguments.seed)
  if arguments.noise:
    raise files.InputError('--noise needs --dataset.')
  classes = arguments.classes and tuple(
      name.strip() for name in arguments.classes.split(','))
  return files.load(
      arguments.images, arguments.labels, classes, arguments.size)


def _print_found(report, dataset):
  wrong = dataset.labels != dataset.clean_labels
  found = np.count_nonzero(wrong & report.is_issue)
  false_alarms = np.count_nonzero(~wrong & report.is_issue)
  print(f'{np.count_nonzero(wrong):,} labels are known to be wrong: '
        f'{found:,} of them were found, with {false_alarms:,} false alarms.\n')


def _check_writable(output):
  """Refuses a folder that cannot be written, before minutes of training."""
  if output.exists() and not output.is_dir():
    raise files.InputError(f'{output}: not a folder.')
  existing = next(p for p in (output, *output.absolute().parents) if p.exists())
  if not os.access(existing, os.W_OK):
    raise files.InputError(f'{existing}: not writable.')


def _write(report, model, output):
  """Writes all files, or none if it is interrupted before the last moment."""
  classifier = ln_tfp.to_classifier(model)
  output.parent.mkdir(parents=True, exist_ok=True)
  folder = pathlib.Path(tempfile.mkdtemp(
      prefix=f'.{output.name}-', dir=output.parent))
  try:
    report.to_csv(folder / 'labels.csv')
    report.save(folder / 'audit.html')
    classifier.save(folder / 'classifier.keras')
    output.mkdir(exist_ok=True)
    for path in sorted(folder.iterdir()):
      os.replace(path, output / path.name)
  finally:
    shutil.rmtree(folder, ignore_errors=True)
  for name, what in (('labels.csv', 'all labels with their quality'),
                     ('audit.html', 'open it in a browser'),
                     ('classifier.keras', 'a plain Keras classifier')):
    print(f'{output / name}: {what}')


if __name__ == '__main__':
  sys.exit(main())

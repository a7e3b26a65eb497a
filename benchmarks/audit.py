"""The audit beside cleanlab: which finds wrong labels better.

    python -m benchmarks.audit [--data_dir=DIR] [--cells=digits/sym:0.2,...]

LN trains one network on all examples. cleanlab gets what it asks for: the
probabilities that networks trained with cross entropy give to the examples of
the fold they have not seen, five folds. Network, epochs, optimiser and batch
are the same for both. Each cell is a data set and a noise, three seeds; a cell
whose data are not there is skipped. Results go to a JSON file, from which the
tables of docs/audit.md are made (`--docs` writes them). The digits cells take
some five minutes on two cores, all of them a quarter of an hour.
"""

import argparse
import json
import pathlib
import platform
import time

from cleanlab import count
from cleanlab import filter as cleanlab_filter
from cleanlab import rank
import keras
import numpy as np
from sklearn import metrics
import tensorflow as tf

from experiments import data
from experiments.training import devices
from experiments.training import results
import ln_tfp
from ln_tfp import random
from ln_tfp.audit import fitting

# Data set / noise: examples (None: all), network, epochs.
_CELLS = {
    'digits/sym:0.2': (None, 'mlp', 60),
    'digits/sym:0.4': (None, 'mlp', 60),
    'digits/asym:0.3': (None, 'mlp', 60),
    'digits/none': (None, 'mlp', 60),
    'digits_n/human:worst': (None, 'mlp', 60),
    'mnist/sym:0.4': (3_000, 'mlp', 30),
    'cifar10n/human:worst': (1_000, 'convolutional', 15),
}
_SEEDS = (0, 1, 2)
_NUM_FOLDS = 5
_NUM_CLASSES = 10  # of each of these data sets
_QUALITIES = ('self_confidence', 'normalized_margin',
              'confidence_weighted_entropy')
_RESULTS = pathlib.Path(__file__).parent / 'audit.json'
_DOCS = pathlib.Path(__file__).parents[1] / 'docs' / 'audit.md'
_BEGIN, _END = '<!-- tables: begin -->\n', '<!-- tables: end -->\n'


def load(cell: str, data_dir: str | None, seed: int):
  """Returns the inputs of a cell, its clean labels and its noisy ones."""
  name, noise = cell.split('/')
  source = data.load(name, data_dir)
  examples = source.train
  inputs, clean, ids = examples.inputs, examples.true, examples.ids
  if name == 'digits':  # An audit has no use for a test set.
    test = source.test
    inputs, clean, ids = (
        np.concatenate(pair) for pair in (
            (inputs, test.inputs), (clean, test.true), (ids, test.ids)))
  noisy = ln_tfp.noise.corrupt(
      clean, noise, seed, ids, num_classes=source.num_classes,
      mapping=data.traits(name).mapping, human_labels=examples.label_sets)
  part = slice(_CELLS[cell][0])
  return inputs[part], clean[part], noisy[part]


def run_ln(inputs, given, network, epochs, seed):
  """Returns the report of one network, and the seconds it took."""
  begin = time.perf_counter()
  model = fitting.fit(
      inputs, given, _NUM_CLASSES, network=network, epochs=epochs,
      seed=seed)
  report = ln_tfp.audit_labels(model, inputs, given)
  return report, time.perf_counter() - begin


def run_folds(inputs, given, network, epochs, seed):
  """Returns out-of-sample probabilities of CE, and the seconds they took."""
  begin = time.perf_counter()
  folds = np.argsort(random.order(
      'folds', seed, np.arange(len(given)))) % _NUM_FOLDS
  probabilities = np.zeros((len(given), _NUM_CLASSES))
  for fold in range(_NUM_FOLDS):
    seen = folds != fold
    model = fitting.fit(
        inputs[seen], given[seen], _NUM_CLASSES, network=network,
        head=lambda: keras.layers.Dense(_NUM_CLASSES),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        epochs=epochs, seed=_NUM_FOLDS * seed + fold)
    logits = model(inputs[~seen], training=False)
    probabilities[~seen] = tf.nn.softmax(logits).numpy()
  return probabilities, time.perf_counter() - begin


def measure(clean, given, quality, is_issue, matrix):
  """Returns the figures of one method."""
  wrong = given != clean
  realised = data.Examples(
      given, given, clean, np.arange(len(given))).transition_matrix(len(matrix))
  figures = {
      'flagged': int(is_issue.sum()),
      'false_alarms': int((is_issue & ~wrong).sum()),
      'matrix_error': float(np.abs(matrix - realised).max()),
  }
  if wrong.any():
    figures |= {
        'auroc': metrics.roc_auc_score(wrong, -quality),
        'average_precision': metrics.average_precision_score(wrong, -quality),
        'f1': metrics.f1_score(wrong, is_issue),
    }
  return figures


def run_seed(cell: str, data_dir: str | None, seed: int) -> dict:
  """Returns the figures of all methods for one seed."""
  _, network, epochs = _CELLS[cell]
  inputs, clean, given = load(cell, data_dir, seed)
  result = {'n': len(given), 'noise': float(np.mean(given != clean))}
  report, seconds = run_ln(inputs, given, network, epochs, seed)
  result['LN'] = measure(clean, given, report.quality, report.is_issue,
                         report.transition_matrix) | {'seconds': seconds}
  probabilities, seconds = run_folds(inputs, given, network, epochs, seed)
  is_issue = cleanlab_filter.find_label_issues(given, probabilities)
  joint = count.estimate_joint(given, probabilities)
  matrix = (joint / joint.sum(axis=0)).T  # P(given | true), rows true
  for name in _QUALITIES:
    quality = rank.get_label_quality_scores(given, probabilities, method=name)
    result[name] = measure(clean, given, quality, is_issue, matrix) | {
        'seconds': seconds}
  return result


def table(results: dict) -> str:
  """Returns the results as Markdown."""
  header = ('data', 'n', 'wrong', 'method', 'AUROC', 'average precision', 'F1',
            'false alarms', 'matrix error', 'seconds')
  lines = [f'| {" | ".join(header)} |', '|---' * len(header) + '|']
  for cell, seeds in results['cells'].items():
    for method in ('LN', *_QUALITIES):
      row = [cell, f'{seeds[0]["n"]:,}', _mean(seeds, 'noise', 3),
             method if method == 'LN' else f'cleanlab, {method}']
      figures = [seed[method] for seed in seeds]
      row += [_mean(figures, key, digits) for key, digits in (
          ('auroc', 4), ('average_precision', 4), ('f1', 3),
          ('false_alarms', 1), ('matrix_error', 3), ('seconds', 0))]
      lines.append(f'| {" | ".join(row)} |')
  return '\n'.join([*lines, '', results['setup'], ''])


def _mean(figures, key, digits):
  if key not in figures[0]:
    return '-'
  return f'{np.mean([f[key] for f in figures]):.{digits}f}'


def _setup():
  device = devices.describe(tf.distribute.get_strategy())
  versions = results.versions()
  return (
      f'Means of {len(_SEEDS)} seeds. {device["name"]}, TensorFlow '
      f'{versions["tensorflow"]}, Keras {versions["keras"]}, Python '
      f'{platform.python_version()}.')


def main() -> None:
  """Runs the cells and writes the results."""
  parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
  parser.add_argument('--data_dir')
  parser.add_argument('--cells', default=','.join(_CELLS))
  parser.add_argument('--docs', action='store_true',
                      help='write the tables of docs/audit.md and stop')
  arguments = parser.parse_args()
  results = {'cells': {}}
  if _RESULTS.exists():
    results = json.loads(_RESULTS.read_text(encoding='utf-8'))
  if arguments.docs:
    text = _DOCS.read_text(encoding='utf-8')
    before, rest = text.split(_BEGIN)
    text = before + _BEGIN + table(results) + _END + rest.split(_END)[1]
    _DOCS.write_text(text, encoding='utf-8')
    return
  results['setup'] = _setup()
  for cell in arguments.cells.split(','):
    try:
      results['cells'][cell] = [
          run_seed(cell, arguments.data_dir, seed) for seed in _SEEDS]
    except data.MissingDataError as error:
      print(f'{cell} is skipped: {error}')
      continue
    _RESULTS.write_text(json.dumps(results, indent=1), encoding='utf-8')
    print(table({'cells': {cell: results['cells'][cell]}, 'setup': ''}))


if __name__ == '__main__':
  main()

"""A simulated review: labels put right against labels looked at.

    python -m benchmarks.review [--data_dir=DIR]

A reviewer who knows the truth looks at labels in the order of an audit and puts
the wrong ones right. Orders: ours, cleanlab's (logistic regression by folds,
self-confidence), and by chance. "Again" audits once more after every tenth of
the wrong labels, with the decisions so far as certain. Rows: the first 10,000
of CIFAR-10N "worst" and "aggregate", and digits with 20 % symmetric noise.
"""

import argparse
import json
import pathlib

import numpy as np

from benchmarks import audit_cells
from benchmarks import audit_contestants
from experiments import data
import ln_tfp
from ln_tfp import files
from ln_tfp import random

CELLS = ('cifar10n/worst', 'cifar10n/aggregate', 'digits/sym:0.2')
# Labels looked at, in numbers of wrong labels that there are.
EFFORTS = (.25, .5, 1., 1.5, 2.)
_ROUNDS = 10
_RESULTS = pathlib.Path(__file__).parent / 'review.json'


def share_fixed(order: np.ndarray, wrong: np.ndarray) -> list[float]:
  """Returns the share of wrong labels among the first ones, by effort."""
  total = wrong.sum()
  return [float(wrong[order[:round(effort * total)]].sum() / total)
          for effort in EFFORTS]


def ours(part: audit_cells.Part) -> np.ndarray:
  """Returns the order of one audit."""
  return np.argsort(_audit(part, part.given, None).quality, kind='stable')


def ours_again(part: audit_cells.Part) -> np.ndarray:
  """Returns the order of a review that audits again as it goes."""
  step = int(np.ceil(max(EFFORTS) * part.is_wrong.sum() / _ROUNDS))
  seen = np.zeros(len(part.given), bool)
  labels, order = part.given.copy(), []
  for _ in range(_ROUNDS):
    quality = _audit(part, labels, seen).quality
    chosen = np.argsort(np.where(seen, np.inf, quality), kind='stable')[:step]
    order.append(chosen)
    seen[chosen] = True
    labels[chosen] = part.true[chosen]
  return np.concatenate(order)


def _audit(part, labels, certain):
  return ln_tfp.audit_features(
      part.features, labels, class_names=range(part.num_classes),
      certain=certain)


def cleanlab(part: audit_cells.Part) -> np.ndarray:
  """Returns the order of cleanlab's label quality."""
  verdict = audit_contestants.logistic_regression(
      part.features, part.given, part.num_classes)
  return np.argsort(verdict.quality, kind='stable')


def by_chance(part: audit_cells.Part) -> np.ndarray:
  return random.order('review', np.arange(len(part.given)))


ORDERS = {'ours': ours, 'ours, again': ours_again, 'cleanlab': cleanlab,
          'by chance': by_chance}


def main() -> None:
  parser = argparse.ArgumentParser(
      prog='python -m benchmarks.review', description=__doc__,
      formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument('--cells', default=','.join(CELLS))
  parser.add_argument('--orders', default=';'.join(ORDERS))
  parser.add_argument('--data_dir')
  parser.add_argument('--results', type=pathlib.Path, default=_RESULTS)
  arguments = parser.parse_args()
  path = arguments.results
  results = (json.loads(path.read_text(encoding='utf-8'))
             if path.exists() else {})
  for cell in arguments.cells.split(','):
    try:
      part = audit_cells.load(cell, 0, arguments.data_dir)
    except data.MissingDataError as error:
      print(f'{cell} is skipped: {error}')
      continue
    for name in arguments.orders.split(';'):
      key = f'{cell} | {name}'
      if key not in results:
        results[key] = share_fixed(ORDERS[name](part), part.is_wrong)
        print(key, np.round(results[key], 3), flush=True)
        files.write_atomically(path, json.dumps(results, indent=1).encode())


if __name__ == '__main__':
  main()

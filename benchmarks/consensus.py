"""Several annotators: `ln_tfp.consensus` beside other ways to agree.

    python -m benchmarks.consensus [--data_dir=DIR]

Contestants: majority vote (ties by chance), Dawid and Skene (1979) without
features, CROWDLAB (cleanlab) with the same features, and ours. Cells: the three
random labels of CIFAR-10N, blocks of 10,000 rows; and workers that are
simulated on digits, each with an accuracy of its own and its own favourite
mistake, where the accuracies are known. Results go to a JSON file.
"""

import argparse
from collections.abc import Callable
import json
import pathlib
import time
import warnings

from cleanlab import multiannotator
import numpy as np
import pandas as pd
from sklearn import datasets

from benchmarks import audit_cells
from benchmarks import audit_contestants
from experiments import data
import ln_tfp
from ln_tfp import files
from ln_tfp import random

_RESULTS = pathlib.Path(__file__).parent / 'consensus.json'
_STEPS = 50
_SETS = ('random1', 'random2', 'random3')


def majority(votes: np.ndarray, num_classes: int) -> np.ndarray:
  """Returns the commonest vote on each row, one of the commonest in a tie."""
  shares = _counts(votes, num_classes).astype(np.float64)
  rows = np.arange(len(votes))[:, np.newaxis]
  shares += .5 * random.uniform('tie', rows, np.arange(num_classes))
  return shares.argmax(axis=1)


def dawid_skene(
    votes: np.ndarray, num_classes: int) -> tuple[np.ndarray, np.ndarray]:
  """Returns labels `[N]` and accuracies of annotators `[M]`, by EM."""
  shares = _counts(votes, num_classes)
  posterior = shares / shares.sum(axis=1, keepdims=True)
  for _ in range(_STEPS):
    prior = posterior.mean(axis=0)
    logits = np.tile(np.log(prior), [len(votes), 1])
    for column in votes.T:
      voted = column >= 0
      matrix = np.full((num_classes, num_classes), .1)  # a weak prior
      np.add.at(matrix.T, column[voted], posterior[voted])
      matrix /= matrix.sum(axis=1, keepdims=True)
      logits[voted] += np.log(matrix[:, column[voted]]).T
    posterior = np.exp(logits - logits.max(axis=1, keepdims=True))
    posterior /= posterior.sum(axis=1, keepdims=True)
  return posterior.argmax(axis=1), _accuracy(votes, posterior)


def crowdlab(features, votes, num_classes):
  """cleanlab's consensus, with five folds of logistic regression."""
  table = pd.DataFrame(votes).mask(votes < 0)
  probabilities = audit_contestants.out_of_sample(
      features, majority(votes, num_classes), num_classes)
  with warnings.catch_warnings():
    warnings.simplefilter('ignore')
    found = multiannotator.get_label_quality_multiannotator(
        table, probabilities, verbose=False)
  stats = found['annotator_stats'].sort_index()
  return (found['label_quality']['consensus_label'].to_numpy(),
          stats['annotator_quality'].to_numpy())


def ours(features, votes, num_classes):
  agreed = ln_tfp.consensus(features, votes, class_names=range(num_classes))
  return agreed.labels, agreed.annotator_accuracy


CONTESTANTS: dict[str, Callable] = {
    'majority': lambda features, votes, size: (majority(votes, size), None),
    'Dawid-Skene': lambda features, votes, size: dawid_skene(votes, size),
    'CROWDLAB': crowdlab,
    'ln_tfp.consensus': ours,
}


def simulate(
    true: np.ndarray, num_workers: int, votes_each: int,
    seed: int) -> np.ndarray:
  """Returns votes `[N, M]` of workers between .35 and .95 accurate.

  Half of a worker's mistakes go to one class of his own for each true class.
  """
  num, num_classes = len(true), int(true.max()) + 1
  workers = np.arange(num_workers)
  rows = np.arange(num)[:, np.newaxis]
  accuracy = .35 + .6 * random.uniform('accuracy', seed, workers)
  favourite = random.integers(
      num_classes - 1, 'favourite', seed, workers,
      np.arange(num_classes)[:, np.newaxis])  # [K, M]
  any_other = random.integers(
      num_classes - 1, 'other', seed, rows, workers)
  follows = random.uniform('follows', seed, rows, workers) < .5
  step = 1 + np.where(follows, favourite[true], any_other)
  right = random.uniform('right', seed, rows, workers) < accuracy
  votes = np.where(right, true[:, np.newaxis],
                   (true[:, np.newaxis] + step) % num_classes)
  chosen = np.argsort(random.uniform('chosen', seed, rows, workers), axis=1)
  votes[chosen >= votes_each] = -1
  return votes


def load(cell: str, part: int, data_dir: str | None):
  """Returns features, votes and true labels."""
  if cell.startswith('cifar10n'):
    parts = [audit_cells.load(f'cifar10n/{name}', part, data_dir)
             for name in _SETS]
    return (parts[0].features, np.stack([p.given for p in parts], axis=1),
            parts[0].true)
  workers, each = map(int, cell.split('/')[1].split('x'))
  x, true = datasets.load_digits(return_X_y=True)
  return x.astype(np.float32), simulate(true, workers, each, part), true


CELLS = ('digits/5x3', 'digits/20x3', 'digits/60x2', 'cifar10n/3x3')


def run(cell: str, part: int, data_dir: str | None) -> dict:
  """Returns the figures of all contestants."""
  features, votes, true = load(cell, part, data_dir)
  num_classes = int(true.max()) + 1
  voted = votes >= 0
  known = np.array([np.mean(true[v] == column[v])
                    for v, column in zip(voted.T, votes.T)])
  tied = _is_tied(votes, num_classes)
  result = {}
  for name, contestant in CONTESTANTS.items():
    begin = time.perf_counter()
    labels, accuracy = contestant(features, votes, num_classes)
    right = labels == true
    result[name] = {
        'accuracy': float(right.mean()), 'ties': float(right[tied].mean()),
        'seconds': round(time.perf_counter() - begin, 2)}
    if accuracy is not None:
      result[name]['annotator_error'] = float(
          np.mean(np.abs(accuracy - known)))
  return result


def _is_tied(votes, num_classes):
  counts = np.sort(_counts(votes, num_classes), axis=1)
  return counts[:, -1] == counts[:, -2]


def _counts(votes, num_classes):
  return np.stack([np.count_nonzero(votes == k, axis=1)
                   for k in range(num_classes)], axis=1)


def _accuracy(votes, posterior):
  return np.array([
      posterior[np.flatnonzero(column >= 0), column[column >= 0]].mean()
      for column in votes.T])


def main() -> None:
  parser = argparse.ArgumentParser(
      prog='python -m benchmarks.consensus', description=__doc__,
      formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument('--cells', default=','.join(CELLS))
  parser.add_argument('--parts', type=int, default=3)
  parser.add_argument('--data_dir')
  parser.add_argument('--results', type=pathlib.Path, default=_RESULTS)
  arguments = parser.parse_args()
  path = arguments.results
  results = (json.loads(path.read_text(encoding='utf-8'))
             if path.exists() else {})
  for cell in arguments.cells.split(','):
    for part in range(arguments.parts):
      name = f'{cell} | {part}'
      if name in results:
        continue
      try:
        results[name] = run(cell, part, arguments.data_dir)
      except data.MissingDataError as error:
        print(f'{cell} is skipped: {error}')
        continue
      print(name, results[name], flush=True)
      files.write_atomically(path, json.dumps(results, indent=1).encode())


if __name__ == '__main__':
  main()

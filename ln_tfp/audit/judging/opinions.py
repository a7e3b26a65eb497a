"""Further opinions, where labels fit a world without noise as well.

Where wrong labels follow from the examples, whoever is flexible enough learns
them, too, and each model learns others. What a few different ones make of a
label whose example they have not seen is averaged, then: the process itself, a
linear one, and the labels of the nearest examples.
"""

import numpy as np

from ln_tfp import process as process_lib

_NEIGHBOURS = 10
_BLOCK = 1_024  # rows whose distances are looked at at a time
# Of more rows, all distances take longer than the rest of an audit.
MOST_ROWS = 10_000


def average(
    x: np.ndarray, classes: np.ndarray, num_classes: int,
    process: process_lib.LogisticNormalProcess,
    probabilities: np.ndarray) -> np.ndarray:
  """Returns probabilities of the true classes, the labels unseen, `[N, K]`.

  Args:
    x: features `[N, F]`.
    classes: integers `[N]`, the labels.
    num_classes: K.
    process: what has been fitted.
    probabilities: `[N, K]`, its own.
  """
  opinions = [probabilities, by_neighbours(x, classes, num_classes)]
  if process.kernel_ != 'linear':
    linear = process_lib.LogisticNormalProcess(kernel='linear').fit(x, classes)
    other = np.zeros_like(probabilities)
    other[:, linear.classes_] = linear.leave_one_out_.probabilities
    opinions.append(other)
  return np.mean(opinions, axis=0)


def by_neighbours(
    x: np.ndarray, classes: np.ndarray, num_classes: int) -> np.ndarray:
  """Returns the shares of the labels of the nearest others, `[N, K]`.

  Features are taken as they are, or standardised, whichever predicts more of
  the labels. Each class is given one vote in all beforehand.
  """
  x = (x - x.mean(axis=0, dtype=np.float64)).astype(np.float32)
  scale = x.std(axis=0)
  best, most = None, -1
  for values in (x, x / np.where(scale > 0, scale, 1.)):
    votes = np.full([len(x), num_classes], 1. / num_classes, np.float32)
    for column in _nearest(values).T:
      votes[np.arange(len(x)), classes[column]] += 1.
    right = np.count_nonzero(votes.argmax(axis=1) == classes)
    if right > most:
      best, most = votes, right
  return best / best.sum(axis=1, keepdims=True)


def _nearest(x):
  """Returns the positions of the nearest other rows, `[N, M]`."""
  num = min(_NEIGHBOURS, len(x) - 1)
  squares = np.einsum('nf,nf->n', x, x)
  found = np.empty([len(x), num], np.int64)
  for start in range(0, len(x), _BLOCK):
    rows = np.arange(start, min(start + _BLOCK, len(x)))
    distance = squares - 2. * x[rows] @ x.T
    distance[np.arange(len(rows)), rows] = np.inf
    found[rows] = np.argpartition(distance, num - 1, axis=1)[:, :num]
  return found

"""The nearest examples of the given and of the suggested class: a reason."""

from typing import NamedTuple

import numpy as np

_BLOCK = 4_096  # members compared at a time


class Neighbours(NamedTuple):
  """Positions of the nearest unsuspected examples, the nearest first."""
  given: tuple[int, ...]
  suggested: tuple[int, ...]


def find(
    features: np.ndarray, given: np.ndarray, suggested: np.ndarray,
    is_issue: np.ndarray, positions: np.ndarray,
    num: int = 2) -> dict[int, Neighbours]:
  """Returns the neighbours of some examples.

  Suspected labels are no neighbours: a reason should not need one itself.

  Args:
    features: `[N, ...]`, compared by their Euclidean distance.
    given: integers `[N]`, the labels.
    suggested: integers `[N]`.
    is_issue: bool `[N]`.
    positions: of the examples in question.
    num: neighbours of each class.
  """
  positions = np.asarray(positions, np.int64)
  both = [_nearest(features, given, is_issue, positions, classes, num)
          for classes in (given[positions], suggested[positions])]
  return {int(i): Neighbours(*pair) for i, *pair in zip(positions, *both)}


def _nearest(features, given, is_issue, positions, classes, num):
  """Returns for each position its neighbours in the class asked for."""
  found = [()] * len(positions)
  for label in np.unique(classes):
    rows = np.flatnonzero(classes == label)
    members = np.flatnonzero((given == label) & ~is_issue)
    queries = _flat(features, positions[rows])
    # The nearest so far; members come in blocks, of which few need to be kept.
    distance = np.full((len(rows), num), np.inf)
    nearest = np.full((len(rows), num), -1)
    for start in range(0, len(members), _BLOCK):
      block = members[start:start + _BLOCK]
      values = _flat(features, block)
      squares = (np.sum(queries**2, axis=1)[:, np.newaxis] +
                 np.sum(values**2, axis=1) - 2. * queries @ values.T)
      squares[positions[rows][:, np.newaxis] == block] = np.inf
      squares = np.concatenate([distance, squares], axis=1)
      candidates = np.concatenate(
          [nearest, np.broadcast_to(block, (len(rows), len(block)))], axis=1)
      order = np.argsort(squares, axis=1, kind='stable')[:, :num]
      distance = np.take_along_axis(squares, order, axis=1)
      nearest = np.take_along_axis(candidates, order, axis=1)
    for row, others, far in zip(rows, nearest, distance):
      found[row] = tuple(int(i) for i, d in zip(others, far) if np.isfinite(d))
  return found


def _flat(features, positions):
  return np.asarray(features[positions], np.float32).reshape(
      len(positions), -1)

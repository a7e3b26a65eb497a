"""The transition matrix of the noise."""

import numpy as np


def estimate(
    true: np.ndarray, given: np.ndarray,
    num_classes: int) -> tuple[np.ndarray, np.ndarray]:
  """Returns P(given | true) `[K, K]`, rows are true classes, and its errors.

  The standard errors are those of the posterior of each share under Jeffreys'
  prior, so that also a confusion that was never seen has one. They tell of the
  size of the classes, not of the audit's own mistakes. A class without examples
  keeps its label.

  Args:
    true: integers `[N]`, the class of each example as far as is known.
    given: integers `[N]`, the labels.
    num_classes: K.
  """
  counts = np.zeros((num_classes, num_classes))
  np.add.at(counts, (true, given), 1)
  return from_counts(counts)


def from_counts(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """The same for (expected) numbers `[K, K]` of examples (true, given)."""
  sizes = counts.sum(axis=1, keepdims=True)
  matrix = np.where(sizes > 0, counts / np.where(sizes > 0, sizes, 1.),
                    np.eye(len(counts)))
  share = (counts + .5) / (sizes + 1.)
  return matrix, np.sqrt(share * (1. - share) / (sizes + 2.))

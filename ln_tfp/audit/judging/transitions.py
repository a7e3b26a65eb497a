"""The transition matrix of the noise, and its rate."""

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


def counted_rate(
    nearest: np.ndarray, probabilities: np.ndarray, own: np.ndarray,
    given: np.ndarray) -> float:
  """Returns the share of labels that confident predictions contradict.

  A prediction is confident of a class if it is at least as sure of it as of
  the average example with that label (the "confident joint" of Northcutt et
  al., 2021). Where a model is unsure of right labels this counts too many, and
  where labels are wrong because examples are ambiguous it does not miss them
  as the noise model does.

  Args:
    nearest: integers `[N, M]`, the likeliest classes.
    probabilities: `[N, M]`, theirs.
    own: `[N]`, the probability of the given class.
    given: integers `[N]`, the labels.
  """
  num_classes = int(max(nearest.max(), given.max())) + 1
  sizes = np.bincount(given, minlength=num_classes)
  bar = np.bincount(given, own, num_classes) / np.maximum(sizes, 1)
  sure = (probabilities >= bar[nearest]) & (sizes[nearest] > 0)
  rows = np.flatnonzero(sure.any(axis=1))
  # The classes are in falling order: the first sure one is the likeliest.
  said = nearest[rows, sure[rows].argmax(axis=1)]
  counted = np.bincount(given[rows], minlength=num_classes)
  wrong = np.bincount(given[rows], said != given[rows], num_classes)
  share = np.where(counted > 0, wrong / np.maximum(counted, 1), 0.)
  return float(np.sum(share * sizes) / max(1, sizes.sum()))


def fits_without_noise(expected: float, counted: float) -> bool:
  """Whether the noise model believes in few of the wrong labels counted."""
  return expected < counted / 5.


def blend(expected: float, counted: float) -> float:
  """Returns the rate to decide by.

  Where wrong labels follow from the examples, a model without noise may explain
  them as well as one with noise, and the noise model then believes in none. If
  it expects less than a fifth of what counting finds, counting has its say: the
  more, the less is expected.

  Args:
    expected: share of wrong labels by the noise model.
    counted: by `counted_rate`.
  """
  if not fits_without_noise(expected, counted):
    return expected
  return expected + (counted - expected) * (1. - 5. * expected / counted)


def describe(expected: float, counted: float) -> str:
  """Says what kind of number the share of wrong labels, `blend`, is."""
  if fits_without_noise(expected, counted):
    return (f'mostly by counting confident contradictions ({100 * counted:.1f} '
            f'%); the noise model expects {100 * expected:.1f} %: labels and '
            'features also fit a world without noise, where classes overlap')
  text = 'expected; a lower bound where people err on ambiguous examples'
  if counted > expected:
    text += f', up to {100 * counted:.1f} % by counting'
  return text

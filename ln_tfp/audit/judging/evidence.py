"""The quality of a label, and the threshold below which it is an issue.

In logit space every class j has its target y_j, the point of a label that is
surely j, and an example its mean mu. The network is trained to bring mu to
the target of the given label g, but it does not follow labels that it
disbelieves: their examples lie near the target of another class. With the
distances d_j = |y_j - mu| (d_g is the norm of the residual),

    ratio   = max over j != g of  w_jg^(1/4) d_g / d_j,
    quality = 1 / (1 + ratio).

Without the weights w, quality 1/2 would mean "as far from the given class as
from the nearest other one". The fourth root is to say how much w counts beside
the distances; it is the one constant here, chosen on digits with symmetric and
asymmetric noise.

The weights say how usual it is that class j gets the label g. Let N_jg be the
number of examples that are nearest to the target of j and have the label g,
and E_jg = n_j r the number to be expected if all confusions were equally
likely (n_j: all examples nearest to j; r: the mean over all pairs). If the true
ratios N / E have a gamma distribution of mean 1 and variance v over the pairs,
their posterior mean given Poisson counts is

    w_jg = (1 + v N_jg) / (1 + v E_jg),

and v is estimated by the moments, v = max(0, sum((N - E)^2 - E) / sum(E^2))
(empirical Bayes). For symmetric noise v is about 0 and all weights about 1; for
a noise that confuses few pairs, an example between two classes that are often
confused is a likelier issue than one between two that never are.

The threshold. As many labels are issues as there are examples that lie nearer
to the target of another class than to that of their label; these are the
examples where the likelihood ratio at equal noise says "wrong". Quality decides
which ones. Without noise there are few, whatever the distribution of quality;
splitting that distribution in two (Otsu's method, mixtures of two) always
finds two parts and raised false alarms by the hundred.
"""

import dataclasses

import numpy as np

# Squares of distances below this are rounding errors of float32.
_TINY = 1e-6


@dataclasses.dataclass(frozen=True, eq=False)
class Evidence:
  """What is to be known of N labels.

  Attributes:
    quality: `[N]`, in [0, 1].
    threshold: labels of lower quality are issues.
    is_issue: `[N]`.
    alternative: int32 `[N]`, the likeliest class but for the given one.
  """
  quality: np.ndarray
  threshold: float
  is_issue: np.ndarray
  alternative: np.ndarray


def squared_distances(
    outputs: np.ndarray, num_classes: int,
    label_smoothing: float) -> np.ndarray:
  """Returns the squared distances of the mean to all targets, `[N, K]`.

  Args:
    outputs: packed outputs `[N, 2 + R, D]`.
    num_classes: K.
    label_smoothing: t of the targets.
  """
  loc = outputs[:, 0].astype(np.float64)
  targets = _targets(loc.shape[1], num_classes, label_smoothing)
  # |y - mu|^2 without an array of N x K x D.
  distances = (np.sum(targets**2, axis=1) - 2. * loc @ targets.T +
               np.sum(loc**2, axis=1, keepdims=True))
  return np.maximum(distances, _TINY)


def plain_ratio(distances: np.ndarray, given: np.ndarray) -> np.ndarray:
  """Returns d_g^2 over the smallest other one: above 1 is suspicious."""
  own, others = _split(distances, given)
  return own / others.min(axis=1)


def weigh(distances: np.ndarray, given: np.ndarray) -> Evidence:
  """Returns quality, issues and alternatives, see the module's text.

  Args:
    distances: squared distances `[N, K]`, positive.
    given: integers `[N]`, the labels.
  """
  own, others = _split(distances, given)
  weights = confusion_weights(
      np.argmin(distances, axis=1), given, distances.shape[1])
  ratios = (weights[:, given].T * (own[:, np.newaxis] / others)**2)**.25
  quality = 1. / (1. + ratios.max(axis=1))
  num_issues = np.count_nonzero(own > others.min(axis=1))
  threshold = 1.
  if num_issues < len(quality):
    threshold = float(np.partition(quality, num_issues)[num_issues])
  return Evidence(
      quality, threshold, quality < threshold,
      ratios.argmax(axis=1).astype(np.int32))


def confusion_weights(
    nearest: np.ndarray, given: np.ndarray, num_classes: int) -> np.ndarray:
  """Returns how usual it is that class j gets the label g, `[K, K]` (j, g).

  The mean is about 1; the diagonal means nothing.
  """
  counts = np.zeros((num_classes, num_classes))
  np.add.at(counts, (nearest, given), 1)
  sizes = counts.sum(axis=1, keepdims=True)
  confusions = ~np.eye(num_classes, dtype=bool)
  rate = counts[confusions].sum() / (sizes.sum() * (num_classes - 1))
  if not rate:
    return np.ones_like(counts)
  expected = np.broadcast_to(sizes * rate, counts.shape)
  excess = ((counts - expected)**2 - expected)[confusions].sum()
  variance = max(0., excess / (expected[confusions]**2).sum())
  return (1. + variance * counts) / (1. + variance * expected)


def _split(distances, given):
  """Returns the distance to the given target and, else, those to others."""
  rows = np.arange(len(given))
  others = distances.copy()
  others[rows, given] = np.inf
  return distances[rows, given], others


def _targets(dims, num_classes, label_smoothing):
  """Returns the logits of all smoothed labels at temperature 1, `[K, D]`."""
  smoothed = ((1. - label_smoothing) * np.eye(num_classes, dims + 1) +
              label_smoothing / (dims + 1))
  return np.log(smoothed[:, :-1]) - np.log(smoothed[:, -1:])

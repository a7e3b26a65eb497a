"""Which features: linear, or those of a kernel."""

from typing import Any

import numpy as np
from scipy import linalg
from scipy import special

from ln_tfp.process import features as features_lib
from ln_tfp.process import noise_model
from ln_tfp.process import ridge
from ln_tfp.process import votes as votes_lib

# Rows that 'auto' picks an RBF by, and those it is compared on with the linear
# kernel.
_FEW, _MANY = 500, 1_000
# With fewer rows for each class, or more classes than these rows suffice for,
# nothing is compared.
_MIN_ROWS, _MOST_CLASSES = 5, 50
# How much more an RBF must tell (see `_gain`) to be compared on many rows, and
# to be taken: the linear kernel is faster, and gains more from further rows.
_HINT, _MARGIN = .03, .08
# Lengths of the RBF kernel that it tries, in median distances.
_LENGTHS = (.5, 1.)


def num_rows(num_inducing: int) -> int:
  """How many rows `choose` has a use for."""
  return max(2 * num_inducing, _MANY, features_lib.SOME)


def choose(
    kernel: Any, x: np.ndarray, votes: votes_lib.Votes, total: int,
    num_inducing: int, length_scale: float) -> features_lib.FeatureMap:
  """Returns a feature map.

  Args:
    kernel: 'linear', 'rbf', 'auto' or a kernel of TFP.
    x: some rows `[n, F]`, in random order.
    votes: their labels.
    total: how many there are in all.
    num_inducing: inducing points, where there are more than twice as many rows.
    length_scale: of 'rbf', in median distances.
  """
  if isinstance(kernel, str):
    kernel = {
        'auto': lambda: best_kernel(x[:_MANY], votes[:_MANY]),
        'rbf': lambda: features_lib.RBF(x, length_scale, scaled=False),
        'linear': lambda: None}[kernel]()
  else:
    kernel = features_lib.TFP(kernel)
  if kernel is None:
    return features_lib.Linear(x)
  exact = total == len(x) <= 2 * num_inducing
  return features_lib.Nystrom(kernel, x if exact else x[:num_inducing])


def best_kernel(
    x: np.ndarray, votes: votes_lib.Votes) -> features_lib.RBF | None:
  """The RBF kernel that tells more of the labels; `None` is linear.

  The squared error picks the RBF. It does not compare it with the linear
  kernel: wrong labels add the same to both, and hide how they differ.
  """
  if len(x) < _MIN_ROWS * votes.num_classes or (
      votes.num_classes > _MOST_CLASSES):
    return None
  x = x.astype(np.float64)
  few = slice(_FEW)
  kernel, loc = _best_rbf(x[few], votes[few])
  if len(x) > _FEW:
    if _gain(loc, _linear(x[few], votes[few]), votes[few], False) < _HINT:
      return None
    loc = leave_one_out(kernel(x, x), votes.targets())
  linear = _linear(x, votes)
  better = (_gain(loc, linear, votes, False) > _MARGIN
            and _gain(loc, linear, votes, True) > 0.)
  return kernel if better else None


def _best_rbf(x, votes):
  """The RBF kernel of least leave-one-out error, and its means `[n, K]`."""
  targets = votes.targets()
  trials = []
  for scaled in (False, True):
    unit = features_lib.RBF(x, 1., scaled)
    squares = unit.squares(x, x)
    for length in _LENGTHS:
      kernel = unit.times(length)
      loc = leave_one_out(kernel.of_squares(squares.copy()), targets)
      trials.append((np.mean((loc - targets)**2), kernel, loc))
  return min(trials, key=lambda trial: trial[0])[1:]


def _linear(x, votes):
  """Leave-one-out means of the linear kernel, `[n, K]`."""
  shift, scale = features_lib.location_and_scale(x)
  standard = (x - shift) / scale
  return leave_one_out(standard @ standard.T, votes.targets())


def _gain(loc, linear, votes, learn_noise):
  """How much more means tell of the labels than those of the linear kernel.

  In nats beyond constant shares of the classes; as a share of what the linear
  kernel tells or of what it leaves open, whichever is less.

  Args:
    loc: means `[n, K]`, each without its own row.
    linear: those of the linear kernel.
    votes: the labels.
    learn_noise: whether labels may be wrong.
  """
  if not learn_noise:
    votes = votes.as_certain()
  reached, known = (
      np.sum(noise_model.fit(each, votes, np.ones(len(each)), learn_noise)
             .log_likelihood(each, votes)) for each in (loc, linear))
  targets = votes.targets()
  constant = np.sum(special.xlogy(targets, targets.mean(axis=0)))
  return (reached - known) / max(min(known - constant, -known), 1e-9)


def leave_one_out(kernel: np.ndarray, targets: np.ndarray) -> np.ndarray:
  """Leave-one-out means of the exact process at its best noise, `[n, K]`.

  With the centred kernel U diag(e) U^T and c = a / (e + a), the residual of the
  ordinary fit is U diag(c) U^T (y - ybar), and 1 - h its diagonal without the
  mean's 1 / n: both stay exact where the fit nearly interpolates.

  Args:
    kernel: `[n, n]`.
    targets: `[n, K]`.
  """
  centred = kernel - kernel.mean(axis=0)
  centred -= centred.mean(axis=1, keepdims=True)
  values, vectors = linalg.eigh(centred, driver='evd', overwrite_a=True)
  values = np.maximum(values, 0.)
  rotated = vectors.T @ (targets - targets.mean(axis=0))
  grid = ridge.GRID * (values.mean() or 1.)
  lost = grid / (values[:, np.newaxis] + grid)
  rest = np.maximum(vectors**2 @ lost - 1. / len(kernel), 1e-12)
  residual = np.tensordot(
      vectors, lost[:, :, np.newaxis] * rotated[:, np.newaxis], 1)
  residual /= rest[:, :, np.newaxis]
  best = np.argmin(np.mean(residual**2, axis=(0, 2)))
  return targets - residual[:, best]

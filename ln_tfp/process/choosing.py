"""Which features: linear, or those of a kernel."""

from typing import Any

import numpy as np
from scipy import linalg

from ln_tfp.process import features as features_lib
from ln_tfp.process import ridge

# Rows that 'auto' decides by.
_ROWS = 500
# A kernel must be so much better than the linear one, which is faster and
# gains more from further rows.
_MARGIN = .95
# Lengths of the RBF kernel that it tries, in median distances.
_LENGTHS = (.5, 1.)


def num_rows(num_inducing: int) -> int:
  """How many rows `choose` has a use for."""
  return max(2 * num_inducing, _ROWS, features_lib.SOME)


def choose(
    kernel: Any, x: np.ndarray, targets: np.ndarray, total: int,
    num_inducing: int, length_scale: float) -> features_lib.FeatureMap:
  """Returns a feature map.

  Args:
    kernel: 'linear', 'rbf', 'auto' or a kernel of TFP.
    x: some rows `[n, F]`, in random order.
    targets: their targets `[n, K]`.
    total: how many there are in all.
    num_inducing: inducing points, where there are more than twice as many rows.
    length_scale: of 'rbf', in median distances.
  """
  if isinstance(kernel, str):
    kernel = {
        'auto': lambda: best_kernel(x[:_ROWS], targets[:_ROWS]),
        'rbf': lambda: features_lib.RBF(x, length_scale, scaled=False),
        'linear': lambda: None}[kernel]()
  else:
    kernel = features_lib.TFP(kernel)
  if kernel is None:
    return features_lib.Linear(x)
  exact = total == len(x) <= 2 * num_inducing
  return features_lib.Nystrom(kernel, x if exact else x[:num_inducing])


def best_kernel(x: np.ndarray, targets: np.ndarray) -> features_lib.RBF | None:
  """The RBF kernel of least leave-one-out error; `None` is linear."""
  x = x.astype(np.float64)
  shift, scale = features_lib.location_and_scale(x)
  standard = (x - shift) / scale
  best, least = None, _MARGIN * loo_error(standard @ standard.T, targets)
  for scaled in (False, True):
    unit = features_lib.RBF(x, 1., scaled)
    squares = unit.squares(x, x)
    for length in _LENGTHS:
      kernel = unit.times(length)
      error = loo_error(kernel.of_squares(squares.copy()), targets)
      if error < least:
        best, least = kernel, error
  return best


def loo_error(kernel: np.ndarray, targets: np.ndarray) -> float:
  """Least squared leave-one-out error of the exact process over its noise.

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
  return np.mean(
      (residual / rest[:, :, np.newaxis])**2, axis=(0, 2)).min()

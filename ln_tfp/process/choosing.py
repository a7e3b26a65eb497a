"""Which features: linear, or those of a kernel."""

from typing import Any

import numpy as np
from scipy import linalg

from ln_tfp.process import features as features_lib
from ln_tfp.process import ridge

# Rows that 'auto' decides by.
_ROWS = 1_000
# A kernel must be so much better than the linear one, which is faster and
# gains more from further rows.
_MARGIN = .98


def choose(
    kernel: Any, x: np.ndarray, targets: np.ndarray, num_rows: int,
    num_inducing: int, length_scale: float) -> features_lib.FeatureMap:
  """Returns a feature map.

  Args:
    kernel: 'linear', 'rbf', 'auto' or a kernel of TFP.
    x: some rows `[n, F]`, in random order.
    targets: their targets `[n, K]`.
    num_rows: how many there are in all.
    num_inducing: inducing points, where there are more than twice as many rows.
    length_scale: of 'rbf', in median distances.
  """
  exact = num_rows == len(x) <= 2 * num_inducing
  points = x if exact else x[:num_inducing]
  if kernel == 'auto':
    settings = _best(x[:_ROWS], targets[:_ROWS])
  else:
    settings = (length_scale, False) if kernel == 'rbf' else None
  if settings:
    return features_lib.RBF(points, *settings)
  if isinstance(kernel, str):
    return features_lib.Linear(x)
  return features_lib.TFP(points, kernel)


def _best(x, targets):
  """The setting of the RBF kernel of least error; `None` for linear."""
  x = x.astype(np.float64)
  shift, scale = features_lib.location_and_scale(x)
  standard = (x - shift) / scale
  best, least = None, _MARGIN * loo_error(standard @ standard.T, targets)
  for length in features_lib.LENGTHS:
    for scaled in (False, True):
      error = loo_error(
          features_lib.RBF(x, length, scaled).kernel(x), targets)
      if error < least:
        best, least = (length, scaled), error
  return best


def loo_error(kernel: np.ndarray, targets: np.ndarray) -> float:
  """Least squared leave-one-out error of the exact process over its noise.

  With the centred kernel U diag(e) U^T, mu = ybar + U diag(e / (e + a)) U^T y.

  Args:
    kernel: `[n, n]`.
    targets: `[n, K]`.
  """
  centred = kernel - kernel.mean(axis=0)
  centred -= centred.mean(axis=1, keepdims=True)
  values, vectors = linalg.eigh(centred, driver='evd', overwrite_a=True)
  values = np.maximum(values, 0.)
  mean = targets.mean(axis=0)
  rotated = vectors.T @ (targets - mean)
  squares = vectors**2
  errors = []
  for a in ridge.GRID * (values.mean() or 1.):
    kept = values / (values + a)
    h = np.minimum(1. / len(kernel) + squares @ kept, 1. - 1e-6)
    residual = targets - mean - vectors @ (kept[:, np.newaxis] * rotated)
    errors.append(np.mean((residual / (1. - h)[:, np.newaxis])**2))
  return min(errors)

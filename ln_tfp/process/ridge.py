"""Bayesian linear regression whose leave-one-out predictions are exact.

With features z_i, targets y_i, weights w_i (the noise of row i has the variance
sigma^2 / w_i) and a flat prior on the intercept, let m and ybar be the weighted
means, W = sum(w), and with scales s (standard deviations, or ones)

    sum_i w_i x_i x_i^T = V diag(e) V^T,   x_i = (z_i - m) / s,   P = X V.

For the regularisation a, d = 1 / (e + a):

    mu     = ybar + P diag(d) P^T w (Y - ybar)
    h_i    = w_i (1 / W + sum_f P_if^2 d_f)               leverage
    mu_loo = (mu - h y) / (1 - h)                         without row i, exactly

One eigendecomposition serves every a and every target, all classes among them.
"""

import dataclasses
import math

import numpy as np
from scipy import linalg

# The regularisations tried, in units of the mean eigenvalue.
GRID = 10. ** np.arange(-6., 3.1, .5)
_MAX_LEVERAGE = 1. - 1e-7
# The smallest 1 - h that a row is left out at: below, rounding decides.
_MIN_REST = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 3e-4}
_ROWS = 4_096  # at a time in the eigenbasis


class Cross:
  """Sums of targets, and of features times targets, over rows."""

  def __init__(self, num_features: int, num_classes: int = 0):
    self.features = np.zeros([num_features, num_classes])
    self.targets = np.zeros(num_classes)
    self.squares = np.zeros(num_classes)

  def add(self, z: np.ndarray, y: np.ndarray, weight: np.ndarray) -> None:
    """Adds rows `[n, F]`, their targets `[n, K]` and weights `[n]`."""
    new = y.shape[1] - len(self.targets)
    if new > 0:  # classes that were not seen before
      self.features = np.pad(self.features, [(0, 0), (0, new)])
      self.targets = np.pad(self.targets, (0, new))
      self.squares = np.pad(self.squares, (0, new))
    weighted = y * weight[:, np.newaxis]
    self.features += z.T @ weighted
    self.targets += weighted.sum(axis=0, dtype=np.float64)
    self.squares += (weighted * y).sum(axis=0, dtype=np.float64)

  def reorder(self, order: np.ndarray) -> 'Cross':
    """Returns the sums with the classes in this order."""
    result = Cross(len(self.features))
    result.features = self.features[:, order]
    result.targets = self.targets[order]
    result.squares = self.squares[order]
    return result


class Moments:
  """Sums over rows: all that a fit needs to know of the features."""

  def __init__(self, num_features: int):
    self.rows = 0
    self.weight = 0.
    self.log_weight = 0.
    self.sum = np.zeros(num_features)
    self.gram = np.zeros([num_features, num_features])

  def add(self, z: np.ndarray, weight: np.ndarray) -> None:
    """Adds rows `[n, F]` of weights `[n]`."""
    used = weight[weight > 0]
    self.rows += len(used)
    self.weight += used.sum(dtype=np.float64)
    self.log_weight += np.log(used).sum(dtype=np.float64)
    self.sum += z.T @ weight
    root = z if np.all(weight == 1) else z * np.sqrt(weight)[:, np.newaxis]
    self.gram += root.T @ root


@dataclasses.dataclass(frozen=True, eq=False)
class Spectrum:
  """The eigendecomposition of centred and scaled features.

  Attributes:
    rows: number of rows of positive weight.
    weight: W, the sum of the weights.
    log_weight: sum of their logarithms.
    mean: `[F]`.
    basis: `diag(1 / s) V`, `[F, r]`.
    eigenvalues: `[r]`.
  """
  rows: int
  weight: float
  log_weight: float
  mean: np.ndarray
  basis: np.ndarray
  eigenvalues: np.ndarray

  @classmethod
  def of(cls, moments: Moments, standardize: bool) -> 'Spectrum':
    """Decomposes; constant features take no part."""
    mean = moments.sum / moments.weight
    gram = moments.gram - moments.weight * np.outer(mean, mean)
    variance = np.maximum(np.diag(gram), 0.) / moments.weight
    varies = variance > 1e-10 * (np.diag(moments.gram) / moments.weight)
    scale = np.where(varies, np.sqrt(variance) if standardize else 1., np.inf)
    eigenvalues, vectors = _decompose(
        gram / scale[:, np.newaxis] / scale, moments.rows)
    return cls(moments.rows, moments.weight, moments.log_weight, mean,
               vectors / scale[:, np.newaxis], np.maximum(eigenvalues, 0.))

  @property
  def grid(self) -> np.ndarray:
    """Regularisations to choose from."""
    mean = self.eigenvalues.sum() / max(len(self.mean), 1)
    return GRID * (mean or 1.)

  def project(self, z: np.ndarray) -> np.ndarray:
    """P, the rows in the eigenbasis, `[n, r]`."""
    return (z - self.mean.astype(z.dtype)) @ self.basis.astype(z.dtype)

  def spread(self, z: np.ndarray, a: float) -> np.ndarray:
    """Variance of the mean at rows `[n, F]`, over sigma^2, `[n]`, float64."""
    return np.concatenate([
        self._spread(self.project(z[rows]), a) for rows in _slices(len(z))])

  def _spread(self, projected, a):
    projected = projected * np.sqrt(1. / (self.eigenvalues + a)).astype(
        projected.dtype)
    return 1. / self.weight + np.einsum(
        'nf,nf->n', projected, projected).astype(np.float64)

  def _spreads(self, projected, grid):
    """The same for several regularisations, `[n, A]`."""
    shrinkage = 1. / (self.eigenvalues[:, np.newaxis] + grid)
    return 1. / self.weight + (
        projected**2 @ shrinkage.astype(projected.dtype)).astype(np.float64)

  def rotate(self, cross: Cross) -> np.ndarray:
    """P^T w (Y - ybar), `[r, K]`."""
    return self.basis.T @ (
        cross.features - np.outer(self.mean, cross.targets))

  def solve(
      self, cross: Cross, a: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns coefficients `[F, K]` and intercept `[K]`: mu = z c + c0."""
    rotated = self.rotate(cross) / (self.eigenvalues + a)[:, np.newaxis]
    coefficients = self.basis @ rotated
    return (coefficients,
            cross.targets / self.weight - self.mean @ coefficients)

  def log_marginal_likelihood(
      self, cross: Cross, a: float, variance: float) -> float:
    """log p(Y), a sum over classes, the flat intercept integrated out."""
    rotated = self.rotate(cross)
    explained = np.sum(
        rotated**2 / (self.eigenvalues + a)[:, np.newaxis], axis=0)
    total = cross.squares - cross.targets**2 / self.weight
    log_det = (np.sum(np.log1p(self.eigenvalues / a)) + math.log(self.weight)
               - self.log_weight
               + (self.rows - 1) * math.log(2. * math.pi * variance))
    return float(np.sum(-.5 * (log_det + (total - explained) / variance)))


def _decompose(gram, rows):
  """Eigenvalues and -vectors of a matrix of rank below `rows`, but for zeros.

  Few rows of many features: Cholesky's factor is narrow, and its singular
  vectors are cheaper than eigenvectors of the whole.
  """
  if 2 * rows > len(gram):
    return linalg.eigh(
        gram, driver='evd', overwrite_a=True, check_finite=False)
  factor, order, rank, _ = linalg.lapack.dpstrf(
      gram, lower=1, tol=1e-10 * np.diag(gram).max())
  narrow = np.empty([len(gram), min(rank, rows)])
  narrow[order - 1] = np.tril(factor)[:, :narrow.shape[1]]
  vectors, singular, _ = linalg.svd(narrow, full_matrices=False)
  return singular**2, vectors


def leverage(spread: np.ndarray, weight: np.ndarray) -> np.ndarray:
  """h, the share of a row's own target in its prediction, `[n]`."""
  return np.minimum(spread * weight, _MAX_LEVERAGE)


def leave_out(
    mean: np.ndarray, target: np.ndarray, leverages: np.ndarray) -> np.ndarray:
  """mu_loo `[n, K]` from mu, the targets and the leverages `[n]`.

  A fit that interpolates a row says nothing about it: without its own target
  all classes are alike.
  """
  h = leverages.astype(mean.dtype)[:, np.newaxis]
  one_minus_h = (1. - leverages).astype(mean.dtype)[:, np.newaxis]
  result = (mean - h * target) / one_minus_h
  result[1. - leverages < _MIN_REST[mean.dtype]] = 1. / mean.shape[1]
  return result


@dataclasses.dataclass(frozen=True)
class Choice:
  """A regularisation and how well it predicts rows that are left out.

  Attributes:
    regularization: a.
    error: mean over rows and classes of the squared residual.
    variance: sigma^2, mean of (1 - h) times the squared residual.
    leverages: of the rows that were judged, `[n]`.
  """
  regularization: float
  error: float
  variance: float
  leverages: np.ndarray


def choose(
    spectrum: Spectrum, cross: Cross, z: np.ndarray, target: np.ndarray,
    weight: np.ndarray, regularization: float | None = None) -> Choice:
  """Returns the regularisation of least leave-one-out error.

  One at which most rows are interpolated, so that nothing is known of them,
  is not chosen: that all classes are alike may be the better guess by luck.

  Args:
    spectrum: of all rows.
    cross: of all rows.
    z: the rows that are judged, `[n, F]`.
    target: their targets `[n, K]`.
    weight: their weights `[n]`.
    regularization: the only one to try; `None` tries `spectrum.grid`.
  """
  rotated = spectrum.rotate(cross)
  mean = (cross.targets / spectrum.weight).astype(z.dtype)
  grid = (spectrum.grid if regularization is None
          else np.array([regularization]))
  damped = np.concatenate([  # [F, A K]: one product for all of the grid
      (rotated / (spectrum.eigenvalues + a)[:, np.newaxis]).astype(z.dtype)
      for a in grid], axis=1)
  sums = np.zeros([len(grid), 2])
  leverages = np.empty([len(grid), len(z)])
  for rows in _slices(len(z), damped.shape[1]):
    projected = spectrum.project(z[rows])
    means = np.split(projected @ damped, len(grid), axis=1)
    leverages[:, rows] = leverage(
        spectrum._spreads(projected, grid), weight[rows, np.newaxis]).T
    for number, h in enumerate(leverages[:, rows]):
      residual = target[rows] - leave_out(
          mean + means[number], target[rows], h)
      square = weight[rows] * np.einsum('nk,nk->n', residual, residual)
      sums[number] += square.sum(), np.sum((1. - h) * square)
  errors, variances = sums.T / (target.shape[1] * weight.sum())
  unknown = np.mean(1. - leverages < _MIN_REST[z.dtype], axis=1) > .5
  ranked = np.where(unknown, np.inf, errors)
  best = len(grid) - 1 - int(np.argmin(ranked[::-1]))  # of equals, the largest
  return Choice(float(grid[best]), float(errors[best]),
                max(float(variances[best]), 1e-12), leverages[best].copy())


def _slices(size, width=0):
  """Slices of rows, of at most 2^22 numbers of this width."""
  step = min(_ROWS, max(1, 2**22 // max(width, 1)))
  return [slice(i, i + step) for i in range(0, max(size, 1), step)]

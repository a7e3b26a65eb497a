"""Feature maps: what the linear model of `ridge` is linear in.

A kernel k becomes features by Nystrom's method: with inducing points Z and
Cholesky's k(Z, Z) = L L^T, the features k(x, Z) L^-T have the inner products of
the kernel, exactly where x is among Z. All rows as inducing points are the
exact Gaussian process. Pivoting leaves out points that others imply.
"""

import abc
from collections.abc import Callable
import copy
from typing import Any

import numpy as np
from scipy import linalg

SOME = 1_000  # rows to take scales from

Kernel = Callable[[np.ndarray, np.ndarray], np.ndarray]


class FeatureMap(abc.ABC):
  """Maps `[n, F]` to `[n, D]`.

  Attributes:
    standardize: whether features are to have one scale in the regression.
    num_features: D.
  """
  standardize: bool
  num_features: int

  @abc.abstractmethod
  def __call__(self, x: np.ndarray) -> np.ndarray:
    """Returns the features, in the precision of `x`."""


class Linear(FeatureMap):
  """The inputs themselves, standardised.

  The regression centres and scales by the statistics of all rows. Here they
  are shifted and scaled by those of some rows, so that float32 suffices.
  """
  standardize = True

  def __init__(self, sample: np.ndarray):
    self.num_features = sample.shape[1]
    self.shift, self.scale = location_and_scale(sample[:SOME])

  def __call__(self, x: np.ndarray) -> np.ndarray:
    z = x - self.shift.astype(x.dtype)
    z *= (1. / self.scale).astype(x.dtype)
    return z


class Nystrom(FeatureMap):
  """Features of a kernel.

  Attributes:
    kernel: maps `[n, F]` and `[M, F]` to `[n, M]`.
    points: Z, those of the points given that the others do not imply.
    whiten: L^-T, `[D, D]`.
  """
  standardize = False

  def __init__(self, kernel: Kernel, points: np.ndarray):
    self.kernel = kernel
    matrix = np.asarray(kernel(points, points), np.float64)
    factor, order, rank, _ = linalg.lapack.dpstrf(
        matrix, lower=1, tol=_smallest(points.dtype) * np.trace(matrix))
    self.points = points[order[:rank] - 1]
    self.whiten = linalg.solve_triangular(
        factor[:rank, :rank], np.eye(rank), lower=True).T
    self.num_features = rank

  def __call__(self, x: np.ndarray) -> np.ndarray:
    matrix = self.kernel(x, self.points.astype(x.dtype))
    return np.asarray(matrix, x.dtype) @ self.whiten.astype(x.dtype)


class RBF:
  """exp(-|x - z|^2 / (2 length^2)).

  Args:
    sample: inputs `[n, F]` to take the scales from.
    length: in median distances of the sample.
    scaled: whether inputs are standardised, not only centred.
  """

  def __init__(self, sample: np.ndarray, length: float, scaled: bool):
    self.shift, self.scale = location_and_scale(sample)
    if not scaled:
      self.scale = np.ones_like(self.scale)
    some = sample[:SOME].astype(np.float64)
    squares = self.squares(some, some)[np.triu_indices(len(some), 1)]
    median = float(np.median(squares)) if squares.size else 0.
    # Most rows may be equal, but for rounding.
    if median <= 1e-12 * (squares.mean() if squares.size else 0.):
      median = 1.
    self.length = length * float(np.sqrt(median))

  def times(self, length: float) -> 'RBF':
    """The kernel of so many times the length."""
    result = copy.copy(self)
    result.length = length * self.length
    return result

  def _normalize(self, x):
    return (x - self.shift.astype(x.dtype)) / self.scale.astype(x.dtype)

  def squares(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """|x - z|^2 of normalised inputs `[n, F]` and `[M, F]`, `[n, M]`."""
    x, z = self._normalize(x), self._normalize(z)
    squares = x @ (-2. * z.T)
    squares += np.einsum('nf,nf->n', x, x)[:, np.newaxis]
    squares += np.einsum('mf,mf->m', z, z)
    return np.maximum(squares, 0., out=squares)

  def of_squares(self, squares: np.ndarray) -> np.ndarray:
    """The kernel of squared distances, which it overwrites."""
    squares *= squares.dtype.type(-.5 / self.length**2)
    return np.exp(squares, out=squares)

  def __call__(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    return self.of_squares(self.squares(x, z))


class TFP:
  """A kernel of `tfp.math.psd_kernels`, of the inputs as they are."""

  def __init__(self, kernel: Any):
    self._kernel = kernel

  def __call__(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    dtype = self._kernel.dtype or x.dtype
    dtype = getattr(dtype, 'as_numpy_dtype', dtype)
    return np.asarray(self._kernel.matrix(x.astype(dtype), z.astype(dtype)))


def location_and_scale(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Mean and standard deviation of the columns; one where that is zero."""
  mean = x.mean(axis=0, dtype=np.float64)
  scale = x.std(axis=0, dtype=np.float64)
  constant = scale <= 1e-6 * np.maximum(np.abs(mean), 1e-30)
  return mean, np.where(constant, 1., scale)


def _smallest(dtype):
  """Pivots below this share of the trace are rounding errors."""
  return 1e-14 if dtype == np.float64 else 1e-8

"""Feature maps: what the linear model of `ridge` is linear in.

A kernel k becomes features by Nystrom's method: with inducing points Z and
k(Z, Z) = U diag(l) U^T, the features k(x, Z) U diag(l^-1/2) have the inner
products of the kernel, exactly where x is among Z. All rows as inducing points
are the exact Gaussian process.
"""

import abc
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import linalg
from scipy.spatial import distance

# Lengths of the RBF kernel that 'auto' tries, in median distances.
LENGTHS = (.5, 1.)


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
    self.shift, self.scale = location_and_scale(sample)

  def __call__(self, x: np.ndarray) -> np.ndarray:
    return (x - self.shift.astype(x.dtype)) / self.scale.astype(x.dtype)


class Nystrom(FeatureMap):
  """Features of a kernel.

  Attributes:
    points: Z, `[M, F]`.
    whiten: U diag(l^-1/2), `[M, D]`.
  """
  standardize = False

  def __init__(self, points: np.ndarray):
    self.points = points
    matrix = np.asarray(self.kernel(points), np.float64)
    values, vectors = linalg.eigh(matrix, driver='evd')
    kept = values > values.max() * _smallest(points.dtype)
    self.whiten = vectors[:, kept] / np.sqrt(values[kept])
    self.num_features = self.whiten.shape[1]

  @abc.abstractmethod
  def kernel(self, x: np.ndarray) -> np.ndarray:
    """k(x, Z), `[n, M]`."""

  def __call__(self, x: np.ndarray) -> np.ndarray:
    matrix = np.asarray(self.kernel(x), x.dtype)
    return matrix @ self.whiten.astype(x.dtype)


class RBF(Nystrom):
  """exp(-|x - z|^2 / (2 length^2)).

  Args:
    points: inputs `[M, F]`.
    length: in median distances of the points.
    scaled: whether inputs are standardised, not only centred.
  """

  def __init__(self, points: np.ndarray, length: float, scaled: bool):
    self.shift, self.scale = location_and_scale(points)
    if not scaled:
      self.scale = np.ones_like(self.scale)
    self._inputs = self._normalize(points)
    some = self._inputs[:1_000].astype(np.float64)
    distances = distance.pdist(some, 'sqeuclidean')
    median = float(np.median(distances)) if distances.size else 0.
    self.length = length * np.sqrt(median or 1.)
    super().__init__(points)

  def _normalize(self, x):
    return (x - self.shift.astype(x.dtype)) / self.scale.astype(x.dtype)

  def kernel(self, x: np.ndarray) -> np.ndarray:
    x = self._normalize(x)
    z = self._inputs.astype(x.dtype)
    squares = x @ (-2. * z.T)
    squares += np.einsum('nf,nf->n', x, x)[:, np.newaxis]
    squares += np.einsum('mf,mf->m', z, z)
    np.maximum(squares, 0., out=squares)
    squares *= x.dtype.type(-.5 / self.length**2)
    return np.exp(squares, out=squares)


class TFP(Nystrom):
  """A kernel of `tfp.math.psd_kernels`, of the inputs as they are."""

  def __init__(self, points: np.ndarray, kernel: Any):
    self._kernel = kernel
    super().__init__(points)

  def kernel(self, x: np.ndarray) -> np.ndarray:
    dtype = x.dtype
    if self._kernel.dtype is not None:
      dtype = np.dtype(getattr(
          self._kernel.dtype, 'as_numpy_dtype', self._kernel.dtype))
    return np.asarray(self._kernel.matrix(
        x.astype(dtype), self.points.astype(dtype)))


def candidates(sample: np.ndarray) -> Iterator[tuple[str, tuple]]:
  """What 'auto' chooses from, simplest first: names and settings."""
  yield 'linear', ()
  for length in LENGTHS:
    for scaled in (False, True):
      yield 'rbf', (length, scaled)


def location_and_scale(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Mean and standard deviation of the columns; one where that is zero."""
  mean = x.mean(axis=0, dtype=np.float64)
  scale = x.std(axis=0, dtype=np.float64)
  constant = scale <= 1e-6 * np.maximum(np.abs(mean), 1e-30)
  return mean, np.where(constant, 1., scale)


def _smallest(dtype):
  """Eigenvalues below this share of the largest are rounding errors."""
  return 1e-12 if dtype == np.float64 else 1e-7

"""The normal density with a low-rank scale, without any `D x D` matrix.

The scale of the noise in logit space is `S = D + V V^T` with `D = diag(d)`, its
covariance `Sigma = S S^T` (the paper's Eq. 9, for any rank R). What is needed
of it follows from the small matrix `M = I + V^T D^-1 V`, `R x R`:

    S^-1 x     = D^-1 (x - V M^-1 V^T D^-1 x)         (Woodbury)
    V^T S^-1 x = M^-1 V^T D^-1 x
    S^-1 V     = D^-1 V M^-1
    log|S|     = log|D| + log|M|                      (determinant lemma)

Throughout, `diag` is `d`, of shape `[..., D]`, and `factor` holds the columns
of `V` as rows, `[..., R, D]`; it is `None` where there is no factor. `energy`
takes the columns one by one, for the sake of rank 1: it is part of every
training step, where each operation counts.

Nearly collinear columns of size v give M a condition number of about D v^2 / d,
which leaves float32 nothing from v = 100 on. Therefore M and its inverse are
float64 whatever the dtype of the arguments. What is as long as D keeps their
dtype: an error there is as small as that of the residual and the columns.

Where there is no float64 (JAX without `jax_enable_x64`), the columns are first
made nearly orthogonal: with any triangular T, `P = T M T^T` is the small matrix
of the rows `T V^T D^-1/2`, and a T that is the inverse of M's Cholesky factor,
as well as float32 knows it, makes P as harmless as the identity.
"""

from typing import Any

import keras
from keras import ops
import numpy as np

Tensor = Any  # of the Keras backend


def energy(residual: Tensor, diag: Tensor,
           *columns: Tensor) -> Tensor:
  """Returns `0.5 r^T Sigma^-1 r + log|S|`, one example's term of Eq. 5.

  It is all of the likelihood that depends on the parameters. The log density
  of the distribution and the loss both call it, and its gradient is in closed
  form: with `w = S^-1 r`, `g = S^-1 w` and `dS = diag(dd) + dV V^T + V dV^T`,

      d(energy) = g^T dr - g^T dS w + tr(S^-1 dS).

  Args:
    residual: `r`, float tensor of shape `[..., D]`.
    diag: `d`, positive float tensor of the same shape.
    *columns: those of `V`, float tensors of the same shape; none for a diagonal
      scale.

  Returns:
    Float tensor of shape `[...]`.
  """
  if not columns:
    return 0.5 * squared_norm(residual / diag) + log_det(diag)
  if len(columns) == 1:
    return _rank_one_energy(residual, diag, *columns)
  return _low_rank_energy(residual, diag, *columns)


def whiten(residual: Tensor, diag: Tensor,
           factor: Tensor | None = None) -> Tensor:
  """Returns `S^-1 r`."""
  if factor is None:
    return residual / diag
  return _of_factor(diag, factor).solve(residual)[0]


def log_det(diag: Tensor, factor: Tensor | None = None) -> Tensor:
  """Returns `log|S|`."""
  log_det_diag = ops.sum(ops.log(diag), axis=-1)
  if factor is None:
    return log_det_diag
  return log_det_diag + _of_factor(diag, factor).log_det


def inverse_times_factor(diag: Tensor, factor: Tensor) -> Tensor:
  """Returns the columns of `S^-1 V` as rows, `[..., R, D]`."""
  system = _of_factor(diag, factor)
  return system.root[..., None, :] * system.inverse_times_scaled()


def squared_norm(x: Tensor) -> Tensor:
  """Returns `x^T x` over the last axis."""
  return ops.sum(ops.square(x), axis=-1)


@ops.custom_gradient
def _rank_one_energy(residual, diag, column):
  """`energy` at rank 1, where the small matrix is a number: Eq. 9."""
  inverse = ops.reciprocal(diag)
  scaled = column * inverse
  m = 1. + _dot(column, scaled)
  z = _dot(scaled, residual) / m
  white = (residual - column * z) * inverse
  value = (ops.sum(0.5 * ops.square(white) + ops.log(diag), axis=-1) +
           ops.log(ops.squeeze(m, axis=-1)))

  def gradient(*given, upstream=None):
    upstream = _upstream(given, upstream)
    y = _dot(scaled, white) / m
    g = white * inverse - scaled * y
    solved = scaled / m
    return (upstream * g,
            upstream * (inverse - scaled * solved - g * white),
            upstream * (2. * solved - g * z - white * y))

  return value, gradient


@ops.custom_gradient
def _low_rank_energy(residual, diag, *columns):
  """`energy` at any rank."""
  root = ops.rsqrt(diag)
  rows = [column * root for column in columns]
  system = _SmallSystem(root, ops.stack(rows, axis=-2))
  white, z = system.solve(residual)
  value = (ops.sum(0.5 * ops.square(white) + ops.log(diag), axis=-1) +
           system.log_det)

  def gradient(*given, upstream=None):
    upstream = _upstream(given, upstream)
    g, y = system.solve(white)
    solved = ops.unstack(system.inverse_times_scaled(), axis=-2)
    inverse_diag = ops.square(root) * (
        1. - sum(row * s for row, s in zip(rows, solved)))
    # Column by column, because a tensor of all of them leaves the cache.
    twice = 2. * upstream * root
    return (upstream * g,
            upstream * (inverse_diag - g * white),
            *(twice * s - (upstream * z[..., r:r + 1]) * g
              - (upstream * y[..., r:r + 1]) * white
              for r, s in enumerate(solved)))

  return value, gradient


def _upstream(given, upstream):
  """Returns `[..., 1]`; PyTorch gives it by name, after the arguments."""
  return (given[0] if upstream is None else upstream)[..., None]


def _of_factor(diag, factor):
  root = ops.rsqrt(diag)
  return _SmallSystem(root, factor * root[..., None, :])


class _SmallSystem:
  """`M = I + V^T D^-1 V`, and what follows from it.

  Attributes:
    root: the diagonal of `D^-1/2`, `[..., D]`.
    scaled: the columns of `D^-1/2 V` as rows, `[..., R, D]`.
    log_det: `log|M|`, `[...]`.
  """

  def __init__(self, root, scaled):
    self.root = root
    self.scaled = self._rows = scaled
    dtype = _widest_dtype()
    identity = ops.eye(scaled.shape[-2], dtype=dtype)
    self._matrix = identity + _gram(ops.cast(scaled, dtype))
    self._transform, log_det = None, 0.
    if dtype != 'float64':
      self._transform, log_det = _decorrelate(self._matrix, identity)
      self._rows = ops.matmul(self._transform, scaled)
      self._matrix = _gram(self._transform) + _gram(self._rows)
    self._inverse, rest = _invert(self._matrix)
    self.log_det = ops.cast(log_det + rest, root.dtype)

  def solve(self, x):
    """Returns `S^-1 x` and `V^T S^-1 x`."""
    x = x * self.root
    z = self._solve_small(ops.matmul(self._rows, x[..., None]))
    combined = ops.matmul(_transpose(z), self._rows)
    if self._transform is not None:
      z = ops.matmul(_transpose(self._transform), z)
    return (x - combined[..., 0, :]) * self.root, z[..., 0]

  def inverse_times_scaled(self):
    """Returns `M^-1 V^T D^-1/2`, the columns of `D^1/2 S^-1 V` as rows."""
    inverse = ops.cast(self._inverse, self.scaled.dtype)
    if self._transform is not None:
      inverse = ops.matmul(_transpose(self._transform), inverse)
    return ops.matmul(inverse, self._rows)

  def _solve_small(self, x):
    """Returns the small matrix's inverse times x."""
    z = ops.matmul(self._inverse, ops.cast(x, self._inverse.dtype))
    if x.dtype == z.dtype:  # a step of refinement, for the last digits
      z += ops.matmul(self._inverse, x - ops.matmul(self._matrix, z))
    return ops.cast(z, x.dtype)


def _widest_dtype():
  """float64, or float32 where the backend has none."""
  if keras.backend.backend() != 'jax':
    return 'float64'
  import jax  # which is there
  return jax.dtypes.canonicalize_dtype('float64').name


def _decorrelate(matrix, identity):
  """A triangular T so that `T M T^T` is nearly the identity, and `-2 log|T|`.

  M is one plus a Gram matrix, hence at least one but for rounding, which the
  small multiple of its diagonal outweighs.
  """
  eps = 8. * matrix.shape[-1] * float(np.finfo(np.float32).eps)
  lower = ops.cholesky(matrix * (1. + eps * identity))
  log_det = 2. * ops.sum(
      ops.log(ops.diagonal(lower, axis1=-2, axis2=-1)), axis=-1)
  return ops.solve_triangular(
      lower, ops.zeros_like(lower) + identity, lower=True), log_det


def _invert(matrix):
  """The inverse of a small positive definite matrix, and its log determinant.

  Gauss-Jordan elimination of all the batch at once, where a factorisation of
  each would cost more than all the rest. The diagonal is scaled to one, so that
  no pivot exceeds one. With column `a` and pivot `p` a step is

      A <- A - u u^T / p - 2 e_k e_k^T,  u = a - e_k,

  and the last one leaves `-A^-1`.
  """
  scale = ops.rsqrt(ops.diagonal(matrix, axis1=-2, axis2=-1))
  both = scale[..., None] * scale[..., None, :]
  matrix = matrix * both
  log_det = -2. * ops.sum(ops.log(scale), axis=-1)
  dtype = keras.backend.standardize_dtype(matrix.dtype)
  for k, row in enumerate(np.eye(matrix.shape[-1], dtype=dtype)):
    unit = ops.convert_to_tensor(row)
    column = matrix[..., k]
    pivot = column[..., k:k + 1]
    log_det = log_det + ops.log(pivot[..., 0])
    u = column - unit
    matrix = matrix - (_outer(u, u / pivot) + _outer(2. * unit, unit))
  return -matrix * both, log_det


def _gram(rows):
  return ops.matmul(rows, _transpose(rows))


def _transpose(matrix):
  return ops.swapaxes(matrix, -1, -2)


def _dot(a, b):
  return ops.sum(a * b, axis=-1, keepdims=True)


def _outer(a, b):
  return a[..., None] * b[..., None, :]

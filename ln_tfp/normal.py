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
"""

import numpy as np
import tensorflow as tf


def energy(residual: tf.Tensor, diag: tf.Tensor,
           *columns: tf.Tensor) -> tf.Tensor:
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
  return _low_rank_energy(residual, diag, tf.stack(columns, axis=-2))


def whiten(residual: tf.Tensor, diag: tf.Tensor,
           factor: tf.Tensor | None = None) -> tf.Tensor:
  """Returns `S^-1 r`."""
  if factor is None:
    return residual / diag
  return _SmallSystem(diag, factor).solve(residual)[0]


def log_det(diag: tf.Tensor, factor: tf.Tensor | None = None) -> tf.Tensor:
  """Returns `log|S|`."""
  log_det_diag = tf.reduce_sum(tf.math.log(diag), axis=-1)
  if factor is None:
    return log_det_diag
  return log_det_diag + _SmallSystem(diag, factor).log_det


def inverse_times_factor(diag: tf.Tensor, factor: tf.Tensor) -> tf.Tensor:
  """Returns the columns of `S^-1 V` as rows, `[..., R, D]`."""
  system = _SmallSystem(diag, factor)
  return system.root[..., tf.newaxis, :] * system.inverse_times_scaled()


def squared_norm(x: tf.Tensor) -> tf.Tensor:
  """Returns `x^T x` over the last axis."""
  return tf.reduce_sum(tf.square(x), axis=-1)


@tf.custom_gradient
def _rank_one_energy(residual, diag, column):
  """`energy` at rank 1, where the small matrix is a number: Eq. 9."""
  inverse = tf.math.reciprocal(diag)
  scaled = column * inverse
  m = 1. + _dot(column, scaled)
  z = _dot(scaled, residual) / m
  white = (residual - column * z) * inverse
  value = (tf.reduce_sum(0.5 * tf.square(white) + tf.math.log(diag), axis=-1) +
           tf.math.log(tf.squeeze(m, axis=-1)))

  def gradient(upstream):
    upstream = upstream[..., tf.newaxis]
    y = _dot(scaled, white) / m
    g = white * inverse - scaled * y
    solved = scaled / m
    return (upstream * g,
            upstream * (inverse - scaled * solved - g * white),
            upstream * (2. * solved - g * z - white * y))

  return value, gradient


@tf.custom_gradient
def _low_rank_energy(residual, diag, factor):
  """`energy` at any rank."""
  system = _SmallSystem(diag, factor)
  white, z = system.solve(residual)
  value = (tf.reduce_sum(0.5 * tf.square(white) + tf.math.log(diag), axis=-1) +
           system.log_det)

  def gradient(upstream):
    upstream = upstream[..., tf.newaxis]
    g, y = system.solve(white)
    scaled = system.inverse_times_scaled()
    inverse_diag = tf.square(system.root) * (
        1. - tf.reduce_sum(system.scaled * scaled, axis=-2))
    # z g^T + y w^T, with the root of D^-1 taken out for both.
    products = tf.matmul(tf.stack([z, y], axis=-1), tf.stack(
        [g / system.root, white / system.root], axis=-2))
    return (upstream * g,
            upstream * (inverse_diag - g * white),
            (upstream * system.root)[..., tf.newaxis, :] *
            (2. * scaled - products))

  return value, gradient


class _SmallSystem:
  """`M = I + V^T D^-1 V`, and what follows from it.

  Attributes:
    root: the diagonal of `D^-1/2`, `[..., D]`.
    scaled: the columns of `D^-1/2 V` as rows, `[..., R, D]`.
    log_det: `log|M|`, `[...]`.
  """

  def __init__(self, diag, factor):
    self.root = tf.math.rsqrt(diag)
    self.scaled = factor * self.root[..., tf.newaxis, :]
    scaled = tf.cast(self.scaled, tf.float64)
    self._matrix = (tf.eye(factor.shape[-2], dtype=tf.float64) +
                    tf.matmul(scaled, scaled, transpose_b=True))
    self._inverse, log_det = _invert(self._matrix)
    self.log_det = tf.cast(log_det, diag.dtype)

  def solve(self, x):
    """Returns `S^-1 x` and `V^T S^-1 x`."""
    x = x * self.root
    z = self._solve_small(tf.linalg.matvec(self.scaled, x)[..., tf.newaxis])
    combined = tf.matmul(z, self.scaled, transpose_a=True)
    return (x - combined[..., 0, :]) * self.root, z[..., 0]

  def inverse_times_scaled(self):
    """Returns `M^-1 V^T D^-1/2`, the columns of `D^1/2 S^-1 V` as rows."""
    return tf.matmul(tf.cast(self._inverse, self.scaled.dtype), self.scaled)

  def _solve_small(self, x):
    """Returns `M^-1 x`."""
    z = tf.matmul(self._inverse, tf.cast(x, tf.float64))
    if x.dtype == tf.float64:  # a step of refinement, for the last digits
      z += tf.matmul(self._inverse, x - tf.matmul(self._matrix, z))
    return tf.cast(z, x.dtype)


def _invert(matrix):
  """The inverse of a small positive definite matrix, and its log determinant.

  Gauss-Jordan elimination of all the batch at once, where a factorisation of
  each would cost more than all the rest. The diagonal is scaled to one, so that
  no pivot exceeds one. With column `a` and pivot `p` a step is

      A <- A - u u^T / p - 2 e_k e_k^T,  u = a - e_k,

  and the last one leaves `-A^-1`.
  """
  scale = tf.math.rsqrt(tf.linalg.diag_part(matrix))
  both = scale[..., tf.newaxis] * scale[..., tf.newaxis, :]
  matrix *= both
  log_det = -2. * tf.reduce_sum(tf.math.log(scale), axis=-1)
  for k, unit in enumerate(np.eye(matrix.shape[-1])):
    column = matrix[..., k]
    pivot = column[..., k:k + 1]
    log_det += tf.math.log(pivot[..., 0])
    u = column - unit
    matrix -= _outer(u, u / pivot) + 2. * np.outer(unit, unit)
  return -matrix * both, log_det


def _dot(a, b):
  return tf.reduce_sum(a * b, axis=-1, keepdims=True)


def _outer(a, b):
  return a[..., tf.newaxis] * b[..., tf.newaxis, :]

"""The normal density with a low-rank scale, without any `D x D` matrix.

The scale of the noise in logit space is `S = diag(d) + V V^T`, its covariance
`Sigma = S S^T` (the paper's Eq. 9, for any rank R). What is needed of it
follows from the small matrix `M = I + V^T D^-1 V`, `R x R`:

    S^-1 x     = D^-1 (x - V M^-1 V^T D^-1 x)         (Woodbury)
    V^T S^-1 x = M^-1 V^T D^-1 x
    S^-1 V     = D^-1 V M^-1
    log|S|     = log|D| + log|M|                      (determinant lemma)

Throughout, `diag` is `d`, of shape `[..., D]`, and `factor` holds the columns
of `V` as rows, `[..., R, D]`; it is `None` where there is no factor. `energy`
takes the columns one by one, for the sake of rank 1: it is part of every
training step, where each operation counts.

Ranks above 1 are computed in float64 whatever the dtype of the arguments:
nearly collinear columns of size v give M a condition number of about D v^2 / d,
which leaves float32 nothing from v = 100 on.
"""

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
  return tf.cast(_SmallSystem(diag, factor).solve(residual)[0], residual.dtype)


def log_det(diag: tf.Tensor, factor: tf.Tensor | None = None) -> tf.Tensor:
  """Returns `log|S|`."""
  log_det_diag = tf.reduce_sum(tf.math.log(diag), axis=-1)
  if factor is None:
    return log_det_diag
  return log_det_diag + tf.cast(_SmallSystem(diag, factor).log_det, diag.dtype)


def inverse_times_factor(diag: tf.Tensor, factor: tf.Tensor) -> tf.Tensor:
  """Returns the columns of `S^-1 V` as rows, `[..., R, D]`."""
  return tf.cast(
      _SmallSystem(diag, factor).inverse_times_factor(), factor.dtype)


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
  value = 0.5 * squared_norm(white) + log_det(system.diag) + system.log_det

  def gradient(upstream):
    upstream = tf.cast(upstream, tf.float64)[..., tf.newaxis]
    g, y = system.solve(white)
    solved = system.inverse_times_factor()
    inverse_diag = (1. / system.diag -
                    tf.reduce_sum(system.scaled * solved, axis=-2))
    gradients = (upstream * g,
                 upstream * (inverse_diag - g * white),
                 upstream[..., tf.newaxis] *
                 (2. * solved - _outer(z, g) - _outer(y, white)))
    return [tf.cast(x, residual.dtype) for x in gradients]

  return tf.cast(value, residual.dtype), gradient


class _SmallSystem:
  """`M = I + V^T D^-1 V`, and what follows from it, in float64."""

  def __init__(self, diag, factor):
    self.diag = tf.cast(diag, tf.float64)
    factor = tf.cast(factor, tf.float64)
    self.scaled = factor / self.diag[..., tf.newaxis, :]
    identity = tf.eye(factor.shape[-2], dtype=tf.float64)
    self._cholesky = tf.linalg.cholesky(
        identity + tf.matmul(self.scaled, factor, transpose_b=True))
    self.log_det = 2. * tf.reduce_sum(
        tf.math.log(tf.linalg.diag_part(self._cholesky)), axis=-1)

  def solve(self, x):
    """Returns `S^-1 x` and `V^T S^-1 x`."""
    x = tf.cast(x, tf.float64)
    z = tf.linalg.cholesky_solve(
        self._cholesky, tf.linalg.matvec(self.scaled, x)[..., tf.newaxis])
    return x / self.diag - tf.reduce_sum(self.scaled * z, axis=-2), z[..., 0]

  def inverse_times_factor(self):
    """Returns the columns of `S^-1 V` as rows."""
    return tf.linalg.cholesky_solve(self._cholesky, self.scaled)


def _dot(a, b):
  return tf.reduce_sum(a * b, axis=-1, keepdims=True)


def _outer(a, b):
  return a[..., tf.newaxis] * b[..., tf.newaxis, :]

"""The energy of many classes through Gram matrices, without a `[B, K]` tensor.

Tables `F` and `H`, `[K, E]`, hold a row for every class. Of an example's
vectors `x` and `z` they make its mean `mu = F x` and its factor `c = H z`, K
numbers each that nobody computes: all that the energy of a rank-1 scale
`S = l I + c c^T` needs of them are five numbers. With the target `t` and the
residual `r = t - mu`,

    |mu|^2 = x^T (F^T F) x,  mu.c = x^T (F^T H) z,  n = |c|^2 = z^T (H^T H) z,
    t.mu = (F^T t).x,  t.c = (H^T t).z;
    |r|^2 = |t|^2 - 2 t.mu + |mu|^2,  s = c.r = t.c - mu.c,
    |S^-1 r|^2 = (|r|^2 - s^2 / (l + n) (1 + l / (l + n))) / l^2,
    log|S| = K log(l) + log(1 + n / l).

`F^T t` is a row of the table or a few, because `t` is zero but at the label
(see `Target`). The features with a one appended are `x = z` of a linear layer
with biases, whose kernel is the transposed table. Both tables may be one.

The Gram matrices and their gradient take `7 E^2 K` multiplications, those of a
single table `2 E^2 K`, and the products of the examples with them `9 B E^2`;
`mu` and `c` themselves would take `6 B E K`, and the cross entropy of a linear
layer takes `3 B E K`.

`|r|^2` cancels where the model fits. In float32 the energy is off by about
`1e-6 (|t|^2 + |mu|^2) / l^2`, hence all products are at least float32, also
where TensorFlow would round their factors to TensorFloat-32.
"""

import math
from typing import NamedTuple

import tensorflow as tf


class Target(NamedTuple):
  """Targets in logit space that are zero but at a few classes.

  Without a dummy class the last class has no coordinate. Its height `a` lowers
  all others: `t = sum_j a_j e_j - a 1`.

  Attributes:
    classes: int32, `[B, k]`, different in each row where heights are not zero.
    heights: float, `[B, k]`.
    log_jacobian: of `SoftmaxCentered` at the target, float, `[B]`.
  """
  classes: tf.Tensor
  heights: tf.Tensor
  log_jacobian: tf.Tensor


def target(classes, weights, size: int, label_smoothing: float) -> Target:
  """The logits of smoothed labels.

  Args:
    classes: int32, `[B, k]`, different in each row where weights are not zero.
    weights: float, `[B, k]`: the probabilities of these classes; the others
      have none. A row of zeros counts as uniform.
    size: number of classes, the dummy class included.
    label_smoothing: `t` of `q = (1 - t) p + t / size`.
  """
  t = label_smoothing
  heights = tf.math.log1p(weights * ((1. - t) * size / t))
  total = 1. + (1. - t) * (tf.reduce_sum(weights, axis=-1) - 1.)
  log_jacobian = (
      tf.reduce_sum(heights, axis=-1) - size * tf.math.log(total)
      + (size * math.log(t / size) + .5 * math.log(size)))
  return Target(classes, heights, log_jacobian)


def energy(loc_table, factor_table, x, z, targets: Target, scale: float,
           dummy_class: bool):
  """Returns `0.5 |S^-1 r|^2 + log|S|`, what `normal.energy` returns.

  Args:
    loc_table: `F`, `[D, E]`, where D is the number of classes, or one less
      without a dummy class.
    factor_table: `H`, `[D, E]`; `None` means `F`.
    x: `[B, E]`, with `mu = F x`.
    z: `[B, E]`, with `c = H z`.
    targets: see `Target`.
    scale: `l`, positive.
    dummy_class: Whether there is one. If not, class D is the last.

  Returns:
    Float tensor `[B]`.
  """
  dims = loc_table.shape[0]
  is_last = None
  if not dummy_class:
    is_last = tf.cast(tf.equal(targets.classes, dims), x.dtype)
  if factor_table is None:
    gram, row = _products([loc_table], targets, is_last)
    grams, rows = [gram] * 3, [row] * 2
  else:
    *grams, row_x, row_z = _products(
        [loc_table, factor_table], targets, is_last)
    rows = [row_x, row_z]
  norm_mu = _bilinear(x, grams[0], x)
  mu_c = _bilinear(x, grams[1], z)
  norm_c = _bilinear(z, grams[2], z)
  norm_r = (_squared_norm(targets.heights, is_last, dims)
            - 2. * _dot(rows[0], x) + norm_mu)
  c_r = _dot(rows[1], z) - mu_c
  total = scale + norm_c
  white = norm_r - tf.square(c_r) / total * (1. + scale / total)
  return (.5 / scale**2 * white + dims * math.log(scale)
          + tf.math.log1p(norm_c / scale))


def matmul(a, b, transpose_a=False, multiply=tf.matmul):
  """The product of float32 matrices, in float32 wherever it is computed.

  On GPUs TensorFlow rounds the factors to 11 bits unless it is told otherwise,
  for the whole process. Split in two such numbers each, three products have
  the error of float32.

  Args:
    a: matrix.
    b: matrix.
    transpose_a: Whether to transpose `a`.
    multiply: the product to work with.
  """
  if a.dtype != tf.float32 or not _is_rounded():
    return multiply(a, b, transpose_a=transpose_a)
  (a_high, a_low), (b_high, b_low) = _split(a), _split(b)
  return (multiply(a_high, b_high, transpose_a=transpose_a)
          + (multiply(a_high, b_low, transpose_a=transpose_a)
             + multiply(a_low, b_high, transpose_a=transpose_a)))


def _is_rounded() -> bool:
  return (tf.config.experimental.tensor_float_32_execution_enabled()
          and bool(tf.config.list_physical_devices('GPU')))


def _split(x):
  """Two numbers of 11 bits whose sum is a float32 number but for 2 bits."""
  bits = tf.bitcast(x, tf.int32)
  high = tf.bitcast(tf.bitwise.bitwise_and(bits, ~0x1fff), tf.float32)
  return high, x - high


def _products(tables, targets, is_last):
  """`F^T F` and `F^T t`; of two `F^T F, F^T H, H^T H, F^T t, H^T t`.

  This is the one place that reads a table and makes its gradient. Automatic
  differentiation would multiply twice for a symmetric product, and add up three
  tensors of a table's size.
  """
  classes = tf.minimum(targets.classes, tables[0].shape[0] - 1)
  classes = classes[..., tf.newaxis]
  last = None if is_last is None else is_last[..., tf.newaxis]

  def gather(table):
    rows = tf.gather_nd(table, classes)
    if last is None:
      return rows
    return rows * (1. - last) - last * tf.reduce_sum(table, axis=0)

  def scatter(d_table, d_rows):
    if last is not None:
      d_table -= tf.reduce_sum(last * d_rows, axis=[0, 1])
      d_rows *= 1. - last
    return tf.tensor_scatter_nd_add(d_table, classes, d_rows)

  pairs = [(i, j) for i in range(len(tables)) for j in range(i, len(tables))]

  @tf.custom_gradient
  def function(heights, *tables):
    grams = [matmul(tables[i], tables[j], transpose_a=True) for i, j in pairs]
    rows = [gather(table) for table in tables]
    results = [tf.einsum('bk,bke->be', heights, row) for row in rows]

    def gradient(*upstream):
      d_grams, d_results = upstream[:len(pairs)], upstream[len(pairs):]
      d_heights = tf.add_n([
          tf.einsum('be,bke->bk', d, row) for d, row in zip(d_results, rows)])
      d_tables = [0.] * len(tables)
      for (i, j), d_gram in zip(pairs, d_grams):
        if i == j:
          d_tables[i] += matmul(tables[i], d_gram + tf.transpose(d_gram))
        else:
          d_tables[i] += matmul(tables[j], tf.transpose(d_gram))
          d_tables[j] += matmul(tables[i], d_gram)
      heightened = [heights[..., tf.newaxis] * d[:, tf.newaxis]
                    for d in d_results]
      return d_heights, *map(scatter, d_tables, heightened)

    return (*grams, *results), gradient

  return function(targets.heights, *tables)


def _squared_norm(heights, is_last, dims):
  """`|t|^2`."""
  squares = tf.reduce_sum(tf.square(heights), axis=-1)
  if is_last is None:
    return squares
  lowered = tf.reduce_sum(is_last * heights, axis=-1)
  total = tf.reduce_sum(heights, axis=-1)
  # The last class: dims a^2 - 2 a (total - a), in place of a^2.
  return squares + lowered * ((dims + 1) * lowered - 2. * total)


def _bilinear(x, matrix, z):
  return _dot(matmul(x, matrix), z)


def _dot(a, b):
  return tf.reduce_sum(a * b, axis=-1)

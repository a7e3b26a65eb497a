"""The likeliest of many classes, without a tensor of all logits."""

import tensorflow as tf

_CHUNK = 8192  # classes at a time


def top_k(x, table, k: int, with_zero: bool):
  """Returns the k largest of the logits `F x`, and their probabilities.

  Args:
    x: `[B, E]`.
    table: `F`, `[D, E]`.
    k: at most the number of logits.
    with_zero: Whether there is one more logit, the last, which is zero.

  Returns:
    Classes, int32 `[B, k]`, the likeliest first, and probabilities `[B, k]`.
  """
  dims = table.shape[0]
  count = int(with_zero)
  values = tf.zeros([tf.shape(x)[0], count], x.dtype)
  classes = tf.fill([tf.shape(x)[0], count], dims)
  log_total = tf.reduce_logsumexp(values, axis=-1)
  for begin in range(0, dims, _CHUNK):
    chunk = table[begin:begin + _CHUNK]
    logits = tf.matmul(x, chunk, transpose_b=True)
    log_total = tf.reduce_logsumexp(
        tf.stack([log_total, tf.reduce_logsumexp(logits, axis=-1)]), axis=0)
    new, positions = tf.math.top_k(logits, min(k, chunk.shape[0]))
    # Equal logits are taken in the order of their classes, but for the last.
    values, best = tf.math.top_k(
        both := tf.concat([values, new], axis=-1), min(k, both.shape[-1]))
    classes = tf.gather(
        tf.concat([classes, begin + positions], axis=-1), best, batch_dims=1)
  return classes, tf.exp(values - log_total[:, tf.newaxis])

"""TensorFlow's part of `ln_tfp.backend`, where the functions are described."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from ln_tfp import random

_WIDE = (tf.int64, tf.uint32, tf.uint64)


def read_labels(labels: Any) -> tf.Tensor:
  """Returns a tensor; integers are int32, or int64 where they may be wide."""
  labels = keras.ops.convert_to_tensor(labels)
  if labels.dtype.is_integer or labels.dtype.is_bool:
    labels = tf.cast(labels, tf.int64 if labels.dtype in _WIDE else tf.int32)
  return labels


def require(result: tf.Tensor, valid: tf.Tensor, values: tf.Tensor,
            message: str) -> tf.Tensor:
  """Returns `result`, or fails and shows one of the values that are invalid.

  What the failure shows is computed in its own branch, and by a gather: a slice
  at a computed position would make XLA compile anew for every batch.
  """
  def fail():
    position = tf.argmin(tf.cast(tf.reshape(valid, [-1]), tf.int32))
    rows = tf.reshape(values, [-1, *values.shape[valid.shape.rank:]])
    check = tf.raw_ops.Assert(
        condition=False, data=[message, tf.gather(rows, position)],
        summarize=10)
    with tf.control_dependencies([] if check is None else [check]):
      return tf.constant(False)

  check = tf.cond(tf.reduce_all(valid), lambda: tf.constant(True), fail)
  with tf.control_dependencies([check]):
    return tf.identity(result)


def normal(seed: Any, step: Any, ids: Any, num: int) -> tf.Tensor:
  """Returns standard normal numbers for each example of a training step.

  The twin of `random.normal(seed, step, ids[:, np.newaxis], np.arange(num))`,
  in float32: a pure function of its integers, for graphs and XLA.

  Args:
    seed: Python integer or scalar integer tensor.
    step: Python integer or scalar integer tensor.
    ids: integers `[batch]`.
    num: how many numbers for each example.

  Returns:
    A float32 tensor `[batch, num]`.
  """
  state = _constant(int(random.bits(random.NORMAL_STREAM)))
  counters = (seed, step, _to_uint64(ids)[:, tf.newaxis], np.arange(num))
  for counter in counters:
    mixed = _mix(_to_uint64(counter) + _constant(random.GOLDEN))
    state = _mix(tf.bitwise.bitwise_xor(state, mixed))
  # 24 bits fit a float32 exactly; the detour through int32 is what GPUs cast.
  high = tf.bitwise.right_shift(state, _constant(40))
  low = tf.bitwise.bitwise_and(state, _constant(0xFFFFFF))
  radius = (tf.cast(tf.cast(high, tf.int32), tf.float32) + 0.5) * 2.**-24
  angle = tf.cast(tf.cast(low, tf.int32), tf.float32) * 2.**-24
  return tf.sqrt(-2. * tf.math.log(radius)) * tf.cos(2. * np.pi * angle)


def next_seed(generator: keras.random.SeedGenerator,
              y_pred: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns two integers, the same on every replica and new at every call."""
  del y_pred  # the generator has a state
  seed, step = tf.unstack(tf.cast(generator.next(), tf.int64))
  return seed, step


def first_id() -> tf.Tensor:
  """Returns a number for the first example of this replica's batch."""
  context = tf.distribute.get_replica_context()
  replica = 0 if context is None else context.replica_id_in_sync_group
  return tf.cast(replica, tf.int64) * 2**32


def places(count: Any) -> tf.Tensor:
  """Returns 0, 1, ..., count - 1."""
  return tf.range(tf.cast(count, tf.int64))


def log_of_product(log_p: tf.Tensor, matrix: np.ndarray) -> tf.Tensor:
  """Returns `log(exp(log_p) matrix)`, `[..., K]`."""
  # In float64, where p underflows only beyond any loss that trains.
  product = tf.matmul(tf.exp(tf.cast(log_p, tf.float64)),
                      tf.convert_to_tensor(matrix, tf.float64))
  log = tf.math.log(tf.maximum(product, np.finfo(np.float64).tiny))
  return tf.cast(log, log_p.dtype)


def _constant(value):
  return tf.constant(value, tf.uint64)


def _mix(x):
  for shift, multiplier in zip(random.SHIFTS, random.MULTIPLIERS):
    x = tf.bitwise.bitwise_xor(
        x, tf.bitwise.right_shift(x, _constant(shift)))
    x = x * _constant(multiplier)
  return tf.bitwise.bitwise_xor(
      x, tf.bitwise.right_shift(x, _constant(random.SHIFTS[2])))


def _to_uint64(counter):
  if isinstance(counter, (int, np.ndarray, np.integer)):
    return _constant(random.to_uint64(counter))
  counter = tf.convert_to_tensor(counter)
  if counter.dtype == tf.uint64:
    return counter
  return tf.bitcast(tf.cast(counter, tf.int64), tf.uint64)

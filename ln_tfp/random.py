"""Counter-based randomness: every number is a pure function of its integers.

A generator with a hidden state makes noise, order and augmentation depend on
what was drawn before. Here each draw is a hash of what it belongs to, such as
`uniform('label noise', seed, ids)`, so that it is the same whatever the order,
the batch size, the number of workers or the process. The hash is a chain of
the finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable
pseudorandom number generators", 2014).
"""

import hashlib

import numpy as np
import tensorflow as tf

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15
_MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_SHIFTS = (30, 27, 31)
_NORMAL_STREAM = 'normal'


def bits(*counters) -> np.ndarray:
  """Returns 64 random bits for each element of the broadcast counters.

  Args:
    *counters: integers, integer arrays that broadcast against each other, or
      strings. A string names a purpose, so that two uses of one seed are
      independent.

  Returns:
    A uint64 array of the broadcast shape.
  """
  state = np.uint64(0)
  # Wrapping around is the point; NumPy warns about it for scalars.
  with np.errstate(over='ignore'):
    for counter in counters:
      state = _mix(state ^ _mix(_to_uint64(counter) + np.uint64(_GOLDEN)))
  return state


def uniform(*counters) -> np.ndarray:
  """Returns float64 numbers in [0, 1), see `bits` for the counters."""
  return (bits(*counters) >> np.uint64(11)) * 2.**-53


def integers(bound: int, *counters) -> np.ndarray:
  """Returns int64 numbers in 0..bound-1, see `bits` for the counters."""
  return (uniform(*counters) * bound).astype(np.int64)


def order(*counters) -> np.ndarray:
  """Returns the permutation that sorts the hashes of 1-D counters.

  With ids as the last counter it permutes the examples in a way that does not
  depend on how they were ordered before.
  """
  return np.argsort(bits(*counters), kind='stable')


def normal(*counters) -> np.ndarray:
  """Returns standard normal float64 numbers, see `bits` for the counters."""
  hashes = bits(_NORMAL_STREAM, *counters)
  radius = ((hashes >> np.uint64(40)) + 0.5) * 2.**-24
  angle = (hashes & np.uint64(0xFFFFFF)) * 2.**-24
  return np.sqrt(-2. * np.log(radius)) * np.cos(2. * np.pi * angle)


def tf_normal(seed, step, ids, num: int) -> tf.Tensor:
  """Returns standard normal numbers for each example of a training step.

  The TensorFlow twin of `normal(seed, step, ids[:, np.newaxis],
  np.arange(num))`, in float32: a pure function of its integers, for graphs and
  XLA.

  Args:
    seed: Python integer or scalar integer tensor.
    step: Python integer or scalar integer tensor.
    ids: integers `[batch]`.
    num: how many numbers for each example.

  Returns:
    A float32 tensor `[batch, num]`.
  """
  state = _tf_constant(int(bits(_NORMAL_STREAM)))
  counters = (seed, step, _tf_uint64(ids)[:, tf.newaxis], np.arange(num))
  for counter in counters:
    mixed = _tf_mix(_tf_uint64(counter) + _tf_constant(_GOLDEN))
    state = _tf_mix(tf.bitwise.bitwise_xor(state, mixed))
  # 24 bits fit a float32 exactly; the detour through int32 is what GPUs cast.
  high = tf.bitwise.right_shift(state, _tf_constant(40))
  low = tf.bitwise.bitwise_and(state, _tf_constant(0xFFFFFF))
  radius = (tf.cast(tf.cast(high, tf.int32), tf.float32) + 0.5) * 2.**-24
  angle = tf.cast(tf.cast(low, tf.int32), tf.float32) * 2.**-24
  return tf.sqrt(-2. * tf.math.log(radius)) * tf.cos(2. * np.pi * angle)


def _mix(x):
  x = (x ^ (x >> np.uint64(_SHIFTS[0]))) * np.uint64(_MULTIPLIERS[0])
  x = (x ^ (x >> np.uint64(_SHIFTS[1]))) * np.uint64(_MULTIPLIERS[1])
  return x ^ (x >> np.uint64(_SHIFTS[2]))


def _to_uint64(counter):
  if isinstance(counter, str):
    digest = hashlib.sha256(counter.encode('utf-8')).digest()
    return np.uint64(int.from_bytes(digest[:8], 'little'))
  if isinstance(counter, int):
    return np.uint64(counter & _MASK)
  counter = np.asarray(counter)
  if not np.issubdtype(counter.dtype, np.integer):
    raise TypeError(
        'Argument `counters` must be integers, integer arrays or strings. '
        f'Received: {counter.dtype}.')
  return counter.astype(np.uint64)


def _tf_constant(value):
  return tf.constant(value, tf.uint64)


def _tf_mix(x):
  for shift, multiplier in zip(_SHIFTS, _MULTIPLIERS):
    x = tf.bitwise.bitwise_xor(
        x, tf.bitwise.right_shift(x, _tf_constant(shift)))
    x = x * _tf_constant(multiplier)
  return tf.bitwise.bitwise_xor(
      x, tf.bitwise.right_shift(x, _tf_constant(_SHIFTS[2])))


def _tf_uint64(counter):
  if isinstance(counter, (int, np.ndarray, np.integer)):
    return _tf_constant(_to_uint64(counter))
  counter = tf.convert_to_tensor(counter)
  if counter.dtype == tf.uint64:
    return counter
  return tf.bitcast(tf.cast(counter, tf.int64), tf.uint64)

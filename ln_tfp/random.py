"""Counter-based randomness: every number is a pure function of its integers.

A generator with a hidden state makes noise, order and augmentation depend on
what was drawn before. Here each draw is a hash of what it belongs to, such as
`uniform('label noise', seed, ids)`, so that it is the same whatever the order,
the batch size, the number of workers or the process. The hash is a chain of
the finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable
pseudorandom number generators", 2014). `ln_tfp.backend.normal` is the twin of
`normal` for tensors.
"""

import hashlib

import numpy as np

_MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
SHIFTS = (30, 27, 31)
NORMAL_STREAM = 'normal'


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
      state = _mix(state ^ _mix(to_uint64(counter) + np.uint64(GOLDEN)))
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
  hashes = bits(NORMAL_STREAM, *counters)
  radius = ((hashes >> np.uint64(40)) + 0.5) * 2.**-24
  angle = (hashes & np.uint64(0xFFFFFF)) * 2.**-24
  return np.sqrt(-2. * np.log(radius)) * np.cos(2. * np.pi * angle)


def _mix(x):
  x = (x ^ (x >> np.uint64(SHIFTS[0]))) * np.uint64(MULTIPLIERS[0])
  x = (x ^ (x >> np.uint64(SHIFTS[1]))) * np.uint64(MULTIPLIERS[1])
  return x ^ (x >> np.uint64(SHIFTS[2]))


def to_uint64(counter) -> np.uint64 | np.ndarray:
  """Returns a counter as `bits` reads it."""
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

import numpy as np
import pytest
from scipy import stats
import tensorflow as tf

from ln_tfp import backend
from ln_tfp import random


def _splitmix_chain(*counters):
  """The hash of integers, in Python's own arithmetic."""
  mask = 2**64 - 1

  def mix(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)

  state = 0
  for counter in counters:
    state = mix(state ^ mix((counter + 0x9E3779B97F4A7C15) & mask))
  return state


def test_bits_equal_the_chain_in_exact_integers():
  ids = np.array([0, 1, 2**40, -1])
  expected = [_splitmix_chain(7, 3, int(i) % 2**64) for i in ids]
  assert random.bits(7, 3, ids).tolist() == expected


def test_the_first_mix_is_that_of_published_splitmix64():
  # The first output of SplitMix64 seeded with 1234567.
  state = np.array([1234567 + 0x9E3779B97F4A7C15], np.uint64)
  assert random._mix(state).tolist() == [6457827717110365317]


def test_consecutive_counters_give_uniform_and_independent_numbers():
  numbers = random.uniform('test', np.arange(100)[:, None], np.arange(1000))
  assert stats.kstest(numbers.ravel(), 'uniform').pvalue > 1e-4
  neighbours = np.corrcoef(numbers[:-1].ravel(), numbers[1:].ravel())[0, 1]
  assert abs(neighbours) < 4 / np.sqrt(numbers.size)


def test_purposes_are_independent_streams():
  ids = np.arange(100_000)
  first, second = random.uniform('a', 0, ids), random.uniform('b', 0, ids)
  assert abs(np.corrcoef(first, second)[0, 1]) < 4 / np.sqrt(len(ids))


def test_integers_cover_their_range_evenly():
  counts = np.bincount(random.integers(7, 'test', np.arange(70_000)))
  assert len(counts) == 7
  assert stats.chisquare(counts).pvalue > 1e-4


def test_normal_numbers_are_standard_normal():
  numbers = random.normal(0, np.arange(100_000))
  assert stats.kstest(numbers, 'norm').pvalue > 1e-4


@pytest.mark.parametrize('jit_compile', [None, False, True])
def test_the_twin_for_tensors_gives_the_same_normal_numbers(jit_compile):
  def draw(seed, step, ids):
    return backend.normal(seed, step, ids, 5)

  if jit_compile is not None:
    draw = tf.function(draw, jit_compile=jit_compile)
  ids = np.array([3, 0, 2**40, 17])
  numbers = draw(
      tf.constant(11), tf.constant(2, tf.int64), tf.constant(ids, tf.int64))
  expected = random.normal(11, 2, ids[:, np.newaxis], np.arange(5))
  assert numbers.dtype == tf.float32
  np.testing.assert_allclose(numbers, expected, atol=1e-5)


def test_the_twin_for_tensors_takes_python_integers_and_negative_seeds():
  ids = np.arange(4)
  np.testing.assert_allclose(
      backend.normal(-5, 0, ids, 3),
      random.normal(-5, 0, ids[:, np.newaxis], np.arange(3)), atol=1e-5)
  np.testing.assert_array_equal(
      backend.normal(-5, 0, ids, 3),
      backend.normal(tf.constant(-5), 0, tf.constant(ids), 3))


def test_floats_are_no_counters():
  with pytest.raises(TypeError, match='counters'):
    random.bits(0.5)

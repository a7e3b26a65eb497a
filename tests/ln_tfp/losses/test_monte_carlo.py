"""The expected softmax against float64, quadrature and the paper's Eq. 14."""

import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from ln_tfp import backend
from ln_tfp.losses import monte_carlo

B, K = 5, 4


def draw(seed, step, num_samples, size):
  return backend.normal(seed, step, backend.places(num_samples), size)


def _problem(rank=0, samples=37, sigma=1., seed=0):
  """Returns labels, packed parameters and noise, in float64."""
  rng = np.random.default_rng(seed)
  packed = np.concatenate([
      rng.normal(0., 2., [B, K, 1]),
      rng.uniform(.1, 1., [B, K, 1]) * sigma,
      rng.normal(0., sigma, [B, K, rank])], axis=2)
  noise = rng.normal(size=[samples, K + rank])
  return rng.integers(0, K, B), packed, noise


def _probabilities(packed, noise, temperature):
  """Softmax of all samples at once, `[S, B, K]`."""
  mu, sigma, factor = packed[..., 0], packed[..., 1], packed[..., 2:]
  logits = mu + sigma * noise[:, None, :K]
  logits += tf.einsum('sr,bkr->sbk', noise[:, K:], factor)
  return tf.nn.softmax(logits / temperature)


def _reference(labels, packed, noise, temperature):
  """The straightforward loss and its gradient by differentiation."""
  packed = tf.constant(packed)
  with tf.GradientTape() as tape:
    tape.watch(packed)
    mean = tf.reduce_mean(_probabilities(packed, noise, temperature), axis=0)
    loss = -tf.math.log(tf.gather(mean, labels, batch_dims=1))
  return loss, tape.gradient(loss, packed)


def _loss(labels, packed, noise, temperature, dtype=tf.float32):
  packed = tf.cast(packed, dtype)
  with tf.GradientTape() as tape:
    tape.watch(packed)
    loss = monte_carlo.nll(labels, packed, noise, temperature)
  return loss, tape.gradient(loss, packed)


@pytest.mark.parametrize('compiled', ['eager', 'graph', 'xla'])
@pytest.mark.parametrize('rank', [0, 2])
@pytest.mark.slow
def test_loss_and_gradient_are_those_of_all_samples_at_once(
    rank, compiled, monkeypatch):
  monkeypatch.setattr(monte_carlo, '_CHUNK', B * K * 8)  # 4 chunks and 5 more
  problem = _problem(rank)
  function = _loss if compiled == 'eager' else tf.function(
      _loss, jit_compile=compiled == 'xla')
  loss, gradient = function(*problem, .5)
  expected_loss, expected_gradient = _reference(*problem, .5)
  np.testing.assert_allclose(loss, expected_loss, rtol=1e-5)
  np.testing.assert_allclose(gradient, expected_gradient, atol=1e-6)


def test_float64_is_computed_in_float64():
  problem = _problem(rank=1)
  for value, expected in zip(
      _loss(*problem, 2., tf.float64), _reference(*problem, 2.)):
    np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize('rank', [0, 2])
def test_samples_far_apart_neither_overflow_nor_underflow(rank):
  problem = _problem(rank, sigma=200.)
  loss, gradient = _loss(*problem, .1)
  expected_loss, expected_gradient = _reference(*problem, .1)
  np.testing.assert_allclose(loss, expected_loss, rtol=1e-3, atol=1e-3)
  np.testing.assert_allclose(gradient, expected_gradient, rtol=.02, atol=.02)


@pytest.mark.parametrize('sigma', [0., 1., 1e4])
def test_loss_and_gradient_are_finite_at_extreme_logits(sigma):
  labels, packed, noise = _problem(rank=1)
  packed[..., 0] = 1e4 * np.sign(packed[..., 0])
  packed[..., 1:] *= sigma
  for temperature in (.1, 20.):
    loss, gradient = _loss(labels, packed, noise, temperature)
    assert np.isfinite(loss).all()
    assert np.isfinite(gradient).all()


def test_the_gradient_in_mu_is_equation_14():
  labels, packed, noise = _problem()
  _, gradient = _loss(labels, packed, noise, 1.)
  softmax = _probabilities(packed, noise, 1.).numpy()
  for i, c in enumerate(labels):
    factor = softmax[:, i, c] / softmax[:, i, c].mean()
    expectation = (softmax[:, i] * factor[:, None]).mean(axis=0)
    np.testing.assert_allclose(
        gradient[i, :, 0], -(np.eye(K)[c] - expectation), atol=1e-6)


def test_without_variance_loss_and_gradient_are_those_of_cross_entropy():
  labels, packed, noise = _problem()
  packed[..., 1] = 0.
  loss, gradient = _loss(labels, packed, noise, 1.)
  softmax = tf.nn.softmax(packed[..., 0]).numpy()
  np.testing.assert_allclose(
      loss, -np.log(softmax[np.arange(B), labels]), rtol=1e-5)
  np.testing.assert_allclose(
      gradient[..., 0], softmax - np.eye(K)[labels], atol=1e-6)


def test_the_mean_converges_to_the_quadrature_of_two_classes():
  """With K = 2 the softmax is the sigmoid of a normal difference."""
  mu, sigma, factor, temperature = [1., -.5], [.8, 1.5], [2., .5], .7
  packed = tf.constant([np.transpose([mu, sigma, factor])], tf.float32)
  nodes, weights = np.polynomial.hermite_e.hermegauss(101)
  std = np.sqrt(sigma[0]**2 + sigma[1]**2 + (factor[0] - factor[1])**2)
  difference = (mu[0] - mu[1] + std * nodes) / temperature
  expected = weights @ (1 / (1 + np.exp(-difference))) / weights.sum()

  num_samples = 40_000
  noise = draw(1, 2, num_samples, 3)
  predicted = monte_carlo.probabilities(packed, noise, temperature)[0, 0]
  error = 4 * .5 / np.sqrt(num_samples)  # the sigmoid's deviation is < 1/2
  assert abs(predicted - expected) < error
  loss = monte_carlo.nll(tf.constant([0]), packed, noise, temperature)[0]
  np.testing.assert_allclose(loss, -np.log(predicted), rtol=1e-5)


@pytest.mark.parametrize('chunk', [1, B * K * 16, 2**19])
def test_probabilities_are_the_mean_over_all_samples(chunk, monkeypatch):
  monkeypatch.setattr(monte_carlo, '_CHUNK', chunk)
  _, packed, noise = _problem(rank=1)
  np.testing.assert_allclose(
      monte_carlo.probabilities(tf.cast(packed, tf.float32), noise, .5),
      tf.reduce_mean(_probabilities(packed, noise, .5), axis=0), atol=1e-6)


def test_noise_is_a_function_of_seed_and_step():
  first = draw(1, 2, 1000, 3)
  np.testing.assert_array_equal(first, draw(1, 2, 1000, 3))
  # A prefix: asking for more samples does not change those there were.
  np.testing.assert_array_equal(
      first[:10], draw(1, 2, 10, 3))
  for other in (draw(1, 3, 1000, 3),
                draw(2, 2, 1000, 3)):
    correlation = np.corrcoef(np.ravel(first), np.ravel(other))[0, 1]
    assert abs(correlation) < 4 / np.sqrt(3000)


_PEAK = """
import resource
import tensorflow as tf
from ln_tfp import backend
from ln_tfp.losses import monte_carlo

labels = tf.zeros([128], tf.int32)
packed = tf.ones([128, 100, 2])

@tf.function
def step():
  noise = backend.normal(0, 0, tf.range(10_000), 100)
  with tf.GradientTape() as tape:
    tape.watch(packed)
    loss = monte_carlo.nll(labels, packed, noise)
  return tape.gradient(loss, packed)

peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak()
step()
print((peak() - before) // 1024)
"""


@pytest.mark.slow
@pytest.mark.thorough
def test_ten_thousand_samples_of_a_hundred_classes_fit_in_little_memory():
  """All samples at once take 512 MB for each intermediate result."""
  output = subprocess.run(
      [sys.executable, '-c', _PEAK], check=True, capture_output=True,
      text=True).stdout
  assert int(output) < 200

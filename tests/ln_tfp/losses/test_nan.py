"""Noise against noise: its two gradients and where its noise comes from."""

import numpy as np
import pytest
import tensorflow as tf

from ln_tfp import losses

LABELS = tf.constant([0, 2, 1, 1])
IDS = tf.constant([11, 5, 7, 8], tf.int64)
LOGITS = tf.constant(
    [[1., 2., -1.], [.5, .1, 3.], [-4., 0., 2.], [-4., 0., 2.]])


def _loss(sigma=.5, gradient='fused', seed=3, step=4, labels=LABELS, ids=IDS,
          logits=LOGITS):
  with tf.GradientTape() as tape:
    tape.watch(logits)
    loss = losses.noise_against_noise(
        labels, logits, sigma, seed=seed, step=step, ids=ids,
        gradient=gradient)
  return loss.numpy(), tape.gradient(loss, logits).numpy()


@pytest.mark.parametrize('gradient', ['fused', 'log_softmax'])
def test_without_noise_it_is_cross_entropy(gradient):
  loss, slope = _loss(sigma=0., gradient=gradient)
  log_p = tf.nn.log_softmax(LOGITS).numpy()
  np.testing.assert_allclose(
      loss, -log_p[np.arange(4), LABELS.numpy()], rtol=1e-6)
  np.testing.assert_allclose(
      slope, np.exp(log_p) - np.eye(3)[LABELS.numpy()], atol=1e-6)


def _targets(**kwargs):
  """The noisy targets, read off the default gradient p - target."""
  return tf.nn.softmax(kwargs.get('logits', LOGITS)) - _loss(**kwargs)[1]


def test_the_loss_is_the_cross_entropy_to_the_noisy_target():
  expected = -np.sum(_targets() * tf.nn.log_softmax(LOGITS), axis=1)
  np.testing.assert_allclose(_loss()[0], expected, rtol=1e-5)


def test_the_log_softmax_gradient_is_that_of_the_loss_as_a_function():
  target = _targets().numpy()
  mass = target.sum(axis=1, keepdims=True)
  assert np.abs(mass - 1).min() > .01
  np.testing.assert_allclose(
      _loss(gradient='log_softmax')[1],
      mass * tf.nn.softmax(LOGITS) - target, atol=1e-5)


def test_the_noise_is_normal_around_the_label():
  num = 20_000
  labels = tf.zeros([num], tf.int32)
  noise = _targets(
      sigma=.75, labels=labels, ids=tf.range(num),
      logits=tf.zeros([num, 3])).numpy() - [1., 0., 0.]
  np.testing.assert_allclose(noise.mean(axis=0), 0., atol=4 * .75 / num**.5)
  np.testing.assert_allclose(noise.std(axis=0), .75, rtol=4 / (2 * num)**.5)
  correlation = np.corrcoef(noise.T) - np.eye(3)
  assert np.abs(correlation).max() < 4 / num**.5


def test_an_examples_noise_does_not_depend_on_the_rest_of_the_batch():
  loss, gradient = _loss()
  order = tf.constant([2, 0])
  part_loss, part_gradient = _loss(
      labels=tf.gather(LABELS, order), ids=tf.gather(IDS, order),
      logits=tf.gather(LOGITS, order))
  np.testing.assert_allclose(part_loss, loss[order], rtol=1e-5)
  np.testing.assert_allclose(part_gradient, gradient[order], rtol=1e-5)


def test_noise_is_redrawn_for_every_seed_step_and_example():
  loss = _loss()[0]
  np.testing.assert_array_equal(loss, _loss()[0])
  assert (loss != _loss(step=5)[0]).all()
  assert (loss != _loss(seed=4)[0]).all()
  assert loss[2] != loss[3]  # the same label and logits, another id

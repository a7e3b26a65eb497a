"""Generalised cross entropy: its limits and its clipping."""

import numpy as np
import pytest
import tensorflow as tf

from ln_tfp import losses

LABELS = tf.constant([0, 2, 1])
LOGITS = tf.constant([[1., 2., -1.], [.5, .1, 3.], [-4., 0., 2.]])


def _loss(q, logits=LOGITS, labels=LABELS):
  with tf.GradientTape() as tape:
    tape.watch(logits)
    loss = losses.generalized_cross_entropy(labels, logits, q)
  return loss.numpy(), tape.gradient(loss, logits).numpy()


def _label_probability():
  return np.take_along_axis(
      tf.nn.softmax(LOGITS).numpy(), LABELS.numpy()[:, None], axis=1)[:, 0]


def test_small_q_is_cross_entropy():
  loss, gradient = _loss(1e-6)
  np.testing.assert_allclose(loss, -np.log(_label_probability()), rtol=1e-4)
  np.testing.assert_allclose(
      gradient, tf.nn.softmax(LOGITS) - tf.one_hot(LABELS, 3), atol=1e-4)


def test_q_of_one_is_one_minus_the_probability():
  np.testing.assert_allclose(
      _loss(1.)[0], 1. - _label_probability(), rtol=1e-5)


@pytest.mark.parametrize('q', [.1, .7])
def test_the_gradient_is_that_of_cross_entropy_times_p_to_the_q(q):
  loss, gradient = _loss(q)
  p = _label_probability()
  np.testing.assert_allclose(loss, (1 - p**q) / q, rtol=1e-5)
  expected = tf.nn.softmax(LOGITS) - tf.one_hot(LABELS, 3)
  np.testing.assert_allclose(gradient, p[:, None]**q * expected, rtol=1e-4)


def test_below_the_clipped_probability_there_is_no_gradient():
  logits = tf.constant([[0., 20., 0.], [0., 15., 0.]])
  loss, gradient = _loss(.5, logits, tf.constant([0, 0]))
  np.testing.assert_allclose(loss[0], (1 - 1e-7**.5) / .5, rtol=1e-6)
  np.testing.assert_array_equal(gradient[0], 0.)
  assert np.abs(gradient[1]).max() > 1e-5

"""Generalised cross entropy: its limits and its clipping."""

import numpy as np
import pytest
from scipy import special

from ln_tfp import losses
from tests.ln_tfp import backends

LABELS = np.array([0, 2, 1])
LOGITS = np.array([[1., 2., -1.], [.5, .1, 3.], [-4., 0., 2.]], 'float32')
PROBABILITIES = special.softmax(LOGITS, axis=1)


def _loss(q, logits=LOGITS, labels=LABELS):
  return backends.value_and_gradient(
      lambda *batch: losses.generalized_cross_entropy(*batch, q), labels,
      logits)


def _label_probability():
  return PROBABILITIES[np.arange(3), LABELS]


def test_small_q_is_cross_entropy():
  loss, gradient = _loss(1e-6)
  np.testing.assert_allclose(loss, -np.log(_label_probability()), rtol=1e-4)
  np.testing.assert_allclose(
      gradient, PROBABILITIES - np.eye(3)[LABELS], atol=1e-4)


def test_q_of_one_is_one_minus_the_probability():
  np.testing.assert_allclose(
      _loss(1.)[0], 1. - _label_probability(), rtol=1e-5)


@pytest.mark.parametrize('q', [.1, .7])
def test_the_gradient_is_that_of_cross_entropy_times_p_to_the_q(q):
  loss, gradient = _loss(q)
  p = _label_probability()
  np.testing.assert_allclose(loss, (1 - p**q) / q, rtol=1e-5)
  expected = PROBABILITIES - np.eye(3)[LABELS]
  np.testing.assert_allclose(gradient, p[:, None]**q * expected, rtol=1e-4)


def test_below_the_clipped_probability_there_is_no_gradient():
  logits = np.array([[0., 20., 0.], [0., 15., 0.]], 'float32')
  loss, gradient = _loss(.5, logits, np.array([0, 0]))
  np.testing.assert_allclose(loss[0], (1 - 1e-7**.5) / .5, rtol=1e-6)
  np.testing.assert_array_equal(gradient[0], 0.)
  assert np.abs(gradient[1]).max() > 1e-5

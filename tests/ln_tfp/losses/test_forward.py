"""Forward correction: its loss and the estimate of its matrix."""

import numpy as np
import pytest
from scipy import special

from ln_tfp import losses
from tests.ln_tfp import backends

LABELS = np.array([0, 2])
LOGITS = np.array([[1., 2., -1.], [.5, .1, 3.]], 'float32')
MATRIX = np.array([[.7, .2, .1], [0., 1., 0.], [.3, .3, .4]])


def _loss(matrix, logits=LOGITS):
  return backends.value_and_gradient(
      lambda *batch: losses.forward_correction(*batch, matrix), LABELS, logits)


def test_with_the_identity_it_is_cross_entropy():
  loss, gradient = _loss(np.eye(3))
  log_p = special.log_softmax(LOGITS, axis=1)
  np.testing.assert_allclose(loss, [-log_p[0, 0], -log_p[1, 2]], rtol=1e-6)
  np.testing.assert_allclose(
      gradient, np.exp(log_p) - np.eye(3)[[0, 2]], atol=1e-6)


def test_the_loss_is_minus_log_of_p_times_the_matrix():
  mixed = special.softmax(LOGITS, axis=1) @ MATRIX
  np.testing.assert_allclose(
      _loss(MATRIX)[0], -np.log([mixed[0, 0], mixed[1, 2]]), rtol=1e-5)


def test_it_is_finite_where_the_softmax_underflows():
  logits = np.array([[-1e4, 1e4, -1e4], [1e4, 1e4, -1e4]], 'float32')
  for matrix in (MATRIX, np.eye(3)):
    loss, gradient = _loss(matrix, logits)
    assert np.isfinite(loss).all()
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize('matrix', [
    [[.5, .5]], [[.5, .6], [0., 1.]], [[1.5, -.5], [0., 1.]],
    [[float('nan'), 1.], [0., 1.]]])
def test_a_matrix_that_is_not_row_stochastic_is_refused(matrix):
  with pytest.raises(ValueError, match='`transition` must'):
    losses.ForwardCorrection(matrix)


def test_a_matrix_of_another_size_is_refused():
  with pytest.raises(ValueError, match=r'3 classes. Received: shape \(2, 2\)'):
    _loss(np.eye(2))


def test_the_rows_of_an_estimate_are_the_anchors_probabilities():
  # Class 0's probability rises from 0 to .99 over the examples.
  first = np.arange(100) / 100
  probabilities = np.stack([first, (1 - first) / 4, (1 - first) * 3 / 4], 1)
  matrix = losses.estimate_transition(probabilities, percentile=None)
  np.testing.assert_allclose(matrix[0], [.99, .0025, .0075])
  np.testing.assert_allclose(matrix[1], [0., .25, .75])
  matrix = losses.estimate_transition(probabilities, percentile=90)
  # The 90th percentile of 0..99 lies between 89 and 90; the higher is taken.
  np.testing.assert_allclose(matrix[0], [.9, .025, .075])


def test_an_estimate_from_a_perfect_noisy_classifier_is_the_true_matrix():
  """If each class has examples beyond doubt, they predict the noise itself."""
  classes = np.random.default_rng(0).integers(0, 3, 1000)
  np.testing.assert_allclose(
      losses.estimate_transition(MATRIX[classes]), MATRIX, atol=1e-12)


def test_an_estimates_rows_sum_to_one():
  probabilities = np.random.default_rng(0).dirichlet(np.ones(5), 50)
  matrix = losses.estimate_transition(probabilities.astype(np.float32) * 1.01)
  np.testing.assert_allclose(matrix.sum(axis=1), 1., rtol=1e-12)
  losses.ForwardCorrection(matrix)

"""Forward correction: what it asks of another run."""

import numpy as np
import pytest
import tensorflow as tf

from experiments import data
from experiments import methods
from ln_tfp import losses

LABELS = tf.constant([0, 2])
LOGITS = tf.constant([[1., 2., -1.], [.5, .1, 3.]])
MATRIX = np.array([[.7, .2, .1], [0., 1., 0.], [.3, .3, .4]])


def test_it_requires_cross_entropy_and_nobody_else_requires_anything():
  assert methods.get('Forward').requires() == methods.get('CE')
  for name in methods.NAMES:
    asking = methods.asks(methods.get(name))
    assert (asking is type(methods.get('Forward'))) == (name == 'CE')


def test_the_estimate_takes_the_percentile_of_the_data_set():
  probabilities = np.random.default_rng(0).dirichlet(np.ones(5), 200)
  for name, percentile in (('cifar10', 97), ('cifar100', None)):
    np.testing.assert_array_equal(
        methods.get('Forward').estimate(probabilities, data.traits(name)),
        losses.estimate_transition(probabilities, percentile))


def test_predictions_do_not_go_through_the_matrix():
  method = methods.get('Forward', transition=MATRIX)
  np.testing.assert_allclose(
      method.probabilities(LOGITS, num_classes=3), tf.nn.softmax(LOGITS))


def test_the_matrix_is_not_a_hyperparameter():
  method = methods.get('Forward', estimate_from='best', transition=MATRIX)
  assert method.hyperparameters() == {'estimate_from': 'best'}
  np.testing.assert_allclose(method.taken(), MATRIX)


def test_without_a_matrix_the_loss_is_refused():
  with pytest.raises(ValueError, match='needs a transition matrix'):
    methods.get('Forward').loss(
        LABELS, LOGITS, methods.Context(3, 0, 0, LABELS))

"""Label smoothing: its limits and its definition."""

import numpy as np
import tensorflow as tf

from experiments import methods

LABELS = tf.constant([0, 2])
LOGITS = tf.constant([[1., 2., -1.], [.5, .1, 3.]])


def _loss(label_smoothing):
  return methods.get('LS', label_smoothing=label_smoothing).loss(
      LABELS, LOGITS, methods.Context(3, seed=0, step=0, ids=LABELS))


def test_without_smoothing_it_is_cross_entropy():
  log_p = tf.nn.log_softmax(LOGITS).numpy()
  np.testing.assert_allclose(
      _loss(0.), [-log_p[0, 0], -log_p[1, 2]], rtol=1e-6)


def test_the_mass_goes_to_all_classes_the_label_included():
  log_p = tf.nn.log_softmax(LOGITS).numpy()
  expected = [-(.8 * log_p[0, 0] + .1 * log_p[0, 1] + .1 * log_p[0, 2]),
              -(.8 * log_p[1, 2] + .1 * log_p[1, 0] + .1 * log_p[1, 1])]
  np.testing.assert_allclose(_loss(.3), expected, rtol=1e-6)

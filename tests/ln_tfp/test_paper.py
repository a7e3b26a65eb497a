"""The analytic results of the paper, as they come out of the library."""

import math

import numpy as np
import pytest
from scipy import optimize
import tensorflow as tf

import ln_tfp
from ln_tfp import heads
from ln_tfp import normal


def test_gradient_with_respect_to_the_mean_is_eq_6():
  rng = np.random.default_rng(0)
  loc, diag = rng.normal(size=4), np.full(4, .5)
  factor = rng.normal(size=(1, 4))
  target = np.array([.1, .2, .3, .25, .15])
  loc = tf.constant(loc)
  with tf.GradientTape() as tape:
    tape.watch(loc)
    loss = -ln_tfp.LogisticNormal(loc, diag, factor.T).log_prob(target)
  scale = np.diag(diag) + factor.T @ factor
  residual = np.log(target[:-1] / target[-1]) - loc
  np.testing.assert_allclose(
      tape.gradient(loss, loc), -np.linalg.solve(scale @ scale.T, residual),
      rtol=1e-10)


def minimise_over_factor(residual, min_scale, start):
  """Returns the factor that minimises the loss, found numerically."""
  residual = tf.constant(residual, tf.float64)
  diag = tf.fill(residual.shape, tf.constant(min_scale, tf.float64))

  def loss_and_gradient(factor):
    factor = tf.constant(factor)
    with tf.GradientTape() as tape:
      tape.watch(factor)
      loss = normal.energy(residual, diag, factor)
    return loss.numpy(), tape.gradient(loss, factor).numpy()

  return optimize.minimize(loss_and_gradient, start, jac=True, tol=1e-12).x


@pytest.mark.slow
def test_optimal_covariance_is_the_outer_product_of_the_residual_eq_7():
  residual = np.array([2., -1., .5])
  factor = minimise_over_factor(residual, 1e-2, start=[.9, -.6, .1])
  scale = 1e-2 * np.eye(3) + np.outer(factor, factor)
  np.testing.assert_allclose(
      scale @ scale, np.outer(residual, residual), atol=5e-3)


def test_gradient_at_the_optimal_covariance_is_eq_8():
  residual = np.array([2., -1., .5])
  min_scale = 1e-3
  norm = np.linalg.norm(residual)
  # S = lambda I + c c^T with c parallel to r and an eigenvalue of |r|.
  factor = residual / norm * math.sqrt(norm - min_scale)
  variable = tf.constant(residual)
  with tf.GradientTape() as tape:
    tape.watch(variable)
    loss = normal.energy(variable, np.full(3, min_scale), factor)
  np.testing.assert_allclose(
      tape.gradient(loss, variable), residual / norm**2, atol=1e-9)


@pytest.mark.parametrize('min_scale', [.25, .5, 1.])
@pytest.mark.parametrize('residual', [.1, .4, .8, 2.])
def test_attenuation_starts_where_the_residual_exceeds_lambda(
    residual, min_scale):
  factor = minimise_over_factor([residual], min_scale, start=[.7])
  variance = (min_scale + factor[0]**2)**2
  np.testing.assert_allclose(
      variance, max(min_scale**2, residual**2), rtol=1e-2)


@pytest.mark.parametrize(('classes', 'value'), [(10, 6.9939), (100, 9.2103)])
def test_target_logits_are_c_at_the_label_and_zero_elsewhere(classes, value):
  # The loss is stationary in loc exactly where loc equals the target logits.
  labels = tf.range(classes)
  target = value * tf.eye(classes)
  packed = heads.pack(target, tf.ones_like(target))
  with tf.GradientTape() as tape:
    tape.watch(packed)
    loss = ln_tfp.nll(labels, packed)
  gradient = tape.gradient(loss, packed)[:, 0]
  np.testing.assert_allclose(gradient, np.zeros_like(gradient), atol=1e-4)


def test_without_the_dummy_class_the_last_target_is_minus_c_everywhere():
  classes = 4
  value = math.log((.99 * classes + .01) / .01)
  target = tf.concat([value * tf.eye(3), tf.fill([1, 3], -value)], axis=0)
  packed = heads.pack(target, tf.ones_like(target))
  with tf.GradientTape() as tape:
    tape.watch(packed)
    loss = ln_tfp.nll(tf.range(classes), packed, num_classes=classes)
  gradient = tape.gradient(loss, packed)[:, 0]
  np.testing.assert_allclose(gradient, np.zeros_like(gradient), atol=1e-4)


def test_a_factor_of_zero_is_a_stationary_point():
  factor = tf.zeros([3])
  with tf.GradientTape() as tape:
    tape.watch(factor)
    loss = normal.energy(tf.constant([1., 2., 3.]), tf.ones([3]), factor)
  np.testing.assert_array_equal(tape.gradient(loss, factor), np.zeros([3]))

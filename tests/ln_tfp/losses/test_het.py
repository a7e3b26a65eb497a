"""The heteroscedastic loss: how its cases nest, and its head."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import ln_tfp
from ln_tfp import backend
from ln_tfp import losses
from ln_tfp.losses import monte_carlo

K = 3
RNG = np.random.default_rng(0)
LABELS = tf.constant([0, 2, 1])
DIAGONAL = tf.constant(
    np.stack([RNG.normal(size=[3, K]), RNG.uniform(.1, 2., [3, K])], axis=2),
    tf.float32)


def _loss(outputs, samples=50, temperature=1., labels=LABELS):
  return losses.heteroscedastic_nll(
      labels, outputs, samples, temperature, seed=1, step=2)


def test_the_temperature_divides_mean_and_noise():
  np.testing.assert_allclose(
      _loss(DIAGONAL, temperature=4.), _loss(DIAGONAL / 4.), rtol=1e-5)
  np.testing.assert_allclose(
      losses.heteroscedastic_probabilities(DIAGONAL, 50, 4.),
      losses.heteroscedastic_probabilities(DIAGONAL / 4., 50), rtol=1e-5)


def test_without_a_factor_the_covariance_is_diagonal():
  outputs = tf.concat([DIAGONAL, tf.zeros([3, K, 2])], axis=2)
  noise = backend.normal(1, 2, np.arange(50), K + 2)[:, :K]
  np.testing.assert_allclose(
      _loss(outputs, temperature=2.),
      monte_carlo.nll(LABELS, DIAGONAL, noise, 2.), rtol=1e-5)


def test_a_small_variance_is_cross_entropy():
  outputs = tf.stack([DIAGONAL[..., 0], tf.zeros([3, K])], axis=2)
  np.testing.assert_allclose(
      _loss(outputs, samples=7),
      tf.nn.sparse_softmax_cross_entropy_with_logits(LABELS, outputs[..., 0]),
      rtol=1e-5)


def test_the_samples_are_shared_over_the_batch():
  outputs = tf.repeat(DIAGONAL[:1], 3, axis=0)
  loss = _loss(outputs, labels=tf.zeros([3], tf.int32))
  np.testing.assert_allclose(loss, loss[0].numpy())


def test_the_samples_do_not_depend_on_the_size_of_the_batch(monkeypatch):
  monkeypatch.setattr(monte_carlo, '_CHUNK', 3 * K * 16)
  together = _loss(DIAGONAL)
  alone = _loss(DIAGONAL[:1], labels=LABELS[:1])
  np.testing.assert_allclose(together[0], alone[0], rtol=1e-6)


@pytest.mark.parametrize('rank', [0, 2])
def test_the_head_packs_mean_deviation_and_factor(rank):
  head = ln_tfp.HeteroscedasticHead(K, rank)
  features = tf.constant(RNG.normal(size=[5, 4, 6]), tf.float32)
  outputs = head(features)
  assert outputs.shape == head.compute_output_shape(features.shape)
  assert outputs.shape == (5, 4, K, 2 + rank)
  linear = lambda layer: features.numpy() @ layer.kernel.numpy() + layer.bias
  np.testing.assert_allclose(outputs[..., 0], linear(head.loc), atol=1e-5)
  np.testing.assert_allclose(
      outputs[..., 1], np.log1p(np.exp(linear(head.scale))) + 1e-3,
      atol=1e-5)
  if rank:
    np.testing.assert_allclose(
        tf.linalg.matrix_transpose(outputs[..., 2:]),
        np.reshape(linear(head.factor), [5, 4, rank, K]), atol=1e-5)


def test_the_deviation_stays_positive():
  head = ln_tfp.HeteroscedasticHead(K)
  head.build((None, 1))
  head.scale.bias.assign(tf.fill([K], -1e4))
  np.testing.assert_allclose(head(tf.zeros([1, 1]))[0, :, 1], 1e-3)


def test_the_head_regularises_kernels_and_biases():
  l2 = keras.regularizers.L2(.5)
  head = ln_tfp.HeteroscedasticHead(K, 2, l2, l2)
  head(tf.zeros([1, 4]))
  for variable in head.trainable_variables:
    variable.assign(tf.ones_like(variable))
  assert float(sum(head.losses)) == pytest.approx(.5 * (4 + 1) * K * (2 + 2))


@pytest.mark.parametrize('head', [
    ln_tfp.HeteroscedasticHead, ln_tfp.LogisticNormalHead])
def test_a_rank_above_the_number_of_classes_is_refused_by_the_head(head):
  with pytest.raises(ValueError, match='`rank`.*Received: rank=4'):
    head(3, rank=4)

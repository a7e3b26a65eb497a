"""The heteroscedastic methods: how they nest, and their head."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from experiments import methods
from ln_tfp.losses import monte_carlo

K = 3
RNG = np.random.default_rng(0)
LABELS = tf.constant([0, 2, 1])
DIAGONAL = tf.constant(
    np.stack([RNG.normal(size=[3, K]), RNG.uniform(.1, 2., [3, K])], axis=2),
    tf.float32)


def _loss(method, outputs, **kwargs):
  arguments = {'num_classes': K, 'seed': 1, 'step': 2, 'ids': LABELS}
  return method.loss(LABELS, outputs, **{**arguments, **kwargs})


def test_het_tau_at_one_is_het():
  het = methods.get('Het', samples=50)
  tempered = methods.get('Het-tau', samples=50, temperature=1.)
  np.testing.assert_array_equal(
      _loss(tempered, DIAGONAL), _loss(het, DIAGONAL))


def test_het_tau_divides_mean_and_noise():
  het = methods.get('Het', samples=50)
  tempered = methods.get('Het-tau', samples=50, temperature=4.)
  np.testing.assert_allclose(
      _loss(tempered, DIAGONAL), _loss(het, DIAGONAL / 4.), rtol=1e-5)
  np.testing.assert_allclose(
      tempered.probabilities(DIAGONAL, num_classes=K),
      het.probabilities(DIAGONAL / 4., num_classes=K), rtol=1e-5)


def test_het_tau_sigma_without_a_factor_is_the_diagonal():
  full = methods.get('Het-tau-Sigma', samples=50, temperature=2., rank=2)
  outputs = tf.concat([DIAGONAL, tf.zeros([3, K, 2])], axis=2)
  noise = monte_carlo.draw(1, 2, 50, K + 2)[:, :K]
  np.testing.assert_allclose(
      _loss(full, outputs), monte_carlo.nll(LABELS, DIAGONAL, noise, 2.),
      rtol=1e-5)


def test_a_small_variance_is_cross_entropy():
  outputs = tf.stack([DIAGONAL[..., 0], tf.zeros([3, K])], axis=2)
  np.testing.assert_allclose(
      _loss(methods.get('Het', samples=7), outputs),
      tf.nn.sparse_softmax_cross_entropy_with_logits(LABELS, outputs[..., 0]),
      rtol=1e-5)


def test_the_samples_are_shared_over_the_batch():
  method = methods.get('Het', samples=50)
  outputs = tf.repeat(DIAGONAL[:1], 3, axis=0)
  loss = method.loss(
      tf.zeros([3], tf.int32), outputs, num_classes=K, seed=1, step=2,
      ids=tf.range(3))
  np.testing.assert_allclose(loss, loss[0].numpy())


def test_the_samples_do_not_depend_on_the_size_of_the_batch(monkeypatch):
  monkeypatch.setattr(monte_carlo, '_CHUNK', 3 * K * 16)
  method = methods.get('Het', samples=50)
  together = _loss(method, DIAGONAL)
  alone = method.loss(
      LABELS[:1], DIAGONAL[:1], num_classes=K, seed=1, step=2, ids=LABELS[:1])
  np.testing.assert_allclose(together[0], alone[0], rtol=1e-6)


@pytest.mark.parametrize('rank', [0, 2])
def test_the_head_packs_mean_deviation_and_factor(rank):
  head = methods.HeteroscedasticHead(K, rank)
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
  head = methods.HeteroscedasticHead(K)
  head.build((None, 1))
  head.scale.bias.assign(tf.fill([K], -1e4))
  np.testing.assert_allclose(head(tf.zeros([1, 1]))[0, :, 1], 1e-3)


def test_the_head_regularises_kernels_and_biases():
  l2 = keras.regularizers.L2(.5)
  head = methods.get('Het-tau-Sigma', rank=2).head(K, l2, l2)
  head(tf.zeros([1, 4]))
  for variable in head.trainable_variables:
    variable.assign(tf.ones_like(variable))
  assert float(sum(head.losses)) == pytest.approx(.5 * (4 + 1) * K * (2 + 2))


@pytest.mark.parametrize('name', ['Het-tau-Sigma', 'LN'])
def test_a_rank_above_the_number_of_classes_is_refused_by_the_head(name):
  method = methods.get(name, rank=4)
  with pytest.raises(ValueError, match='`rank`.*Received: rank=4'):
    method.head(3)

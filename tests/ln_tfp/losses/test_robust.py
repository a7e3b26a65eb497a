"""Robust losses against float64 transcriptions, their limits, extremes."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from ln_tfp import losses
from tests.ln_tfp.losses import test_definitions as definitions

FORMS = definitions.FORMS
K, LABELS, LOGITS = definitions.K, definitions.LABELS, definitions.LOGITS
softmax = definitions.softmax

_A = -np.log(1e-7)


def _nce(p):
  return np.log(p) / np.log(p).sum(-1, keepdims=True)


def _nnce(p):
  above = _A + np.log(np.maximum(p, 1e-7))
  return 1 - above / above.sum(-1, keepdims=True)


def _eps(p, m):
  likeliest = np.eye(K)[p.argmax(-1)]
  return -np.log(np.maximum((p + m * likeliest) / (1 + m), 1e-8))


# Name: the loss, and the same of each class's p as if it were the label.
CASES = {
    'SCE': (
        functools.partial(losses.symmetric_cross_entropy, alpha=.5, beta=2.),
        lambda p: -.5 * np.log(p) - 2 * np.log(1e-4) * (1 - p)),
    'NCE+RCE': (
        functools.partial(
            losses.normalized_reverse_cross_entropy, alpha=.5, beta=2.),
        lambda p: .5 * _nce(p) - 2 * np.log(1e-4) * (1 - p)),
    'ANL-CE': (
        functools.partial(
            losses.active_negative_cross_entropy, alpha=.5, beta=2.),
        lambda p: .5 * _nce(p) + 2 * _nnce(p)),
    'AGCE': (functools.partial(losses.asymmetric_gce, a=.6, q=.6),
             lambda p: (1.6**.6 - (.6 + p)**.6) / .6),
    'Taylor-CE': (
        functools.partial(losses.taylor_cross_entropy, order=4),
        lambda p: sum((1 - p)**i / i for i in range(1, 5))),
    'eps-softmax': (
        functools.partial(losses.epsilon_softmax, alpha=.5, beta=2., m=30.),
        lambda p: .5 * _eps(p, 30.) + 4 * (1 - p)),
    'bootstrapping': (functools.partial(losses.bootstrapping, trust=0.),
                      lambda p: -np.log(p)),
}
CLASSES = {
    'SCE': losses.SymmetricCrossEntropy,
    'NCE+RCE': losses.NormalizedReverseCrossEntropy,
    'ANL-CE': losses.ActiveNegativeCrossEntropy,
    'AGCE': losses.AsymmetricGCE,
    'Taylor-CE': losses.TaylorCrossEntropy,
    'eps-softmax': losses.EpsilonSoftmax,
    'bootstrapping': losses.Bootstrapping,
    'hard bootstrapping': functools.partial(
        losses.Bootstrapping, .2, 'hard'),
}
every = pytest.mark.parametrize('name', CASES)
every_class = pytest.mark.parametrize('name', CLASSES)


@FORMS
@every
def test_value_and_gradient_are_those_of_the_formula(name, labels):
  loss, definition = CASES[name]
  expected = lambda z: np.sum(
      definitions.target_of(labels) * definition(softmax(z)), axis=-1)
  value, gradient = definitions.value_and_gradient(
      lambda z: loss(labels, z), LOGITS)
  np.testing.assert_allclose(value, expected(LOGITS), rtol=1e-9)
  np.testing.assert_allclose(
      gradient, definitions.numeric_gradient(expected, LOGITS), atol=1e-6)


@FORMS
@pytest.mark.parametrize('kind', ['soft', 'hard'])
def test_bootstrapping_is_cross_entropy_to_a_fixed_mixture(labels, kind):
  p = softmax(LOGITS)
  own = p if kind == 'soft' else np.eye(K)[p.argmax(-1)]
  target = .7 * definitions.target_of(labels) + .3 * own
  value, gradient = definitions.value_and_gradient(
      lambda z: losses.bootstrapping(labels, z, .3, kind), LOGITS)
  np.testing.assert_allclose(
      value, -(target * np.log(p)).sum(-1), rtol=1e-9)
  np.testing.assert_allclose(gradient, p - target, atol=1e-9)


def _of_label(values):
  return values[np.arange(len(LABELS)), LABELS]


def test_the_limits_are_cross_entropy_gce_and_the_absolute_error():
  p = _of_label(softmax(LOGITS))
  check = functools.partial(np.testing.assert_allclose, rtol=1e-5)
  check(losses.symmetric_cross_entropy(LABELS, LOGITS, 1., 0.), -np.log(p))
  check(losses.asymmetric_gce(LABELS, LOGITS, 1e-9, .7),
        losses.generalized_cross_entropy(LABELS, LOGITS, .7))
  check(losses.taylor_cross_entropy(LABELS, LOGITS, 1), 1 - p)
  check(losses.taylor_cross_entropy(LABELS[:1], [[1., 0., 0., 0.]], 300),
        -np.log(softmax(np.array([1., 0., 0., 0.]))[0]))
  check(losses.epsilon_softmax(LABELS, LOGITS, 1., 0., 0.), -np.log(p))
  check(losses.normalized_reverse_cross_entropy(
      LABELS, LOGITS, 0., 1.), -np.log(1e-4) * (1 - p))
  for kind in ('soft', 'hard'):
    check(losses.bootstrapping(LABELS, LOGITS, 0., kind), -np.log(p))


def test_the_bounded_parts_sum_to_a_constant_over_the_labels():
  total = lambda loss, **weights: np.sum([
      loss(np.full(len(LOGITS), label), LOGITS, **weights)
      for label in range(K)], axis=0)
  reverse = losses.normalized_reverse_cross_entropy
  negative = losses.active_negative_cross_entropy
  check = functools.partial(np.testing.assert_allclose, rtol=1e-5)
  for loss in (reverse, negative):
    check(total(loss, alpha=1., beta=0.), 1.)
  check(total(reverse, alpha=0., beta=1.), -np.log(1e-4) * (K - 1))
  check(total(negative, alpha=0., beta=1.), K - 1.)


def test_the_eps_softmax_keeps_the_gradient_of_a_large_m_in_float32():
  logits = tf.constant([[2., 1., 0., 0.]])
  _, gradient = definitions.value_and_gradient(
      lambda z: losses.epsilon_softmax([0], z, 1., 0., 1e5), logits)
  _, exact = definitions.value_and_gradient(
      lambda z: losses.epsilon_softmax([0], z, 1., 0., 1e5),
      tf.cast(logits, tf.float64))
  np.testing.assert_allclose(gradient, exact, rtol=1e-4)
  assert np.abs(gradient).max() > 1e-6


@every_class
def test_values_and_gradients_are_finite_at_extreme_logits(name):
  extremes = np.array([[1e4, 0., -1e4, 0.], [0., 1e4, 0., -1e4],
                       [88., -88., 0., 0.], [0., 0., 0., 0.]], np.float32)
  loss = CLASSES[name](reduction=None)
  for labels in ([0, 0, 1, 2], [2, 3, 0, 0]):
    for value in definitions.value_and_gradient(
        lambda z, labels=labels: loss(labels, z), extremes):
      assert np.isfinite(value).all()


@pytest.mark.parametrize('name', [
    name if name in ('SCE', 'hard bootstrapping')
    else pytest.param(name, marks=pytest.mark.thorough) for name in CLASSES])
@pytest.mark.slow
def test_each_trains_and_survives_saving(name, tmp_path):
  rng = np.random.default_rng(0)
  y = rng.integers(0, 3, 240)
  x = (4 * np.array([[1, 0], [-1, 1], [-1, -1]])[y]
       + rng.normal(size=[240, 2])).astype('float32')
  keras.utils.set_random_seed(0)
  model = keras.Sequential([
      keras.Input([2]), keras.layers.Dense(16, 'relu'),
      keras.layers.Dense(3, dtype='float32')])
  # XLA and each loss: tests/experiments/methods. XLA and Keras: two of them.
  model.compile(
      keras.optimizers.Adam(.05), loss=CLASSES[name](),
      jit_compile=name in ('SCE', 'eps-softmax'))
  model.fit(x, y, batch_size=60, epochs=10, verbose=0)
  assert np.mean(model.predict(x, verbose=0).argmax(1) == y) > .9
  model.save(tmp_path / 'model.keras')
  loaded = keras.saving.load_model(tmp_path / 'model.keras')
  assert loaded.loss.get_config() == model.loss.get_config()
  np.testing.assert_allclose(
      loaded.loss(y, loaded(x)), model.loss(y, model(x)), rtol=1e-6)


@every_class
def test_ignored_labels_weights_and_probabilities_are_those_of_all_losses(
    name):
  make = CLASSES[name]
  some = make(ignore_class=-1, reduction=None)(
      np.where(LABELS == 2, -1, LABELS), LOGITS.astype('float32'))
  everything = make(reduction=None)(LABELS, LOGITS.astype('float32'))
  np.testing.assert_allclose(
      some, np.where(LABELS == 2, 0., everything), rtol=1e-6)
  weights = np.array([1., 0., 2., 1., 1., 1.])
  bad = np.where(weights == 0, 99, LABELS)  # which does not count
  np.testing.assert_allclose(
      make(reduction=None)(bad, LOGITS.astype('float32'), weights),
      weights * everything, rtol=1e-5)
  np.testing.assert_allclose(
      make(from_logits=False, reduction=None)(
          LABELS, softmax(LOGITS).astype('float32')), everything, rtol=1e-4)
  with pytest.raises(tf.errors.InvalidArgumentError, match='whole labels'):
    make()(LABELS + 3, LOGITS.astype('float32'))

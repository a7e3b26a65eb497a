"""The losses against their definitions in float64, in all forms of labels."""

import inspect

import keras
import numpy as np
import pytest
import tensorflow as tf

import ln_tfp
from ln_tfp import losses
from ln_tfp import random

K = 4
RNG = np.random.default_rng(0)
LOGITS = RNG.normal(0., 2., size=(6, K))
LABELS = np.array([0, 3, 1, 2, 2, 1])
SOFT = RNG.dirichlet(np.ones(K), size=6)
TRANSITION = RNG.dirichlet(np.ones(K), size=K)
FORMS = pytest.mark.parametrize(
    'labels', [LABELS, np.eye(K)[LABELS], SOFT],
    ids=['whole', 'one_hot', 'soft'])


def softmax(logits):
  exp = np.exp(logits - logits.max(axis=-1, keepdims=True))
  return exp / exp.sum(axis=-1, keepdims=True)


def target_of(labels):
  return np.eye(K)[labels] if labels.ndim == 1 else labels


def value_and_gradient(function, outputs):
  outputs = tf.constant(outputs)
  with tf.GradientTape() as tape:
    tape.watch(outputs)
    value = function(outputs)
  return value.numpy(), tape.gradient(value, outputs).numpy()


def numeric_gradient(function, outputs, step=1e-6):
  """Of `[batch]` values, each in its own example."""
  gradient = np.zeros_like(outputs)
  for index in np.ndindex(outputs.shape[1:]):
    change = np.zeros_like(outputs)
    change[(slice(None), *index)] = step
    gradient[(slice(None), *index)] = (
        function(outputs + change) - function(outputs - change)) / (2 * step)
  return gradient


@FORMS
@pytest.mark.parametrize('q', [1e-3, .7, 1.])
def test_generalized_cross_entropy_is_its_definition(labels, q):
  expected = lambda z: np.sum(
      target_of(labels) * (1 - softmax(z)**q) / q, axis=-1)
  value, gradient = value_and_gradient(
      lambda z: losses.generalized_cross_entropy(labels, z, q), LOGITS)
  np.testing.assert_allclose(value, expected(LOGITS), rtol=1e-9)
  np.testing.assert_allclose(
      gradient, numeric_gradient(expected, LOGITS), atol=1e-6)


@FORMS
def test_forward_correction_is_its_definition(labels):
  expected = lambda z: -np.sum(
      target_of(labels) * np.log(softmax(z) @ TRANSITION), axis=-1)
  value, gradient = value_and_gradient(
      lambda z: losses.forward_correction(labels, z, TRANSITION), LOGITS)
  np.testing.assert_allclose(value, expected(LOGITS), rtol=1e-9)
  np.testing.assert_allclose(
      gradient, numeric_gradient(expected, LOGITS), atol=1e-6)


@pytest.mark.parametrize('labels', [[1], [[0., 1.]]])
def test_forward_correction_learns_even_where_the_label_seems_impossible(
    labels):
  logits = tf.constant([[200., 0.]])
  value, gradient = value_and_gradient(
      lambda z: losses.forward_correction(labels, z, np.eye(2)), logits)
  np.testing.assert_allclose(value, 200., rtol=1e-5)
  np.testing.assert_allclose(gradient, [[1., -1.]], rtol=1e-5)


@FORMS
@pytest.mark.parametrize('gradient', ['fused', 'log_softmax'])
def test_noise_against_noise_is_cross_entropy_to_a_noisy_target(
    labels, gradient):
  ids = np.array([7, 8, 9, 1, 2, 3])
  noise = random.normal(5, 2, ids[:, np.newaxis], np.arange(K))
  target = target_of(labels) + .3 * noise
  p = softmax(LOGITS)
  value, actual = value_and_gradient(
      lambda z: losses.noise_against_noise(
          labels, z, .3, seed=5, step=2, ids=ids, gradient=gradient), LOGITS)
  np.testing.assert_allclose(
      value, -np.sum(target * np.log(p), axis=-1), rtol=1e-5)
  mass = 1. if gradient == 'fused' else target.sum(axis=-1, keepdims=True)
  np.testing.assert_allclose(actual, mass * p - target, rtol=1e-4, atol=1e-5)


def het_outputs(rank=1):
  return np.concatenate([
      LOGITS[..., None], RNG.uniform(.2, 1., size=(6, K, 1)),
      RNG.normal(size=(6, K, rank))], axis=-1)


@FORMS
def test_the_heteroscedastic_loss_is_the_mean_over_its_samples(labels):
  outputs = het_outputs()
  noise = random.normal(
      5, 2, np.arange(50)[:, np.newaxis], np.arange(K + 1))

  def mean(outputs):
    mu, sigma, factor = np.moveaxis(outputs, -1, 0)
    return np.mean([
        softmax((mu + sigma * e[:K] + factor * e[K]) / .7) for e in noise],
        axis=0)

  expected = lambda z: -np.sum(
      target_of(labels) * np.log(mean(z)), axis=-1)
  value, gradient = value_and_gradient(
      lambda z: losses.heteroscedastic_nll(labels, z, 50, .7, seed=5, step=2),
      outputs)
  np.testing.assert_allclose(value, expected(outputs), rtol=1e-5)
  np.testing.assert_allclose(
      gradient, numeric_gradient(expected, outputs), atol=1e-5)
  np.testing.assert_allclose(
      losses.heteroscedastic_probabilities(outputs, 50, .7, seed=5).shape,
      (6, K))


ALL = {
    'gce': losses.GeneralizedCrossEntropy(.3),
    'forward': losses.ForwardCorrection(TRANSITION),
    'nan': losses.NoiseAgainstNoise(.2, gradient='log_softmax', seed=1),
    'het': losses.HeteroscedasticNLL(np.int64(7), np.float32(.5), seed=1),
    'ln': ln_tfp.NegativeLogLikelihood(np.float32(.25), np.int32(5)),
    'isometric': losses.IsometricNLL(np.float32(.25)),
    'bootstrapping': losses.Bootstrapping(np.float32(.25), 'hard'),
    'eps': losses.EpsilonSoftmax(np.float32(.25), 1, np.int64(7)),
}


@pytest.mark.parametrize('name', ALL)
def test_every_loss_survives_serialisation(name):
  loss = ALL[name]
  config = keras.losses.serialize(loss)
  copy = keras.losses.deserialize(config)
  assert type(copy) is type(loss)
  assert copy.get_config() == loss.get_config()


@pytest.mark.parametrize('name', ['gce', 'forward', 'nan'])
def test_probabilities_may_be_given_instead_of_logits(name):
  first, second = (
      type(ALL[name]).from_config(
          {**ALL[name].get_config(), 'from_logits': from_logits})
      for from_logits in (True, False))
  np.testing.assert_allclose(
      first(LABELS, LOGITS), second(LABELS, softmax(LOGITS)), rtol=1e-5)


@pytest.mark.parametrize(('make', 'message'), [
    (lambda: losses.GeneralizedCrossEntropy(0.), r'`q` must be in \(0, 1\]'),
    (lambda: losses.GeneralizedCrossEntropy('1'), "`q`.*q='1', a str"),
    (lambda: losses.NoiseAgainstNoise(-1.), '`sigma`.*sigma=-1'),
    (lambda: losses.NoiseAgainstNoise(gradient='both'), "`gradient`.*'both'"),
    (lambda: losses.HeteroscedasticNLL(0), '`samples`.*samples=0'),
    (lambda: losses.HeteroscedasticNLL(5, 0.), '`temperature`.*0.0'),
    (lambda: ln_tfp.NegativeLogLikelihood(0.), '`label_smoothing`'),
    (lambda: ln_tfp.NegativeLogLikelihood(ignore_class=.5), '`ignore_class`'),
])
def test_wrong_arguments_are_named(make, message):
  with pytest.raises(ValueError, match=message):
    make()


def test_the_losses_of_two_heads_refuse_each_others_outputs():
  features = RNG.normal(size=(6, 5)).astype('float32')
  for rank in (0, 1):
    het = ln_tfp.HeteroscedasticHead(10, rank)(features)
    for read in (ln_tfp.nll, ln_tfp.Accuracy().update_state):
      with pytest.raises(ValueError, match='output of a LogisticNormalHead'):
        read(LABELS, het)
  ln = ln_tfp.LogisticNormalHead(10)(features)
  with pytest.raises(ValueError, match='output of a HeteroscedasticHead'):
    losses.HeteroscedasticNLL()(LABELS, ln)
  # Where shapes do not tell, the head's own loss knows the number of classes.
  het = ln_tfp.HeteroscedasticHead(4)(features)
  with pytest.raises(ValueError, match='`num_classes`'):
    ln_tfp.LogisticNormalHead(4).loss()(LABELS, het)


def test_nll_is_a_function_to_people_and_a_loss_to_keras():
  outputs = ln_tfp.LogisticNormalHead(K)(RNG.normal(size=(6, 5)))
  assert isinstance(ln_tfp.nll, keras.losses.Loss)
  assert ln_tfp.nll(LABELS, outputs).shape == (6,)
  assert ln_tfp.nll(LABELS, outputs, .1).shape == (6,)
  assert ln_tfp.nll(LABELS, outputs, None).shape == ()  # as Keras calls it
  assert list(inspect.signature(ln_tfp.nll).parameters) == [
      'y_true', 'y_pred', 'label_smoothing', 'num_classes', 'ignore_class']
  assert 'Eq. 4' in ln_tfp.nll.__doc__ and ln_tfp.nll.__name__ == 'nll'


def test_models_saved_when_nll_was_a_plain_function_still_load():
  old = {'module': 'builtins', 'class_name': 'function',
         'config': 'ln_tfp>nll', 'registered_name': 'function'}
  assert keras.losses.deserialize(old) is ln_tfp.nll
  copy = keras.losses.deserialize(keras.losses.serialize(ln_tfp.nll))
  assert type(copy) is type(ln_tfp.nll)


@pytest.mark.parametrize('policy', ['mixed_float16', 'mixed_bfloat16'])
def test_all_heads_see_the_same_precision_under_a_mixed_policy(policy):
  features = RNG.normal(size=(6, 5)).astype('float32')
  keras.config.set_dtype_policy(policy)
  try:
    heads = [ln_tfp.LogisticNormalHead(K), ln_tfp.HeteroscedasticHead(K),
             keras.layers.Dense(K, dtype='float32')]
    outputs = [head(features) for head in heads]
  finally:
    keras.config.set_dtype_policy('float32')
  assert {o.dtype for o in outputs} == {tf.float32}
  loc = heads[0].loc
  np.testing.assert_allclose(  # nothing was rounded to half precision
      outputs[0][:, 0],
      (features.astype('float64') @ loc.kernel.numpy()) / .5, rtol=1e-5,
      atol=1e-6)

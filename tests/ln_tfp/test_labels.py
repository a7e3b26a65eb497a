"""Labels in every form, through every loss and metric."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import ln_tfp
from ln_tfp import heads
from ln_tfp import labels as labels_lib
from ln_tfp import losses

K = 4
LABELS = np.array([0, 3, 1, 2, 2, 1])
TRANSITION = .7 * np.eye(K) + .3 / K
LOSSES = {
    'ln': lambda **kwargs: ln_tfp.NegativeLogLikelihood(**kwargs),
    'gce': lambda **kwargs: losses.GeneralizedCrossEntropy(.6, **kwargs),
    'forward': lambda **kwargs: losses.ForwardCorrection(TRANSITION, **kwargs),
    'nan': lambda **kwargs: losses.NoiseAgainstNoise(.3, seed=1, **kwargs),
    'het': lambda **kwargs: losses.HeteroscedasticNLL(9, .5, seed=1, **kwargs),
}
METRICS = {
    'accuracy': ln_tfp.Accuracy,
    'nll': ln_tfp.PredictiveNLL,
    'ece': ln_tfp.ExpectedCalibrationError,
}
EVERY_LOSS = pytest.mark.parametrize('name', LOSSES)
EVERY_METRIC = pytest.mark.parametrize('name', METRICS)


def outputs_for(name, batch=(6,)):
  """What the head that goes with a loss might return."""
  rng = np.random.default_rng(0)
  logits = rng.normal(size=(*batch, K))
  if name == 'ln' or name in METRICS:
    scale = np.full_like(logits, .5)
    values = np.stack([logits, scale, rng.normal(size=logits.shape)], axis=-2)
  elif name == 'het':
    values = np.stack([logits, np.full_like(logits, .8)], axis=-1)
  else:
    values = logits
  return tf.constant(values, tf.float32)


def value(name, labels, outputs, sample_weight=None, **kwargs):
  """The loss or metric of a new object: the random ones repeat themselves."""
  if name in LOSSES:
    return float(LOSSES[name](**kwargs)(labels, outputs, sample_weight))
  metric = METRICS[name](**kwargs)
  metric.update_state(labels, outputs, sample_weight)
  return float(metric.result())


@pytest.mark.parametrize('name', [*LOSSES, *METRICS])
def test_every_form_of_the_same_labels_gives_the_same_number(name):
  outputs = outputs_for(name)
  expected = value(name, LABELS, outputs)
  for labels in (
      LABELS[:, np.newaxis], LABELS.astype('float32'), LABELS.astype('uint8'),
      LABELS.astype('int64'), np.eye(K)[LABELS], np.eye(K, dtype=int)[LABELS]):
    np.testing.assert_allclose(
        value(name, labels, outputs), expected, rtol=1e-5)


@EVERY_LOSS
def test_a_batch_of_one_is_the_batch_of_it_alone(name):
  for labels in (LABELS[:1], LABELS[:1, np.newaxis], np.eye(K)[LABELS[:1]]):
    result = LOSSES[name](reduction=None)(labels, outputs_for(name)[:1])
    assert result.shape == (1,)
    np.testing.assert_allclose(
        result, LOSSES[name](reduction=None)(LABELS, outputs_for(name))[:1],
        rtol=1e-5)


@pytest.mark.parametrize('name', [*LOSSES, *METRICS])
def test_sequences_are_examples_in_two_dimensions(name):
  flat, sequences = outputs_for(name), outputs_for(name, (2, 3))
  expected = value(name, LABELS, flat)
  labels = LABELS.reshape(2, 3)
  for form in (labels, labels[..., np.newaxis], np.eye(K)[labels]):
    np.testing.assert_allclose(
        value(name, form, sequences), expected, rtol=1e-5)


@EVERY_LOSS
def test_the_loss_of_soft_labels_is_finite_and_has_a_gradient(name):
  soft = np.random.default_rng(1).dirichlet(np.ones(K), size=6)
  outputs = outputs_for(name)
  with tf.GradientTape() as tape:
    tape.watch(outputs)
    loss = LOSSES[name]()(soft, outputs)
  assert np.isfinite(loss)
  assert np.abs(tape.gradient(loss, outputs)).max() > 1e-4


@pytest.mark.parametrize('name', [*LOSSES, *METRICS])
@pytest.mark.parametrize('bad', [-1, K, 1.7, np.nan])
def test_a_label_that_is_no_class_is_refused(name, bad):
  labels = LABELS.astype('float32')
  labels[2] = bad
  with pytest.raises(tf.errors.InvalidArgumentError, match='`y_true`'):
    value(name, labels, outputs_for(name))


@pytest.mark.parametrize('name', [*LOSSES, *METRICS])
def test_a_label_beyond_int32_does_not_wrap_around_into_a_class(name):
  labels = LABELS.astype('int64')
  labels[2] += 2**32
  with pytest.raises(tf.errors.InvalidArgumentError, match='`y_true`'):
    value(name, labels, outputs_for(name))
  with pytest.raises(tf.errors.InvalidArgumentError, match='4294967297'):
    labels_lib.Labels(labels, (6,), K)


@EVERY_LOSS
@pytest.mark.slow
def test_compiled_by_xla_loss_and_gradient_of_an_invalid_label_are_nan(name):
  loss = LOSSES[name](reduction=None)

  @tf.function(jit_compile=True)
  def loss_and_gradient(labels, outputs):
    with tf.GradientTape() as tape:
      tape.watch(outputs)
      values = loss(labels, outputs)
    return values, tape.gradient(values, outputs)

  labels = LABELS.astype('float32')
  labels[2], labels[4] = -1, 1.7
  bad = np.isin(np.arange(6), [2, 4])
  values, gradient = loss_and_gradient(labels, outputs_for(name))
  np.testing.assert_array_equal(np.isnan(values), bad)
  gradient = np.isnan(gradient).reshape(6, -1)
  np.testing.assert_array_equal(gradient.all(axis=1), bad)
  np.testing.assert_array_equal(gradient.any(axis=1), bad)


@EVERY_METRIC
@pytest.mark.slow
def test_compiled_by_xla_the_metric_of_an_invalid_label_is_nan(name):
  metric = METRICS[name]()
  update = tf.function(metric.update_state, jit_compile=True)
  outputs = outputs_for(name)
  update(tf.constant(LABELS, tf.float32), outputs)
  assert np.isfinite(metric.result())
  # Neither the label nor what XLA may make of it is the predicted class.
  labels = LABELS.astype('float32')
  labels[2] = K
  update(tf.constant(labels), outputs)
  assert np.isnan(metric.result())


@pytest.mark.parametrize('jit_compile', [False, True])
@pytest.mark.parametrize('name', [*LOSSES, *METRICS])
def test_labels_of_weight_zero_neither_count_nor_fail(name, jit_compile):
  labels, weights = LABELS.astype('float32'), np.ones(6, 'float32')
  outputs = outputs_for(name)
  labels[4:], weights[4:] = [-1, np.nan], 0.
  good = LABELS.astype('float32')
  expected = value(name, good, outputs, weights)
  if jit_compile:
    item = LOSSES[name]() if name in LOSSES else METRICS[name]()
    function = item if name in LOSSES else item.update_state
    result = tf.function(function, jit_compile=True)(
        tf.constant(labels), outputs, tf.constant(weights))
    actual = float(result if name in LOSSES else item.result())
  else:
    actual = value(name, labels, outputs, weights)
  np.testing.assert_allclose(actual, expected, rtol=1e-5)
  with pytest.raises(tf.errors.InvalidArgumentError, match='`y_true`'):
    value(name, labels, outputs, np.ones(6, 'float32'))


@pytest.mark.parametrize('name', [*LOSSES, *METRICS])
def test_masked_labels_neither_count_nor_fail(name):
  outputs, labels = outputs_for(name, (2, 3)), LABELS.reshape(2, 3).copy()
  mask = np.array([[True, True, False], [True, False, False]])
  outputs._keras_mask = tf.constant(mask)
  expected = value(name, labels, outputs)
  labels[~mask] = 99
  np.testing.assert_allclose(value(name, labels, outputs), expected, rtol=1e-6)
  one_hot = np.eye(K)[np.where(mask, labels, 0)]
  one_hot[~mask] = np.nan
  np.testing.assert_allclose(
      value(name, one_hot, outputs), expected, rtol=1e-5)


@pytest.mark.parametrize('ignore_class', [-1, 255, 2])
@pytest.mark.parametrize('name', [*LOSSES, *METRICS])
def test_an_ignored_class_is_as_if_it_were_not_there(name, ignore_class):
  labels = LABELS.copy()
  labels[4:] = ignore_class
  kept = labels != ignore_class
  outputs = outputs_for(name)
  expected = value(name, labels[kept], outputs[kept])
  if name == 'nan':  # whose noise belongs to places
    per_example = LOSSES[name](reduction=None)(
        np.where(kept, labels, 0), outputs)
    expected = float(np.mean(per_example.numpy()[kept]))
  actual = value(name, labels, outputs, ignore_class=ignore_class)
  np.testing.assert_allclose(actual, expected, rtol=1e-5)


def test_the_function_gives_an_ignored_label_no_loss_and_no_gradient():
  labels = np.where(LABELS == 3, -1, LABELS)
  outputs = outputs_for('ln')
  with tf.GradientTape() as tape:
    tape.watch(outputs)
    loss = ln_tfp.nll(labels, outputs, ignore_class=-1)
  np.testing.assert_array_equal(loss == 0., labels == -1)
  gradient = tape.gradient(loss, outputs).numpy()
  np.testing.assert_array_equal(
      (gradient == 0.).all(axis=(1, 2)), labels == -1)


def test_one_hot_rows_of_the_ignored_class_are_ignored():
  outputs = outputs_for('ln')
  np.testing.assert_allclose(
      ln_tfp.nll(np.eye(K)[LABELS], outputs, ignore_class=2),
      ln_tfp.nll(LABELS, outputs, ignore_class=2), rtol=1e-5)


def test_a_row_of_zeros_is_no_class():
  outputs = heads.pack(tf.constant([[5., 0., 0.]] * 2), tf.ones([2, 3]))
  rows = np.array([[0., 0., 0.], [1., 0., 0.]])
  accuracy = ln_tfp.Accuracy()
  accuracy.update_state(rows, outputs)
  assert accuracy.result() == .5


@pytest.mark.parametrize('shape', [(6,), (6, 1)])
@pytest.mark.parametrize('name', [*LOSSES, *METRICS])
def test_weights_are_those_of_keras(name, shape):
  weights = np.random.default_rng(2).uniform(size=6).astype('float32')
  outputs = outputs_for(name)
  actual = value(name, LABELS, outputs, weights.reshape(shape))
  if name in LOSSES:
    values = LOSSES[name](reduction=None)(LABELS, outputs).numpy()
    np.testing.assert_allclose(actual, np.mean(values * weights), rtol=1e-5)
  else:
    np.testing.assert_allclose(
        actual, value(name, LABELS, outputs, weights), rtol=1e-6)


@EVERY_LOSS
def test_weights_of_sequences_are_those_of_their_steps(name):
  outputs, labels = outputs_for(name, (2, 3)), LABELS.reshape(2, 3)
  weights = np.array([.5, 2.], 'float32')
  np.testing.assert_allclose(
      value(name, labels, outputs, weights),
      value(name, labels, outputs, np.repeat(weights[:, None], 3, axis=1)),
      rtol=1e-6)


def model_of(name):
  last = {'ln': ln_tfp.LogisticNormalHead(K),
          'het': ln_tfp.HeteroscedasticHead(K)}.get(name)
  return keras.Sequential(
      [keras.Input((5,)), last or keras.layers.Dense(K)])


@pytest.mark.parametrize('name', [*LOSSES, 'function'])
@pytest.mark.slow
def test_fit_never_checks_labels_of_weight_zero(name):
  model = model_of('ln' if name == 'function' else name)
  loss = ln_tfp.nll if name == 'function' else LOSSES[name]()
  model.compile('sgd', loss=loss)
  x = np.random.default_rng(0).normal(size=(6, 5)).astype('float32')
  labels, weights = LABELS.copy(), np.ones(6)
  labels[1], weights[1] = -1, 0.
  history = model.fit(x, labels, sample_weight=weights, verbose=0)
  assert np.isfinite(history.history['loss']).all()
  with pytest.raises(tf.errors.InvalidArgumentError, match='`y_true`'):
    model.fit(x, labels, verbose=0)


@pytest.mark.slow
def test_weighted_metrics_never_check_labels_of_weight_zero():
  model = model_of('ln')
  model.compile('sgd', loss=ln_tfp.nll, weighted_metrics=[ln_tfp.Accuracy()])
  x = np.random.default_rng(0).normal(size=(6, 5)).astype('float32')
  result = model.evaluate(
      x, np.where(LABELS == 3, 9, LABELS), sample_weight=LABELS != 3,
      verbose=0, return_dict=True)
  kept = LABELS != 3
  expected = ln_tfp.Accuracy()
  expected.update_state(LABELS[kept], model(x[kept]))
  np.testing.assert_allclose(result['accuracy'], expected.result(), rtol=1e-6)


@pytest.mark.slow
def test_a_callback_of_keras_stops_training_where_assertions_are_dropped():
  model = model_of('ln')
  model.compile('sgd', loss=ln_tfp.nll, jit_compile=True)
  x = np.zeros((6, 5), 'float32')
  labels = np.where(LABELS == 3, 9, LABELS)
  history = model.fit(x, labels, epochs=5, verbose=0,
                      callbacks=[keras.callbacks.TerminateOnNaN()])
  assert len(history.epoch) == 1

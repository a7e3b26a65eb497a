"""The library inside Keras: fit, save, replicas, XLA, tf_keras."""


import keras
import numpy as np
import pytest
from sklearn import datasets
import tensorflow as tf

import ln_tfp


def small_model(**head_arguments):
  return keras.Sequential([
      keras.layers.Input((6,)), keras.layers.Dense(16, activation='relu'),
      ln_tfp.LogisticNormalHead(3, **head_arguments)])


def small_data(n=70):
  rng = np.random.default_rng(0)
  x = rng.normal(size=(n, 6)).astype('float32')
  return x, x[:, :3].argmax(axis=1)


@pytest.mark.parametrize('settings', [
    dict(), dict(jit_compile=True), dict(run_eagerly=True),
    dict(steps_per_execution=2)], ids=str)
@pytest.mark.slow
def test_fit_learns_in_every_mode(settings):
  x, y = small_data(320)
  model = small_model()
  model.compile(keras.optimizers.Adam(.1), loss=ln_tfp.nll,
                metrics=[ln_tfp.Accuracy()], **settings)
  model.fit(x, y, epochs=4, verbose=0)
  assert model.evaluate(x, y, verbose=0)[1] > .8


@pytest.mark.parametrize('form, as_function', [
    ('flat', True), ('column', True), ('one_hot', True), ('float', True),
    ('flat', False), ('one_hot', False)])
@pytest.mark.slow
def test_two_classes_without_the_dummy_class(form, as_function):
  # D = 1, where Keras squeezes what it passes to a loss function.
  x, _ = small_data(320)
  y = (x[:, 0] > 0.).astype(int)
  labels = {'flat': y, 'column': y[:, np.newaxis], 'one_hot': np.eye(2)[y],
            'float': y.astype('float32')}[form]
  model = keras.Sequential([
      keras.layers.Input((6,)),
      ln_tfp.LogisticNormalHead(2, dummy_class=False)])
  function = lambda y_true, y_pred: ln_tfp.nll(y_true, y_pred, num_classes=2)
  model.compile(
      keras.optimizers.Adam(.3),
      loss=function if as_function else (
          ln_tfp.NegativeLogLikelihood(num_classes=2)),
      metrics=[ln_tfp.Accuracy(num_classes=2)])
  model.fit(x, labels, epochs=8, verbose=0)
  assert model.evaluate(x, labels, verbose=0)[1] > .9


@pytest.mark.slow
def test_mixed_precision_trains():
  x, y = small_data(320)
  model = small_model(dtype='mixed_bfloat16')
  model.compile(keras.optimizers.Adam(1e-2), loss=ln_tfp.nll,
                metrics=[ln_tfp.Accuracy(), ln_tfp.ExpectedCalibrationError()])
  history = model.fit(x, y, epochs=3, verbose=0).history['loss']
  assert np.all(np.isfinite(history)) and history[-1] < history[0]


@pytest.mark.slow
def test_a_wrong_label_stops_fit():
  x, y = small_data()
  y[11] = 3
  model = small_model()
  model.compile('sgd', loss=ln_tfp.nll)
  with pytest.raises(tf.errors.InvalidArgumentError, match='`y_true`'):
    model.fit(x, y, verbose=0)


def test_a_model_without_the_head_is_refused():
  x, y = small_data()
  model = keras.Sequential([keras.layers.Input((6,)), keras.layers.Dense(3)])
  model.compile('sgd', loss=ln_tfp.nll)
  with pytest.raises(ValueError, match='Argument `y_'):
    model.fit(x, y, verbose=0)


@pytest.mark.slow
def test_keras_own_accuracy_fails_loudly_on_packed_outputs():
  x, y = small_data()
  model = small_model()
  model.compile('sgd', loss=ln_tfp.nll, metrics=['accuracy'])
  with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
    model.fit(x, y, verbose=0)


@pytest.mark.slow
def test_distribution_outputs_of_tf_keras_train():
  import tensorflow_probability as tfp
  import tf_keras
  x, y = small_data(320)
  model = tf_keras.Sequential([
      tf_keras.layers.Dense(6, input_shape=(6,)),
      tfp.layers.DistributionLambda(lambda t: ln_tfp.LogisticNormal(
          t[..., :3], .5 * tf.ones_like(t[..., :3]),
          t[..., 3:, tf.newaxis], .5))])
  loss = lambda y, d: ln_tfp.nll(y, d, num_classes=3)
  model.compile(tf_keras.optimizers.Adam(.02), loss=loss)
  history = model.fit(x, y, epochs=5, verbose=0).history['loss']
  assert history[-1] < history[0] - 1.


def digits():
  """Scikit-learn's digits, 1,300 with noisy labels and 497 with clean ones."""
  data = datasets.load_digits()
  rng = np.random.default_rng(0)
  order = rng.permutation(len(data.target))
  x = (data.data[order] / 16.).astype('float32')
  y = data.target[order]
  flip = rng.uniform(size=1300)
  noisy = np.where(flip < .4, rng.integers(0, 10, 1300), y[:1300])
  return (x[:1300], noisy), (x[1300:], y[1300:])


@pytest.mark.slow
@pytest.mark.thorough
def test_ln_learns_through_noise_where_cross_entropy_memorises():
  # Other noise, and all methods: tests/experiments/training.
  train, test = digits()
  accuracy = {}
  for name, head, loss, metric in (
      ('LN', ln_tfp.LogisticNormalHead(10, temperature=1.), ln_tfp.nll,
       ln_tfp.Accuracy()),
      ('CE', keras.layers.Dense(10),
       keras.losses.SparseCategoricalCrossentropy(from_logits=True),
       'accuracy')):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([
        keras.layers.Input((64,)), keras.layers.Dense(256, activation='relu'),
        keras.layers.Dense(256, activation='relu'), head])
    model.compile(keras.optimizers.Adam(1e-3), loss=loss, metrics=[metric],
                  steps_per_execution=21)  # an epoch: most of the time is Keras
    model.fit(*train, batch_size=64, epochs=100, verbose=0)
    accuracy[name] = model.evaluate(*test, verbose=0)[1]
  assert accuracy['LN'] >= .93
  assert accuracy['CE'] < .75

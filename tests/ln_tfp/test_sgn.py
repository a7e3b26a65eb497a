"""SGN around a Keras model."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import ln_tfp

K = 3
pytestmark = pytest.mark.filterwarnings(
    'ignore:__array__ implementation:DeprecationWarning')


def _data():
  rng = np.random.default_rng(0)
  y = rng.integers(0, K, 120)
  x = 3 * np.array([[1, 0], [-1, 1], [-1, -1]])[y] + rng.normal(size=[120, 2])
  return x.astype('float32'), y


def _model(normalised=False, warm_up=0):
  keras.utils.set_random_seed(0)
  return keras.Sequential([
      keras.Input([2]), keras.layers.Dense(8, 'relu'),
      *([keras.layers.BatchNormalization()] if normalised else []),
      ln_tfp.LogisticNormalHead(
          K, temperature=1., min_scale=1., warm_up=warm_up)])


def test_the_warm_up_of_the_head_is_left_out():
  x, _ = _data()
  outputs = []
  for warm_up in (0, 9):
    model = _model(warm_up=warm_up)
    sgn = ln_tfp.ShiftedGaussianNoise(model)
    outputs += [sgn(x, training=True), sgn.average(x, training=True)]
  for other in outputs[1:]:
    np.testing.assert_array_equal(outputs[0], other)


@pytest.mark.slow
def test_without_a_shift_it_is_the_isometric_likelihood_in_fit():
  x, y = _data()
  weights = []
  for wrap in (lambda model: model,
               lambda model: ln_tfp.ShiftedGaussianNoise(model, alpha=1.)):
    model = _model()
    trained = wrap(model)
    loss = {} if trained is not model else {
        'loss': ln_tfp.losses.IsometricNLL()}
    trained.compile(keras.optimizers.SGD(.01), **loss)
    trained.fit(x, y, batch_size=40, epochs=2, shuffle=False, verbose=0)
    weights.append(model.get_weights())
  for one, other in zip(*weights):
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
def test_the_average_follows_each_step_with_its_own_statistics():
  x, y = _data()
  model = _model(normalised=True)
  sgn = ln_tfp.ShiftedGaussianNoise(model, alpha=.5, decay=.8)
  sgn.compile(keras.optimizers.SGD(.05, .9), metrics=[ln_tfp.Accuracy()])
  kernel = lambda network: network.layers[0].kernel.numpy().astype('float64')
  expected = kernel(model)
  for _ in range(3):
    sgn.fit(x, y, batch_size=120, verbose=0)
    expected = .8 * expected + .2 * kernel(model)
    np.testing.assert_allclose(kernel(sgn.average), expected, rtol=1e-5)
  statistics = [network.layers[1].moving_mean.numpy()
                for network in (model, sgn.average)]
  assert np.abs(statistics[1]).max() > 0
  assert not np.array_equal(*statistics)
  assert len(sgn.optimizer.variables) == 2 + len(model.trainable_variables)


@pytest.mark.slow
@pytest.mark.filterwarnings('ignore:Your input ran out of data:UserWarning')
@pytest.mark.parametrize('is_stream', [False, True])
def test_the_fractional_epoch_decides_how_far_the_targets_shift(
    monkeypatch, is_stream):
  x, y = _data()
  sgn = ln_tfp.ShiftedGaussianNoise(_model(), alpha=.5)
  sgn.compile('sgd', run_eagerly=True)
  shifts = []
  original = ln_tfp.losses.isometric_nll

  def spy(*arguments, shift, **keywords):
    shifts.append(float(shift))
    return original(*arguments, shift=shift, **keywords)

  monkeypatch.setattr('ln_tfp.losses.isometric_nll', spy)
  if is_stream:  # of a length that only its first epoch tells
    batches = tf.data.Dataset.from_tensor_slices((x, y)).batch(60)
    sgn.fit(batches.filter(lambda *_: True), epochs=2, verbose=0,
            shuffle=False)
  else:
    sgn.fit(x, y, batch_size=60, epochs=2, verbose=0)
  epochs = np.array([0., 0. if is_stream else .5, 1., 1.5])
  np.testing.assert_allclose(shifts, 1 - .5**epochs, rtol=1e-6)


@pytest.mark.slow
def test_it_learns_is_saved_whole_and_gives_two_classifiers(tmp_path):
  x, y = _data()
  sgn = ln_tfp.ShiftedGaussianNoise(_model(), alpha=.9, decay=.9)
  sgn.compile(keras.optimizers.Adam(.03), metrics=[ln_tfp.Accuracy()])
  sgn.fit(x, y, epochs=15, verbose=0)
  assert sgn.evaluate(x, y, verbose=0, return_dict=True)['accuracy'] > .9
  for network in (sgn.model, sgn.average):
    classifier = ln_tfp.to_classifier(network)
    assert np.mean(classifier.predict(x, verbose=0).argmax(1) == y) > .9
  sgn.save(tmp_path / 'sgn.keras')
  loaded = keras.saving.load_model(tmp_path / 'sgn.keras')
  for one, other in ((sgn, loaded), (sgn.average, loaded.average)):
    np.testing.assert_array_equal(
        one.predict(x, verbose=0), other.predict(x, verbose=0))
  loaded.fit(x, y, verbose=0)


def test_wrong_arguments_are_named():
  with pytest.raises(ValueError, match='`alpha`'):
    ln_tfp.ShiftedGaussianNoise(_model(), alpha=0.)
  with pytest.raises(ValueError, match='`model` must be built'):
    ln_tfp.ShiftedGaussianNoise(
        keras.Sequential([ln_tfp.LogisticNormalHead(3)]))
  with pytest.raises(ValueError, match='`loss` must be None'):
    ln_tfp.ShiftedGaussianNoise(_model()).compile('sgd', loss='mse')

"""The losses as Keras uses them: compiled, trained, saved."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import ln_tfp
from ln_tfp import losses

K = 3
MATRIX = ((.8, .2, 0.), (0., 1., 0.), (.1, .1, .8))


def _logits():
  return keras.layers.Dense(K, dtype='float32')


# Name: head, loss, and the probabilities that its outputs stand for.
CASES = {
    'GCE': (_logits, losses.GeneralizedCrossEntropy, tf.nn.softmax),
    'NAN': (_logits, lambda: losses.NoiseAgainstNoise(seed=1), tf.nn.softmax),
    'Forward': (_logits, lambda: losses.ForwardCorrection(MATRIX),
                tf.nn.softmax),
    'Het': (lambda: ln_tfp.HeteroscedasticHead(K),
            lambda: losses.HeteroscedasticNLL(seed=1),
            losses.heteroscedastic_probabilities),
    'Het-tau-Sigma': (
        lambda: ln_tfp.HeteroscedasticHead(K, rank=2),
        lambda: losses.HeteroscedasticNLL(temperature=.5, seed=1),
        lambda outputs: losses.heteroscedastic_probabilities(
            outputs, temperature=.5)),
    'LN': (lambda: ln_tfp.LogisticNormalHead(K),
           losses.NegativeLogLikelihood, ln_tfp.probabilities),
    'LN-ilr': (lambda: ln_tfp.LogisticNormalHead(K), losses.IsometricNLL,
               ln_tfp.probabilities),
}
RANDOM = ('NAN', 'Het', 'Het-tau-Sigma')

# Keras saves a variable through NumPy's old `__array__` protocol.
pytestmark = pytest.mark.filterwarnings(
    'ignore:__array__ implementation:DeprecationWarning')


def _blobs():
  """Three classes far apart."""
  rng = np.random.default_rng(0)
  labels = rng.integers(0, K, 240)
  centres = 3 * np.array([[1, 0], [-1, 1], [-1, -1]])
  return (centres[labels] + rng.normal(size=[240, 2])).astype('float32'), labels


@pytest.mark.parametrize('name', CASES)
@pytest.mark.slow
def test_each_trains_in_kerass_own_fit_and_survives_saving(name, tmp_path):
  head, loss, probabilities = CASES[name]
  x, y = _blobs()
  keras.utils.set_random_seed(0)
  model = keras.Sequential([
      keras.Input([2]), keras.layers.Dense(16, 'relu'), head()])
  model.compile(keras.optimizers.Adam(.05), loss=loss())
  model.fit(x, y, batch_size=60, epochs=20, verbose=0)
  predict = lambda model: np.asarray(probabilities(model(x)))
  assert np.mean(predict(model).argmax(axis=1) == y) > .9

  model.save(tmp_path / 'model.keras')
  loaded = keras.saving.load_model(tmp_path / 'model.keras')
  np.testing.assert_array_equal(predict(loaded), predict(model))
  assert loaded.loss.get_config() == model.loss.get_config()
  np.testing.assert_allclose(
      loaded.loss(y, loaded(x)), loss()(y, model(x)), rtol=1e-5)


@pytest.mark.parametrize('name', RANDOM)
def test_a_random_loss_draws_anew_in_each_call_and_repeats_with_its_seed(name):
  head, loss, _ = CASES[name]
  x, y = _blobs()
  outputs = head()(x)
  first, second = loss(), loss()
  values = [float(first(y, outputs)) for _ in range(3)]
  assert len(set(values)) == 3
  assert [float(second(y, outputs)) for _ in range(3)] == values


@pytest.mark.parametrize('name', CASES)
def test_labels_may_be_floats_with_an_axis_of_one(name):
  head, loss, _ = CASES[name]
  x, y = _blobs()
  outputs = head()(x)
  np.testing.assert_allclose(
      loss()(y.astype('float32')[:, np.newaxis], outputs), loss()(y, outputs),
      rtol=1e-6)

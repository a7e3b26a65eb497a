"""Tests of `ln_tfp.MarginRecorder`."""

import keras
import numpy as np
import pytest
from sklearn import metrics
import tensorflow as tf

import ln_tfp

K = 3


def _data(num=120, seed=0):
  rng = np.random.default_rng(seed)
  true = rng.integers(0, K, num)
  x = (4. * np.eye(K, 5)[true] + rng.normal(size=(num, 5))).astype(np.float32)
  given = true.copy()
  given[:12] = (true[:12] + 1) % K
  return x, given, true


def _fit(head, loss, x, y, recorder, epochs=15):
  keras.utils.set_random_seed(0)
  model = keras.Sequential([keras.Input((5,)), head])
  model.compile(keras.optimizers.Adam(.05), loss=loss)
  kept = []

  class Keep(keras.callbacks.Callback):

    def on_epoch_end(self, epoch, logs=None):
      kept.append(model.predict(x, verbose=0))

  model.fit(x, y, epochs=epochs, verbose=0, callbacks=[recorder, Keep()])
  return kept


def _by_hand(logits, y):
  return np.array([
      row[label] - max(v for k, v in enumerate(row) if k != label)
      for row, label in zip(logits, y)])


@pytest.mark.parametrize('kind', ['LN', *(
    pytest.param(kind, marks=pytest.mark.thorough)
    for kind in ('softmax', 'LN without dummy class'))])
@pytest.mark.slow
def test_margins_are_means_over_epochs_and_wrong_labels_have_low_ones(kind):
  x, given, true = _data()
  head, loss = {
      'softmax': lambda: (
          keras.layers.Dense(K),
          keras.losses.SparseCategoricalCrossentropy(from_logits=True)),
      'LN': lambda: (ln_tfp.LogisticNormalHead(K), ln_tfp.nll),
      'LN without dummy class': lambda: (
          ln_tfp.LogisticNormalHead(K, dummy_class=False),
          ln_tfp.NegativeLogLikelihood(num_classes=K)),
  }[kind]()
  recorder = ln_tfp.MarginRecorder(x, given, batch_size=50)
  kept = _fit(head, loss, x, given, recorder)
  logits = [out[:, 0] if out.ndim == 3 else out for out in kept]
  logits = [np.pad(z, [(0, 0), (0, K - z.shape[1])]) for z in logits]
  expected = np.mean([_by_hand(z, given) for z in logits], axis=0)
  np.testing.assert_allclose(recorder.margins, expected, rtol=1e-4, atol=1e-4)
  assert recorder.epochs == 15
  wrong = given != true
  assert metrics.roc_auc_score(wrong, -recorder.margins) > .8


@pytest.mark.slow
def test_datasets_are_read_and_shuffled_ones_refused():
  x, given, _ = _data()
  dataset = tf.data.Dataset.from_tensor_slices((x, np.eye(K)[given])).batch(32)
  recorder = ln_tfp.MarginRecorder(dataset)
  with pytest.raises(ValueError, match='no margins before'):
    _ = recorder.margins
  _fit(ln_tfp.LogisticNormalHead(K), ln_tfp.nll, x, given, recorder, epochs=1)
  assert recorder.margins.shape == (120,)
  with pytest.raises(ValueError, match='in another order'):
    ln_tfp.MarginRecorder(dataset.unbatch().shuffle(120).batch(32))


def test_a_generator_is_refused_before_the_training_begins():
  x, given, _ = _data()
  with pytest.raises(ValueError, match='`x` must be readable after every'):
    ln_tfp.MarginRecorder(iter([(x, given)]))


def test_labels_may_be_names_and_some_may_be_missing():
  x, given, _ = _data()
  expected = ln_tfp.MarginRecorder(x, given)
  _fit(ln_tfp.LogisticNormalHead(K), ln_tfp.nll, x, given, expected, epochs=1)
  names = np.array(['ant', 'bee', 'cow'], object)[given]
  names[::5] = 'none'
  recorder = ln_tfp.MarginRecorder(
      x, names, batch_size=50, ignore_class='none')
  _fit(ln_tfp.LogisticNormalHead(K), ln_tfp.nll, x, given, recorder, epochs=1)
  assert np.isnan(recorder.margins[::5]).all()
  rest = np.arange(len(x)) % 5 > 0
  np.testing.assert_allclose(recorder.margins[rest], expected.margins[rest])


@pytest.mark.parametrize('output', ['b', 1])
def test_one_of_several_outputs_is_recorded(output):
  x, given, _ = _data()
  inputs = keras.Input((5,))
  model = keras.Model(inputs, [
      keras.layers.Dense(7, name='a')(inputs),
      ln_tfp.LogisticNormalHead(K, name='b')(inputs)])
  model.compile('sgd', loss=['mse', ln_tfp.nll])
  labels = [np.zeros((len(x), 7)), given]
  recorder = ln_tfp.MarginRecorder(x, labels, output=output)
  model.fit(x, labels, verbose=0, callbacks=[recorder])
  logits = model.predict(x, verbose=0)[1][:, 0]
  np.testing.assert_allclose(
      recorder.margins, _by_hand(logits, given), rtol=1e-4, atol=1e-4)

"""What holds on every backend of Keras.

`test_other_backends` runs this file under JAX and PyTorch, where TensorFlow is
as if it were not installed.
"""

import os

import keras
import numpy as np
import pytest

import ln_tfp
from ln_tfp import backend
from ln_tfp import losses
from ln_tfp import random
from ln_tfp.losses import monte_carlo_scan
from tests.ln_tfp import backends

K = 3
# PyTorch runs operation by operation, as Keras compiles for it.
COMPILES = keras.backend.backend() != 'torch'
not_on_tensorflow = pytest.mark.skipif(
    backend.IS_TENSORFLOW, reason='runs where test_other_backends starts it')


def blobs():
  """Three classes far apart, 180 examples."""
  rng = np.random.default_rng(0)
  labels = np.arange(180) % K
  centres = 4 * np.array([[1, 0], [-1, 1], [-1, -1]])
  return (centres[labels] + rng.normal(size=[180, 2])).astype('float32'), labels


def model_of(head):
  return keras.Sequential([keras.Input([2]), head])


@pytest.fixture(scope='module')
def trained():
  """A model with head, loss and metrics after some epochs."""
  x, y = blobs()
  head = ln_tfp.LogisticNormalHead(
      K, kernel_initializer=keras.initializers.GlorotUniform(seed=1))
  model = model_of(head)
  model.compile(keras.optimizers.Adam(.1), ln_tfp.nll,
                metrics=head.metrics())
  model.fit(x, y, epochs=5, batch_size=20, verbose=0)
  return model


@not_on_tensorflow
def test_losses_and_gradients_are_those_of_tensorflow():
  with np.load(os.environ['LN_TFP_REFERENCE']) as reference:
    expected = dict(reference)
  actual = backends.losses_and_gradients()
  assert actual.keys() == expected.keys()
  # Relative to the largest of a batch: the terms of a log density cancel.
  errors = {
      name: float(np.abs(actual[name] - expected[name]).max() /
                  np.abs(expected[name]).max()) for name in expected}
  assert max(errors.values()) < 1e-6, errors
  assert {array.dtype for array in actual.values()} == {np.dtype('float32')}


@pytest.mark.slow
def test_a_model_learns_is_evaluated_saved_and_exported(trained, tmp_path):
  x, y = blobs()
  scores = trained.evaluate(x, y, verbose=0, return_dict=True)
  probabilities = keras.ops.convert_to_numpy(
      ln_tfp.probabilities(trained.predict(x, verbose=0)))
  chosen = probabilities[np.arange(len(y)), y]
  assert scores['accuracy'] > .95
  np.testing.assert_allclose(
      scores['predictive_nll'], -np.mean(np.log(chosen)), rtol=1e-4)
  trained.save(tmp_path / 'model.keras')
  loaded = keras.models.load_model(tmp_path / 'model.keras')
  assert loaded.evaluate(x, y, verbose=0, return_dict=True) == pytest.approx(
      scores, rel=1e-5)
  classifier = ln_tfp.to_classifier(loaded)
  again = ln_tfp.from_classifier(classifier, warm_start=True)
  again.compile('adam', ln_tfp.nll)
  again.fit(x[:20], y[:20], verbose=0)  # which leaves the classifier alone
  np.testing.assert_allclose(
      classifier.predict(x, verbose=0), probabilities, atol=1e-6)


@pytest.mark.parametrize('name', ['LN', 'GCE', 'NAN', 'Het'])
@pytest.mark.slow
def test_a_label_that_is_no_class_is_nan_if_compiled_else_an_error(name):
  make = {
      'LN': lambda: (ln_tfp.LogisticNormalHead(K), ln_tfp.nll,
                     [ln_tfp.Accuracy(), ln_tfp.PredictiveNLL(),
                      ln_tfp.ExpectedCalibrationError()]),
      'GCE': lambda: (keras.layers.Dense(K),
                      losses.GeneralizedCrossEntropy(), []),
      'NAN': lambda: (keras.layers.Dense(K),
                      losses.NoiseAgainstNoise(seed=1), []),
      'Het': lambda: (ln_tfp.HeteroscedasticHead(K, rank=1),
                      losses.HeteroscedasticNLL(seed=1), []),
  }[name]
  head, loss, metrics = make()
  model = model_of(head)
  model.compile('sgd', loss, metrics=metrics, jit_compile=COMPILES)
  x, y = (part[:8] for part in blobs())
  evaluate = lambda labels: np.array(model.evaluate(x, labels, verbose=0))
  assert np.isfinite(evaluate(y)).all()
  for bad in (K, -1):
    wrong = np.where(np.arange(8) == 2, bad, y)
    if COMPILES:
      assert np.isnan(evaluate(wrong)).all()
    else:
      with pytest.raises(ValueError, match=f'whole labels.* {bad}'):
        evaluate(wrong)


@not_on_tensorflow  # test_labels has what it does there
@pytest.mark.parametrize('dtype', ['int64', 'uint32', 'uint64'])
@pytest.mark.parametrize('weights', [None, np.ones(2)])
def test_a_label_beyond_int32_does_not_become_a_class(dtype, weights):
  outputs = keras.ops.ones([2, 3, K])
  wide = np.array([1, 2**31 + 1 if dtype == 'uint32' else 2**32 + 1], dtype)

  def metric(labels):
    accuracy = ln_tfp.Accuracy()
    accuracy.update_state(labels, outputs, weights)
    return accuracy.result()

  for value in (
      metric, lambda labels: ln_tfp.nll(labels, outputs)[1],
      lambda labels: ln_tfp.NegativeLogLikelihood()(labels, outputs, weights),
      lambda labels: losses.generalized_cross_entropy(
          labels, outputs[:, 0])[1]):
    to_numpy = keras.ops.convert_to_numpy
    assert np.isfinite(to_numpy(value(np.ones(2, dtype))))
    if COMPILES:
      assert np.isnan(to_numpy(value(wide)))
    else:
      with pytest.raises(ValueError, match='must hold whole labels'):
        value(wide)


def test_labels_that_are_ignored_masked_or_of_weight_zero_do_not_count():
  outputs = next(
      outputs for name, _, outputs in backends.cases() if 'rank 1' in name)
  outputs = keras.ops.convert_to_tensor(outputs)
  labels = np.arange(backends.B) % backends.K
  counts = labels != 2
  expected = keras.ops.convert_to_numpy(ln_tfp.nll(labels, outputs))[counts]
  ignored = ln_tfp.NegativeLogLikelihood(ignore_class=2)(labels, outputs)
  np.testing.assert_allclose(ignored, expected.mean(), rtol=1e-5)
  invalid = np.where(counts, labels, -7)
  weighted = ln_tfp.NegativeLogLikelihood()(invalid, outputs, counts)
  np.testing.assert_allclose(
      weighted, expected.sum() / backends.B, rtol=1e-5)
  metric = ln_tfp.PredictiveNLL()
  metric.update_state(invalid, outputs, counts)
  assert np.isfinite(float(metric.result()))


@pytest.mark.slow
def test_masked_steps_do_not_count():
  # The second sequence ends after one step; its padding is no class.
  x = np.array([[1, 2, 3], [4, 0, 0]])
  y = np.array([[0, 1, 2], [1, 9, 9]])
  model = keras.Sequential([
      keras.Input([3]), keras.layers.Embedding(5, 4, mask_zero=True),
      ln_tfp.LogisticNormalHead(K)])
  model.compile('sgd', ln_tfp.nll, metrics=[ln_tfp.Accuracy()],
                jit_compile=COMPILES)
  loss, accuracy = model.evaluate(x, y, verbose=0)
  outputs = model.predict(x, verbose=0)
  values = keras.ops.convert_to_numpy(
      ln_tfp.nll(np.where(x > 0, y, 0), outputs))
  np.testing.assert_allclose(loss, values[x > 0].mean(), rtol=1e-5)
  hits = outputs[..., 0, :].argmax(axis=-1) == y
  assert accuracy == pytest.approx(hits[x > 0].mean())


def test_random_numbers_are_those_of_numpy():
  ids = np.array([3, 0, 2**31 - 1, 17], 'int32')
  expected = random.normal(-5, 2, ids[:, np.newaxis], np.arange(6))
  for seed, step in ((-5, 2), (keras.ops.convert_to_tensor(-5, 'int32'),
                               keras.ops.convert_to_tensor(2, 'int32'))):
    np.testing.assert_allclose(
        backend.normal(seed, step, keras.ops.convert_to_tensor(ids), 6),
        expected, atol=1e-5)


@pytest.mark.parametrize('loss', [
    losses.NoiseAgainstNoise(sigma=2., seed=1),
    losses.HeteroscedasticNLL(samples=1, seed=1)])
@pytest.mark.slow
def test_training_draws_new_numbers_at_every_step(loss):
  is_het = isinstance(loss, losses.HeteroscedasticNLL)
  model = model_of(ln_tfp.HeteroscedasticHead(K) if is_het
                   else keras.layers.Dense(K))
  # So slow that the loss would not change in the fourth digit.
  model.compile(keras.optimizers.SGD(1e-6), loss)
  x, y = (part[:30] for part in blobs())
  history = model.fit(x, y, epochs=4, batch_size=30, verbose=0).history['loss']
  assert np.diff(np.sort(history)).min() > 1e-4 * np.abs(history).max()


@not_on_tensorflow
@pytest.mark.parametrize('chunk', [1, 3 * 4 * 5, 2**20])
def test_the_scan_over_samples_is_the_mean_of_softmaxes(chunk, monkeypatch):
  monkeypatch.setattr(monte_carlo_scan, '_CHUNK', chunk)
  rng = np.random.default_rng(0)
  packed = rng.normal(size=[3, 4, 2 + 2]).astype('float32')
  noise = rng.normal(size=[17, 4 + 2]).astype('float32')
  logits = (packed[..., 0] + packed[..., 1] * noise[:, None, :4] +
            np.einsum('sr,bkr->sbk', noise[:, 4:], packed[..., 2:])) / .5
  exp = np.exp(logits.astype('float64'))
  np.testing.assert_allclose(
      monte_carlo_scan.probabilities(packed, noise, .5),
      np.mean(exp / exp.sum(axis=-1, keepdims=True), axis=0), rtol=1e-5)


def test_forward_correction_of_soft_labels_keeps_what_underflows():
  # The likeliest class by far never becomes the second one.
  logits = np.array([[200., 0., -200.]], 'float32')
  loss, gradient = backends.value_and_gradient(
      lambda y, z: losses.forward_correction(y, z, np.eye(3)),
      np.array([[0., 1., 0.]], 'float32'), logits)
  np.testing.assert_allclose(loss, [200.], rtol=1e-6)
  np.testing.assert_allclose(gradient, [[1., -1., 0.]], atol=1e-6)


@pytest.mark.slow
def test_both_audits_find_the_wrong_labels(trained):
  x, y = blobs()
  is_wrong = np.arange(180) % 11 == 0
  noisy = np.where(is_wrong, (y + 1) % K, y)
  for report in (ln_tfp.audit_features(x, noisy),
                 ln_tfp.audit_labels(trained, x, noisy)):
    wrong, right = report.quality[is_wrong], report.quality[~is_wrong]
    assert np.mean(wrong[:, np.newaxis] < right) > .95


@pytest.mark.parametrize('kernel', ['linear', 'rbf'])
@pytest.mark.slow
def test_the_process_becomes_a_plain_model_that_is_saved(kernel, tmp_path):
  x, y = blobs()
  process = ln_tfp.LogisticNormalProcess(kernel, num_inducing=40).fit(x, y)
  assert process.score(x, y) > .95
  process.to_keras().save(tmp_path / 'process.keras')
  loaded = keras.models.load_model(tmp_path / 'process.keras')
  np.testing.assert_allclose(
      loaded.predict(x, verbose=0), process.predict_proba(x), atol=1e-4)


@pytest.mark.slow
def test_callbacks_of_the_audit_and_of_early_stopping_run():
  x, y = blobs()
  model = model_of(ln_tfp.LogisticNormalHead(K))
  model.compile('sgd', ln_tfp.nll)
  recorder, wave = ln_tfp.MarginRecorder(x, y), ln_tfp.LabelWave(x)
  model.fit(x, y, epochs=2, verbose=0, callbacks=[recorder, wave])
  assert recorder.margins.shape == y.shape
  assert len(wave.changes) == 1


@not_on_tensorflow
def test_what_needs_tensorflow_says_so():
  outputs = np.ones([2, 3, K], 'float32')
  process = ln_tfp.LogisticNormalProcess().fit(*blobs())
  model = model_of(ln_tfp.LogisticNormalHead(K))
  for call in (
      lambda: ln_tfp.LogisticNormal, lambda: ln_tfp.ManyClassesHead(9),
      lambda: ln_tfp.to_distribution(outputs),
      lambda: process.predict_distribution(blobs()[0]),
      lambda: ln_tfp.ShiftedGaussianNoise(model),
      lambda: ln_tfp.to_classifier(model, class_names=['a', 'b', 'c'])):
    with pytest.raises(ImportError, match='needs TensorFlow: set KERAS_BAC'):
      call()


def test_names_are_listed_and_others_are_refused():
  assert 'LogisticNormal' in dir(ln_tfp)
  with pytest.raises(AttributeError, match='no attribute'):
    ln_tfp.no_such_name  # noqa: B018

"""Metrics against NumPy."""

import keras
from keras import ops
import numpy as np
import pytest

import ln_tfp
from ln_tfp import heads

CLASSES = 4


@pytest.fixture(name='outputs')
def _outputs():
  rng = np.random.default_rng(0)
  loc = rng.normal(size=(50, CLASSES)).astype('float32')
  return heads.pack(ops.convert_to_tensor(loc), ops.ones([50, CLASSES]))


@pytest.fixture(name='labels')
def _labels():
  return np.random.default_rng(1).integers(0, CLASSES, 50)


def reference(labels, outputs, num_classes, dummy_class):
  p = ops.convert_to_numpy(
      ln_tfp.probabilities(outputs, num_classes, dummy_class))
  return p.argmax(axis=1) == labels, p.max(axis=1), -np.log(
      p[np.arange(len(labels)), labels])


def calibration_error(hits, confidence, weights, bins=15):
  edges = np.linspace(0., 1., bins + 1)
  total = 0.
  for low, high in zip(edges[:-1], edges[1:]):
    inside = (confidence > low) & (confidence <= high)
    total += abs(np.sum(weights[inside] * (hits - confidence)[inside]))
  return total / weights.sum()


@pytest.mark.parametrize('weighted', [False, True])
@pytest.mark.parametrize(
    ('num_classes', 'dummy_class'), [(None, False), (None, True), (5, False)])
def test_metrics_equal_numpy(
    outputs, labels, num_classes, dummy_class, weighted):
  hits, confidence, nll = reference(labels, outputs, num_classes, dummy_class)
  weights = np.random.default_rng(2).uniform(size=50) if weighted else (
      np.ones(50))
  expected = {
      ln_tfp.Accuracy: np.average(hits, weights=weights),
      ln_tfp.PredictiveNLL: np.average(nll, weights=weights),
      ln_tfp.ExpectedCalibrationError: calibration_error(
          hits, confidence, weights),
  }
  for kind, value in expected.items():
    metric = kind(num_classes=num_classes, dummy_class=dummy_class)
    for part in (slice(0, 20), slice(20, 50)):
      metric.update_state(labels[part], outputs[part],
                          weights[part] if weighted else None)
    np.testing.assert_allclose(metric.result(), value, rtol=1e-5)
    metric.reset_state()
    assert metric.result() == 0.


def test_labels_of_every_form_are_understood(outputs, labels):
  for kind in (ln_tfp.Accuracy, ln_tfp.PredictiveNLL,
               ln_tfp.ExpectedCalibrationError):
    results = []
    for form in (labels, labels[:, np.newaxis], np.eye(CLASSES)[labels],
                 labels.astype('float32')):
      metric = kind()
      metric.update_state(form, outputs)
      results.append(float(metric.result()))
    np.testing.assert_allclose(results, results[0], rtol=1e-6)


@pytest.mark.tensorflow
def test_one_hot_labels_of_a_class_without_a_logit_are_refused(outputs):
  import tensorflow as tf
  # As of a head without the dummy class, whose metrics lack `num_classes`.
  labels = np.arange(50) % (CLASSES + 1)
  for kind in (ln_tfp.Accuracy, ln_tfp.PredictiveNLL,
               ln_tfp.ExpectedCalibrationError):
    with pytest.raises(tf.errors.InvalidArgumentError, match='`num_classes`'):
      kind().update_state(np.eye(CLASSES + 1)[labels], outputs)
    kind().update_state(np.eye(CLASSES + 1)[labels % CLASSES], outputs)
    told, whole = kind(num_classes=CLASSES + 1), kind(num_classes=CLASSES + 1)
    told.update_state(np.eye(CLASSES + 1)[labels], outputs)
    whole.update_state(labels, outputs)
    np.testing.assert_allclose(told.result(), whole.result(), rtol=1e-6)


def test_metrics_survive_serialisation():
  for metric in (ln_tfp.Accuracy(num_classes=5, name='a'),
                 ln_tfp.PredictiveNLL(dummy_class=True),
                 ln_tfp.ExpectedCalibrationError(num_bins=7, num_classes=5)):
    copy = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(metric))
    assert type(copy) is type(metric)
    assert copy.get_config() == metric.get_config()


def test_a_number_of_bins_below_one_is_named():
  with pytest.raises(ValueError, match='num_bins=0'):
    ln_tfp.ExpectedCalibrationError(num_bins=0)


def test_outputs_that_are_not_packed_are_refused(labels):
  with pytest.raises(ValueError, match='Argument `y_'):
    ln_tfp.Accuracy().update_state(labels, ops.zeros([50, CLASSES]))


def test_masked_steps_do_not_count_towards_calibration(outputs, labels):
  mask = np.arange(50) < 30
  sequence = ops.reshape(outputs, [5, 10, 2, CLASSES])
  sequence._keras_mask = ops.convert_to_tensor(mask.reshape(5, 10))
  masked, short = (ln_tfp.ExpectedCalibrationError() for _ in range(2))
  masked.update_state(labels.reshape(5, 10), sequence)
  short.update_state(labels[:30], outputs[:30])
  np.testing.assert_allclose(masked.result(), short.result(), rtol=1e-6)


@pytest.mark.slow
def test_callbacks_know_which_direction_is_better(tmp_path):
  directions = {'val_accuracy': 'max', 'val_predictive_nll': 'min',
                'val_expected_calibration_error': 'min'}
  head = ln_tfp.LogisticNormalHead(CLASSES)
  model = keras.Sequential([keras.Input((3,)), head])
  model.compile('adam', loss=head.loss(), metrics=head.metrics())
  rng = np.random.default_rng(0)
  x, y = rng.normal(size=(40, 3)), rng.integers(0, CLASSES, 40)
  stopping = {  # more epochs of patience than there are
      monitor: keras.callbacks.EarlyStopping(monitor, patience=9)
      for monitor in directions}
  history = model.fit(
      x, y, validation_data=(x, y), epochs=4, verbose=0, callbacks=[
          *stopping.values(), *map(keras.callbacks.ReduceLROnPlateau,
                                   directions),
          *(keras.callbacks.ModelCheckpoint(
              tmp_path / f'{monitor}.keras', monitor, save_best_only=True)
            for monitor in directions)]).history
  for monitor, better in directions.items():
    best = getattr(np, better)(history[monitor])
    np.testing.assert_allclose(stopping[monitor].best, best)
    loaded = keras.models.load_model(tmp_path / f'{monitor}.keras')
    result = loaded.evaluate(x, y, verbose=0, return_dict=True)
    np.testing.assert_allclose(
        result[monitor.removeprefix('val_')], best, rtol=1e-5)

"""The loss: labels in every form, packed tensors and distributions."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import ln_tfp
from ln_tfp import heads

CLASSES = 4
LABELS = np.array([0, 3, 1, 2, 2])


def packed(rank=1, dims=CLASSES, batch=(5,), dtype='float64', seed=0):
  rng = np.random.default_rng(seed)
  loc = rng.normal(size=(*batch, dims))
  diag = .3 + np.square(rng.normal(size=(*batch, dims)))
  factor = rng.normal(size=(*batch, rank, dims))
  columns = [factor[..., r, :] for r in range(rank)]
  return tf.cast(heads.pack(*map(tf.constant, (loc, diag, *columns))), dtype)


def smoothed(labels, size, t=.01):
  return (1. - t) * np.eye(size)[labels] + t / size


@pytest.mark.parametrize('rank', [0, 1, 2, 3])
@pytest.mark.parametrize('dummy_class', [True, False])
def test_nll_is_the_distributions_log_prob_in_value_and_gradient(
    rank, dummy_class):
  dims = CLASSES if dummy_class else CLASSES - 1
  num_classes = None if dummy_class else CLASSES
  outputs = packed(rank, dims)
  results = []
  for loss in (
      lambda y: ln_tfp.nll(LABELS, y, num_classes=num_classes),
      lambda y: -ln_tfp.to_distribution(y).log_prob(
          smoothed(LABELS, dims + 1))):
    with tf.GradientTape() as tape:
      tape.watch(outputs)
      value = loss(outputs)
    results.append((value, tape.gradient(value, outputs)))
  for actual, expected in zip(*results):
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize('dtype', ['int32', 'int64', 'uint8', 'float32'])
def test_labels_of_every_form_give_the_same_loss(dtype):
  outputs = packed()
  expected = ln_tfp.nll(LABELS, outputs)
  assert expected.shape == [5]
  for labels in (LABELS, LABELS[:, np.newaxis], np.eye(CLASSES)[LABELS],
                 np.eye(CLASSES + 1)[LABELS]):
    np.testing.assert_allclose(
        ln_tfp.nll(labels.astype(dtype), outputs), expected, rtol=1e-5)


def test_soft_labels_are_smoothed_like_hard_ones():
  outputs = packed()
  soft = np.random.default_rng(1).dirichlet(np.ones(CLASSES), size=5)
  target = .9 * np.pad(soft, [[0, 0], [0, 1]]) + .1 / (CLASSES + 1)
  np.testing.assert_allclose(
      ln_tfp.nll(soft, outputs, label_smoothing=.1),
      -ln_tfp.to_distribution(outputs).log_prob(target), rtol=1e-9)


def test_distributions_are_read_over_their_event():
  outputs = packed()
  dist = ln_tfp.to_distribution(outputs)
  np.testing.assert_allclose(
      ln_tfp.nll(LABELS, dist),
      -dist.log_prob(smoothed(LABELS, CLASSES + 1)), rtol=1e-9)
  np.testing.assert_allclose(  # num_classes = D: the last class is the dummy
      ln_tfp.nll(LABELS, dist, num_classes=CLASSES),
      ln_tfp.nll(LABELS, outputs), rtol=1e-9)
  # Without a dummy class the last label is a class like the others.
  assert np.isfinite(ln_tfp.nll(np.full(5, CLASSES), dist)).all()
  with pytest.raises(tf.errors.InvalidArgumentError, match='`y_true`'):
    ln_tfp.nll(np.full(5, CLASSES), dist, num_classes=CLASSES)


def test_sequences_have_a_loss_per_step():
  outputs = packed(batch=(2, 3))
  labels = np.array([[0, 1, 2], [3, 0, 1]])
  actual = ln_tfp.nll(labels, outputs)
  assert actual.shape == [2, 3]
  np.testing.assert_allclose(
      tf.reshape(actual, [6]),
      ln_tfp.nll(labels.reshape(6), tf.reshape(outputs, [6, 3, CLASSES])))


@pytest.mark.parametrize('bad', [-1, CLASSES, 1.5, np.nan])
@pytest.mark.parametrize('graph', [False, True])
@pytest.mark.slow
def test_labels_that_are_no_classes_are_an_error_that_shows_them(bad, graph):
  labels = LABELS.astype('float32')
  labels[3] = bad
  loss = tf.function(ln_tfp.nll) if graph else ln_tfp.nll
  shown = 'nan' if np.isnan(bad) else f'{bad:g}'
  with pytest.raises(tf.errors.InvalidArgumentError) as error:
    loss(tf.constant(labels), packed(dtype='float32'))
  assert '`y_true`' in str(error.value)
  received = str(error.value).split('Received:')[1]
  assert shown in received


@pytest.mark.slow
def test_where_xla_drops_the_assertion_loss_and_gradient_are_nan():
  @tf.function(jit_compile=True)
  def loss_and_gradient(labels, outputs):
    with tf.GradientTape() as tape:
      tape.watch(outputs)
      loss = ln_tfp.nll(labels, outputs)
    return loss, tape.gradient(loss, outputs)

  labels = tf.constant([0., 4., 1., -1., 1.5])
  loss, gradient = loss_and_gradient(labels, packed(dtype='float32'))
  bad = np.array([False, True, False, True, True])
  np.testing.assert_array_equal(np.isnan(loss), bad)
  np.testing.assert_array_equal(np.isnan(gradient).all(axis=(1, 2)), bad)


def test_an_empty_batch_has_no_loss():
  assert ln_tfp.nll(np.zeros([0]), packed(batch=(0,))).shape == [0]


def test_soft_labels_that_are_no_distribution_are_an_error():
  outputs = packed()
  for row in ([.5, .6, 0., 0.], [1.5, -.5, 0., 0.]):
    with pytest.raises(tf.errors.InvalidArgumentError, match='sum to one'):
      ln_tfp.nll(np.tile(row, (5, 1)), outputs)
  # Padding leaves rows of zeros.
  assert np.isfinite(ln_tfp.nll(np.zeros((5, CLASSES)), outputs)).all()


@pytest.mark.parametrize(('y_true', 'y_pred', 'message'), [
    (LABELS[:4], packed(), r'`y_true`.*\(4,\)'),
    (np.zeros((5, 3)), packed(), r'`y_true`.*\(5, 3\)'),
    (np.zeros((5, 1, 1)), packed(), r'`y_true`.*\(5, 1, 1\)'),
    (LABELS, tf.zeros([5, 10]), r'Argument `y_true`.*\(5,\)'),
    (LABELS, tf.zeros([5, 1, 10]), r'Argument `y_pred`.*\(5, 1, 10\)'),
    (LABELS, tf.zeros([5]), r'Argument `y_pred`.*\(5,\)'),
])
def test_wrong_shapes_are_named(y_true, y_pred, message):
  with pytest.raises(ValueError, match=message):
    ln_tfp.nll(y_true, y_pred)


@pytest.mark.parametrize('t', [0., -.1, 1.1])
def test_label_smoothing_outside_its_range_is_named(t):
  with pytest.raises(ValueError, match='`label_smoothing` must be in'):
    ln_tfp.nll(LABELS, packed(), label_smoothing=t)


@pytest.mark.parametrize('t', [1e-6, 1e-3, .5, 1.])
def test_every_label_smoothing_in_the_range_is_finite(t):
  outputs = packed(dtype='float32')
  with tf.GradientTape() as tape:
    tape.watch(outputs)
    loss = ln_tfp.nll(LABELS, outputs, label_smoothing=t)
  assert np.isfinite(loss).all()
  assert np.isfinite(tape.gradient(loss, outputs)).all()


def test_the_keras_class_averages_weights_and_masks():
  outputs = packed(batch=(2, 3), dtype='float32')
  labels = np.array([[0, 1, 2], [3, 0, 1]])
  values = ln_tfp.nll(labels, outputs).numpy()
  loss = ln_tfp.NegativeLogLikelihood()
  np.testing.assert_allclose(loss(labels, outputs), values.mean(), rtol=1e-5)
  weights = np.array([[1., 3., 0.], [2., 1., 1.]])
  np.testing.assert_allclose(
      loss(labels, outputs, sample_weight=weights),
      (values * weights).sum() / values.size, rtol=1e-5)


@pytest.mark.slow
def test_masked_steps_do_not_count():
  model = keras.Sequential([
      keras.layers.Input((3, 2)), keras.layers.Masking(),
      ln_tfp.LogisticNormalHead(CLASSES)])
  model.compile('sgd', loss=ln_tfp.nll, metrics=[ln_tfp.Accuracy()])
  x = np.random.default_rng(0).normal(size=(2, 3, 2)).astype('float32')
  x[0, 2] = x[1, 1:] = 0.
  labels = np.array([[0, 1, 0], [3, 0, 0]])
  values = ln_tfp.nll(labels, model(x)).numpy()
  result = model.evaluate(x, labels, verbose=0, return_dict=True)
  np.testing.assert_allclose(
      result['loss'], values[[0, 0, 1], [0, 1, 0]].mean(), rtol=1e-5)


def test_the_keras_class_survives_serialisation():
  loss = ln_tfp.NegativeLogLikelihood(label_smoothing=.2, num_classes=5)
  copy = keras.losses.deserialize(keras.losses.serialize(loss))
  assert copy.label_smoothing == .2 and copy.num_classes == 5


def test_a_loss_returns_one_value_per_example_in_a_function_of_any_batch():
  loss = tf.function(ln_tfp.nll, input_signature=[
      tf.TensorSpec([None], tf.float32),
      tf.TensorSpec([None, 3, CLASSES], tf.float32)])
  outputs = packed(dtype='float32')
  np.testing.assert_allclose(
      loss(LABELS.astype('float32'), outputs), ln_tfp.nll(LABELS, outputs),
      rtol=1e-5)

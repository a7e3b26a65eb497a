"""The heads and the packed tensors."""

import json

import keras
from keras import ops
import numpy as np
import pytest
from scipy import special

import ln_tfp
from ln_tfp import backend
from ln_tfp import heads
from tests.ln_tfp import backends

COVARIANCES = ['identity', 'isotropic', 'diagonal', 'full']


def features(shape=(5, 7), seed=0):
  return np.random.default_rng(seed).normal(size=shape).astype('float32')


def weights_of(head):
  """Returns loc kernel and bias, then scale kernel and bias (or None)."""
  scale = [None, None] if head.scale is None else head.scale.get_weights()
  return [*head.loc.get_weights(), *scale]


@pytest.mark.parametrize('dummy_class', [True, False])
@pytest.mark.parametrize('classes', [2, 4])
@pytest.mark.parametrize('covariance', COVARIANCES)
def test_the_packed_output_is_the_documented_formula(
    covariance, classes, dummy_class):
  tau, lam, x = .7, .3, features()
  head = ln_tfp.LogisticNormalHead(
      classes, covariance, temperature=tau, min_scale=lam,
      dummy_class=dummy_class)
  out = np.asarray(head(x))
  dims = classes if dummy_class else classes - 1
  kernel, bias, scale_kernel, scale_bias = weights_of(head)
  loc = x @ kernel + bias
  c = None if scale_kernel is None else x @ scale_kernel + scale_bias
  ones = np.ones([5, dims])
  diag = {
      'identity': lambda: ones,
      'isotropic': lambda: (lam + c**2) * ones,
      'diagonal': lambda: lam + c**2,
      'full': lambda: lam * ones}[covariance]()
  rows = [loc / tau, diag / tau]
  if covariance == 'full':
    rows.append(c / np.sqrt(tau))
  assert out.shape == (5, len(rows), dims)
  assert out.shape[1:] == head.compute_output_shape((None, 7))[1:]
  np.testing.assert_allclose(out, np.stack(rows, axis=1), rtol=1e-5, atol=1e-6)


@pytest.mark.tensorflow
def test_the_distribution_of_the_packed_output_is_that_of_the_paper():
  tau, lam, x = .7, .3, features().astype('float64')
  head = ln_tfp.LogisticNormalHead(
      4, rank=2, temperature=tau, min_scale=lam, dtype='float64')
  out = head(x)
  kernel, bias, scale_kernel, scale_bias = weights_of(head)
  columns = (x @ scale_kernel + scale_bias).reshape(5, 2, 4)
  expected = ln_tfp.LogisticNormal(
      x @ kernel + bias, np.full(4, lam), np.swapaxes(columns, 1, 2), tau)
  target = np.array([.1, .2, .3, .3, .1])
  np.testing.assert_allclose(
      ln_tfp.to_distribution(out).log_prob(target),
      expected.log_prob(target), rtol=1e-10)


@pytest.mark.parametrize('rank', [1, 3])
def test_covariance_weights_never_start_at_zero(rank):
  for _ in range(5):
    head = ln_tfp.LogisticNormalHead(4, rank=rank)
    head.build((None, 7))
    kernel, _, scale_kernel, _ = weights_of(head)
    assert np.all(np.abs(scale_kernel).max(axis=0) > 0.)
    assert not np.allclose(kernel, scale_kernel[:, :4])
  with pytest.raises(ValueError, match='`kernel_initializer` must not be zero'):
    ln_tfp.LogisticNormalHead(4, kernel_initializer='zeros')


def test_a_seeded_initializer_gives_two_different_kernels_and_repeats_them():
  kernels = []
  for _ in range(2):
    head = ln_tfp.LogisticNormalHead(
        4, kernel_initializer=keras.initializers.GlorotUniform(seed=3))
    head.build((None, 7))
    kernels.append(weights_of(head))
  assert not np.allclose(kernels[0][0], kernels[0][2])
  np.testing.assert_array_equal(kernels[0][2], kernels[1][2])


def test_a_seed_generator_gives_different_kernels():
  seed = keras.random.SeedGenerator(3)
  for head in (
      ln_tfp.LogisticNormalHead(
          4, kernel_initializer=keras.initializers.GlorotUniform(seed)),
      ln_tfp.HeteroscedasticHead(
          4, kernel_initializer=keras.initializers.GlorotUniform(seed))):
    head.build((None, 7))
    loc, scale = head.loc.get_weights()[0], head.scale.get_weights()[0]
    assert np.abs(loc - scale).min() > 0.


@pytest.mark.parametrize('make', [
    ln_tfp.LogisticNormalHead, ln_tfp.HeteroscedasticHead])
def test_initialisers_biases_and_constraints_are_those_of_dense(make):
  head = make(4, use_bias=False)
  head.build((None, 7))
  assert len(head.weights) == 2
  head = make(4, bias_initializer='ones', kernel_constraint='non_neg',
              bias_constraint=keras.constraints.MaxNorm(1.), rank=2)
  copy = make.from_config(head.get_config())
  for each in (head, copy):
    each.build((None, 7))
    for layer in each._flatten_layers(include_self=False):
      np.testing.assert_array_equal(layer.bias, np.ones(layer.units))
      assert isinstance(layer.kernel.constraint, keras.constraints.NonNeg)
      assert isinstance(layer.bias.constraint, keras.constraints.MaxNorm)


@pytest.mark.parametrize('dummy_class', [True, False])
@pytest.mark.slow
def test_a_head_knows_its_loss_and_its_metrics(dummy_class):
  head = ln_tfp.LogisticNormalHead(3, dummy_class=dummy_class)
  model = keras.Sequential([keras.Input((7,)), head])
  model.compile(keras.optimizers.Adam(.1), loss=head.loss(ignore_class=-1),
                metrics=head.metrics(ignore_class=-1))
  x = features((60, 7))
  labels = x[:, :3].argmax(axis=1)
  labels[:5] = -1
  model.fit(x, labels, epochs=30, verbose=0)
  result = model.evaluate(x, labels, verbose=0, return_dict=True)
  probabilities = np.asarray(ln_tfp.probabilities(model(x), 3))[5:]
  hits = probabilities.argmax(axis=1) == labels[5:]
  np.testing.assert_allclose(result['accuracy'], hits.mean(), rtol=1e-5)
  assert hits.mean() > .7
  assert set(result) == {
      'loss', 'accuracy', 'predictive_nll', 'expected_calibration_error'}
  assert list(head.metrics) == []  # as Keras reads it
  values = np.asarray(ln_tfp.nll(labels, model(x), .2, 3, ignore_class=-1))
  np.testing.assert_allclose(
      head.loss(.2, ignore_class=-1)(labels, model(x)),
      values[5:].mean(), rtol=1e-5)


def test_regularizers_reach_kernels_and_biases():
  head = ln_tfp.LogisticNormalHead(
      3, kernel_regularizer=keras.regularizers.L2(.1),
      bias_regularizer=keras.regularizers.L2(.2))
  head(features())
  for layer in (head.loc, head.scale):
    layer.bias.assign(np.ones(3, 'float32'))
  kernel, _, scale_kernel, _ = weights_of(head)
  expected = .1 * (np.square(kernel).sum() + np.square(scale_kernel).sum())
  np.testing.assert_allclose(sum(head.losses), expected + .2 * 6, rtol=1e-5)


def test_serialisation_keeps_every_argument():
  arguments = dict(
      num_classes=6, covariance='diagonal', rank=2, temperature=.3,
      min_scale=.7, dummy_class=False, name='ln')
  head = ln_tfp.LogisticNormalHead(
      kernel_regularizer='l2', bias_regularizer='l1', **arguments)
  config = keras.saving.serialize_keras_object(head)
  copy = keras.saving.deserialize_keras_object(config)
  assert isinstance(copy, ln_tfp.LogisticNormalHead)
  for name, value in arguments.items():
    assert getattr(copy, name) == value
  assert isinstance(copy.kernel_regularizer, keras.regularizers.L2)
  assert isinstance(copy.bias_regularizer, keras.regularizers.L1)


@pytest.mark.parametrize('policy', ['mixed_float16', 'mixed_bfloat16'])
def test_mixed_precision_outputs_float32_without_overflow(policy):
  head = ln_tfp.LogisticNormalHead(4, 'diagonal', dtype=policy)
  out = head(np.full((2, 7), 300., 'float32'))
  head.scale.kernel.assign(np.full((7, 4), .5, 'float32'))
  assert out.dtype == 'float32'
  # c is about 1000; its square overflows float16.
  out = np.asarray(head(np.full((2, 7), 300., 'float32')))
  np.testing.assert_allclose(out[:, 1], 2 * (.5 + 1050.**2), rtol=2e-2)
  spec = head(keras.Input((7,)))
  assert spec.dtype == 'float32' and spec.shape == (None, 2, 4)


@pytest.mark.tensorflow
def test_unknown_batch_sizes_and_sequences():
  import tensorflow as tf
  head = ln_tfp.LogisticNormalHead(4, rank=2)
  call = tf.function(
      head, input_signature=[tf.TensorSpec([None, None, 7], tf.float32)])
  assert call(features((2, 3, 7))).shape == [2, 3, 4, 4]
  assert head(keras.Input((None, 7))).shape == (None, None, 4, 4)


@pytest.mark.parametrize(('arguments', 'message'), [
    (dict(num_classes=1), '`num_classes`.*num_classes=1'),
    (dict(num_classes=3.5), '`num_classes`.*3.5'),
    (dict(num_classes=None), '`num_classes`.*None'),
    (dict(num_classes='10'), "`num_classes`.*num_classes='10', a str"),
    (dict(num_classes=True), '`num_classes`.*True, a bool'),
    (dict(num_classes=3, min_scale='1'), "`min_scale`.*min_scale='1', a str"),
    (dict(num_classes=3, temperature=-1.), '`temperature`.*temperature=-1'),
    (dict(num_classes=3, min_scale=0.), '`min_scale`.*min_scale=0'),
    (dict(num_classes=3, covariance='tied'), "`covariance`.*'tied'"),
    (dict(num_classes=3, rank=4), '`rank`.*rank=4'),
    (dict(num_classes=3, rank=0), '`rank`.*rank=0'),
])
def test_wrong_arguments_are_named(arguments, message):
  with pytest.raises(ValueError, match=message):
    ln_tfp.LogisticNormalHead(**arguments)


def test_a_number_of_numpy_is_a_number_of_classes(tmp_path):
  labels = np.array([0, 2, 3])
  head = ln_tfp.LogisticNormalHead(1 + labels.max(), rank=np.int32(2))
  model = keras.Sequential([keras.Input((7,)), head])
  model.save(tmp_path / 'model.keras')
  loaded = keras.models.load_model(tmp_path / 'model.keras')
  np.testing.assert_array_equal(loaded(features()), model(features()))
  assert loaded.layers[-1].num_classes == 4


def test_numbers_of_numpy_serve_everywhere():
  head = ln_tfp.LogisticNormalHead(
      np.int64(3), temperature=np.float32(.5), min_scale=np.float64(.5),
      dummy_class=np.bool_(False))
  json.dumps(head.get_config())
  loss = ln_tfp.NegativeLogLikelihood(
      np.float64(.5), np.int64(3), ignore_class=np.int8(-1))
  json.dumps(loss.get_config())
  metric = ln_tfp.ExpectedCalibrationError(
      np.int32(15), np.int64(3), ignore_class=np.int16(-1))
  json.dumps(metric.get_config())
  for random in (ln_tfp.losses.NoiseAgainstNoise(seed=np.int64(1)),
                 ln_tfp.losses.HeteroscedasticNLL(np.int8(9), seed=np.int8(1))):
    json.dumps(random.get_config())
  outputs = head(features())
  assert ln_tfp.probabilities(outputs, np.int64(3)).shape == (5, 3)


def test_rows_invert_pack():
  parts = [features((5, 4)) for _ in range(4)]
  for row, part in zip(heads.rows(heads.pack(*parts)), parts, strict=True):
    np.testing.assert_array_equal(row, part)


def test_probabilities_are_softmaxes_of_the_scaled_mean():
  head = ln_tfp.LogisticNormalHead(4, temperature=.5)
  x = features()
  out = head(x)
  logits = np.asarray(head.loc(x)) / .5
  np.testing.assert_allclose(
      ln_tfp.probabilities(out), special.softmax(logits, axis=1), rtol=1e-5)
  padded = np.pad(logits, [[0, 0], [0, 1]])
  for arguments in (dict(dummy_class=True), dict(num_classes=5)):
    np.testing.assert_allclose(
        ln_tfp.probabilities(out, **arguments), special.softmax(padded, axis=1),
        rtol=1e-5)
  if backend.IS_TENSORFLOW:
    np.testing.assert_allclose(
        ln_tfp.to_distribution(out).predictive(),
        special.softmax(padded, axis=1), rtol=1e-5)
  with pytest.raises(ValueError, match='`num_classes`.*num_classes=7'):
    ln_tfp.probabilities(out, num_classes=7)


def test_what_is_not_packed_is_refused():
  for wrong in (
      ops.zeros([3]), ops.zeros([3, 1, 4]), ops.zeros([3, 3, 4], 'int32')):
    with pytest.raises(ValueError, match='Argument `y_pred`'):
      ln_tfp.probabilities(wrong)


def _warming(warm_up=4, **settings):
  """A compiled model whose head warms up, and its data: four steps an epoch."""
  keras.utils.set_random_seed(0)
  head = ln_tfp.LogisticNormalHead(3, warm_up=warm_up, **settings)
  model = keras.Sequential([keras.Input([5]), head])
  model.compile('adam', loss=ln_tfp.nll)
  model.optimizer.build(model.trainable_variables)
  x = np.random.default_rng(0).normal(size=[64, 5]).astype(np.float32)
  fit = dict(x=x, y=np.arange(64) % 3, batch_size=16, verbose=0)
  return model, head, fit


@pytest.mark.parametrize('covariance', ['full', 'diagonal', 'isotropic'])
def test_at_first_the_loss_of_a_warm_up_is_a_squared_error(covariance):
  _, head, fit = _warming(covariance=covariance)
  labels, x = fit['y'], fit['x']
  loc, diag, *columns = heads.rows(head(x, training=True))
  np.testing.assert_allclose(diag, 8.)
  assert all(not np.any(column) for column in columns)
  without = ln_tfp.LogisticNormalHead(
      3, covariance='isotropic', warm_up=0, kernel_initializer='ones',
      min_scale=8 * head.temperature)
  without(x)
  without.scale.set_weights([np.zeros([5, 1]), np.zeros([1])])
  without.loc.set_weights(head.loc.get_weights())
  np.testing.assert_allclose(
      ln_tfp.nll(labels, head(x, training=True)),
      ln_tfp.nll(labels, without(x)), rtol=1e-5, atol=1e-4)
  always = type(head)(3, covariance=covariance, warm_up=0)
  always(x)
  always.set_weights(head.get_weights())
  for training in (False, None):  # the covariance is there all the same
    np.testing.assert_array_equal(head(x, training=training), always(x))


def test_then_lambda_descends_to_what_it_was_told():
  _, head, fit = _warming(temperature=.25, min_scale=1.)
  steps = [heads.rows(head(fit['x'], training=True)) for _ in range(6)]
  # In units of the temperature: from 8 to 4, by the half at the third step.
  np.testing.assert_allclose(
      [diag[0, 0] for _, diag, _ in steps], [8, 8, 8, 32**.5, 4, 4], rtol=1e-5)
  assert [bool(np.any(column)) for _, _, column in steps] == 2 * [
      False] + 4 * [True]
  np.testing.assert_array_equal(
      head(fit['x'], training=True), head(fit['x']))
  _, high, _ = _warming(min_scale=20.)  # beyond the beginning: stays
  np.testing.assert_allclose(
      heads.rows(high(fit['x'], training=True))[1], 40.)


@pytest.mark.tensorflow
def test_at_first_the_pull_on_the_mean_is_fourfold():
  _, head, fit = _warming()  # lambda is the temperature in the end
  x, labels = fit['x'][:6], fit['y'][:6]
  _, gradient = backends.value_and_gradient(
      lambda y, features: ln_tfp.nll(y, head(features, training=True)),
      labels, x)
  loc = heads.rows(head(x, training=True))[0]
  np.testing.assert_allclose(
      loc, heads.rows(head(x))[0], rtol=1e-5, atol=1e-6)
  target = np.log((.99 * 4 + .01) / .01) * np.eye(3)[labels]
  pull = 4. * (loc - target) / 8. ** 2 / head.temperature
  kernel = head.loc.get_weights()[0]
  np.testing.assert_allclose(gradient, pull @ kernel.T, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize('jit_compile', [False, True])
def test_the_covariance_is_learnt_when_it_is_warm(jit_compile, tmp_path):
  model, head, fit = _warming(8)
  model.compile('adam', loss=ln_tfp.nll, jit_compile=jit_compile)
  scale, loc = head.scale.get_weights(), head.loc.get_weights()
  model.fit(**fit)
  for before, after in zip(scale, head.scale.get_weights()):
    np.testing.assert_array_equal(before, after)
  assert all(np.any(before != after)
             for before, after in zip(loc, head.loc.get_weights()))
  # The steps are saved with the weights, and are none of them.
  assert len(head.weights) == 4
  model.save(tmp_path / 'model.keras')
  model.save_weights(tmp_path / 'model.weights.h5')
  again = _warming(8)[0]
  again.load_weights(tmp_path / 'model.weights.h5')
  for warm in (keras.models.load_model(tmp_path / 'model.keras'), again):
    warm.fit(**fit)
    assert all(np.any(before != after) for before, after in zip(
        scale, warm.layers[-1].scale.get_weights()))


def test_weights_from_before_there_was_a_warm_up_are_warm(tmp_path):
  old = _warming(warm_up=0)[0]
  old.save_weights(tmp_path / 'old.weights.h5')
  model, head, fit = _warming()
  model.load_weights(tmp_path / 'old.weights.h5')
  np.testing.assert_array_equal(
      head(fit['x'], training=True), head(fit['x']))
  config = head.get_config()
  del config['warm_up']
  assert type(head).from_config(config).warm_up == 0


def test_a_head_that_knows_the_classes_is_warm():
  classifier = keras.Sequential([
      keras.Input([5]), keras.layers.Dense(3, 'softmax')])
  x = features((4, 5))
  for warm_start in (True, False):
    model = ln_tfp.from_classifier(classifier, warm_start=warm_start)
    same = np.array_equal(model(x, training=True), model(x))
    assert same == warm_start
  _, head, fit = _warming()
  process = ln_tfp.LogisticNormalProcess('linear').fit(fit['x'], fit['y'])
  process.initialize_head(head)
  np.testing.assert_array_equal(head(x, training=True), head(x))


def test_a_warm_up_is_a_number_of_steps():
  with pytest.raises(ValueError, match='`warm_up`.*-1'):
    ln_tfp.LogisticNormalHead(3, warm_up=-1)

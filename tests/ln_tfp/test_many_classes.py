"""The head for many classes: equal to the packed one, inside Keras."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import ln_tfp

CLASSES, FEATURES = 40, 6


def make_pair(dummy_class=True, dtype='float64', tied=False):
  """A head for many classes and a `LogisticNormalHead` of the same weights."""
  settings = dict(temperature=.7, min_scale=.4, dummy_class=dummy_class,
                  dtype=dtype)
  many = ln_tfp.ManyClassesHead(CLASSES, tied=tied, **settings)
  packed = ln_tfp.LogisticNormalHead(CLASSES, **settings)
  for head in (many, packed):
    head.build((None, FEATURES))
  rng = np.random.default_rng(0)
  many.set_weights([rng.normal(size=w.shape) for w in many.weights])
  loc = many.loc_table.numpy()
  factor = (loc @ many.factor_map.numpy().T if tied
            else many.factor_table.numpy())
  packed.set_weights([
      part for table in (loc, factor)
      for part in (table[:, :-1].T, table[:, -1])])
  return many, packed


def make_labels(batch=(9,)):
  labels = np.random.default_rng(1).integers(CLASSES, size=batch)
  labels.flat[0] = CLASSES - 1
  return labels


def gradients(head, loss, labels, features, weights):
  """The loss and its gradients in the features and in the head's weights."""
  variables = [variable.value for variable in head.trainable_variables]
  with tf.GradientTape() as tape:
    tape.watch(features)
    value = loss(labels, head(features), weights)
  return value, tape.gradient(value, [features, *variables])


@pytest.mark.parametrize('dummy_class', [True, False])
@pytest.mark.parametrize('batch', [(9,), (3, 4)])
@pytest.mark.parametrize('weighted', [False, True])
def test_the_loss_is_nll_of_the_packed_head_with_the_same_weights(
    dummy_class, batch, weighted):
  many, packed = make_pair(dummy_class)
  features = tf.constant(
      np.random.default_rng(2).normal(size=(*batch, FEATURES)))
  labels = make_labels(batch)
  weights = np.arange(labels.size).reshape(batch) / 3. if weighted else None
  losses = (many.loss(label_smoothing=.05),
            ln_tfp.NegativeLogLikelihood(.05, CLASSES, dtype='float64'))
  (value, (d_x, d_loc, d_factor)), (expected, (e_x, *e_weights)) = (
      gradients(head, loss, labels, features, weights)
      for head, loss in zip((many, packed), losses))
  np.testing.assert_allclose(value, expected, rtol=1e-10)
  np.testing.assert_allclose(d_x, e_x, rtol=1e-10, atol=1e-10)
  for table, kernel, bias in ((d_loc, *e_weights[:2]),
                              (d_factor, *e_weights[2:])):
    np.testing.assert_allclose(
        table, np.vstack([kernel, bias]).T, rtol=1e-10, atol=1e-10)


def test_the_tied_factor_is_the_table_times_a_square_matrix():
  many, packed = make_pair(tied=True)
  features = np.random.default_rng(2).normal(size=(9, FEATURES))
  np.testing.assert_allclose(
      many.loss()(make_labels(), many(features)),
      ln_tfp.NegativeLogLikelihood(dtype='float64')(
          make_labels(), packed(features)), rtol=1e-10)
  sizes = [tuple(w.shape) for w in many.weights]
  assert sizes == [(CLASSES, FEATURES + 1), (FEATURES + 1, FEATURES + 1)]


@pytest.mark.parametrize('dummy_class', [True, False])
def test_soft_labels_name_their_classes(dummy_class):
  many, packed = make_pair(dummy_class)
  features = np.random.default_rng(2).normal(size=(9, FEATURES))
  rng = np.random.default_rng(3)
  classes = rng.integers(CLASSES, size=(9, 4))
  classes[0] = CLASSES - 1  # the same four times: it adds up
  weights = rng.dirichlet(np.ones(4), size=9)
  weights[1] = 0.  # padding counts as uniform
  soft = np.zeros((9, CLASSES))
  np.add.at(soft, (np.arange(9)[:, np.newaxis], classes), weights)
  np.testing.assert_allclose(
      many.loss()(np.stack([classes, weights], axis=-1), many(features)),
      ln_tfp.NegativeLogLikelihood(num_classes=CLASSES, dtype='float64')(
          soft, packed(features)), rtol=1e-10)


@pytest.mark.slow
def test_ignored_masked_and_weightless_labels_neither_count_nor_fail():
  many, packed = make_pair()
  features = np.random.default_rng(2).normal(size=(9, FEATURES))
  labels = make_labels()
  labels[:3] = [-1, -1, 99]
  weights = np.ones(9)
  weights[2] = 0.
  actual, expected = (
      loss(labels, head(features), weights) for head, loss in (
          (many, many.loss(ignore_class=-1)),
          (packed, ln_tfp.NegativeLogLikelihood(
              ignore_class=-1, dtype='float64'))))
  np.testing.assert_allclose(actual, expected, rtol=1e-10)
  model = keras.Sequential([
      keras.Input((3, FEATURES)), keras.layers.Masking(), many])
  model.compile('sgd', loss=many.loss(), metrics=[many.accuracy()])
  x = np.random.default_rng(2).normal(size=(2, 3, FEATURES))
  x[0, 2] = x[1, 1:] = 0.
  labels = np.array([[0, 1, 99], [3, -1, -1]])
  values = ln_tfp.nll(np.clip(labels, 0, CLASSES - 1), packed(x)).numpy()
  result = model.evaluate(x, labels, verbose=0, return_dict=True)
  np.testing.assert_allclose(
      result['loss'], values[[0, 0, 1], [0, 1, 0]].mean(), rtol=1e-5)


@pytest.mark.parametrize('bad', [-1, CLASSES])
@pytest.mark.slow
def test_labels_that_are_no_classes_are_an_error_and_nan_under_xla(bad):
  many, _ = make_pair(dtype='float32')
  features = many(np.ones((9, FEATURES), 'float32'))
  labels = make_labels()
  labels[4] = bad
  with pytest.raises(tf.errors.InvalidArgumentError, match='`y_true`'):
    many.loss()(labels, features)
  compiled = tf.function(many.loss().call, jit_compile=True)
  isnan = np.isnan(compiled(tf.constant(labels, tf.int32), features))
  np.testing.assert_array_equal(isnan, np.arange(9) == 4)


def test_one_hot_labels_are_refused():
  many, _ = make_pair()
  with pytest.raises(ValueError, match="`y_true` .*'k', 2"):
    many.loss()(np.eye(CLASSES)[:9], many(np.ones((9, FEATURES))))


def test_the_loss_of_another_head_is_refused_where_it_does_not_fit():
  many, _ = make_pair()
  with pytest.raises(ValueError, match='`y_pred`'):
    many.loss()(make_labels(), np.ones((9, FEATURES + 1)))
  with pytest.raises(ValueError, match='`y_pred`'):
    ln_tfp.ManyClassesHead(5).loss()(make_labels(), np.ones((9, FEATURES)))
  with pytest.raises(ValueError, match='`head`'):
    ln_tfp.many_classes.ManyClassesNLL(keras.layers.Dense(3))


def make_data(n=600):
  """Points near one of 40 corners, a third with wrong labels."""
  rng = np.random.default_rng(0)
  corners = rng.normal(size=(CLASSES, FEATURES))
  clean = rng.integers(CLASSES, size=n)
  x = (corners[clean] + .1 * rng.normal(size=(n, FEATURES))).astype('float32')
  noisy = np.where(rng.uniform(size=n) < .3, rng.integers(CLASSES, size=n),
                   clean)
  return x, noisy, clean


def make_model(**settings):
  head = ln_tfp.ManyClassesHead(CLASSES, **settings)
  model = keras.Sequential([
      keras.Input((FEATURES,)), keras.layers.Dense(32, activation='relu'),
      head])
  return model, head


@pytest.mark.slow
@pytest.mark.parametrize(('head_settings', 'compile_settings', 'at_least'), [
    (dict(), dict(), .85), *(
        pytest.param(*case, marks=pytest.mark.thorough) for case in (
            (dict(), dict(jit_compile=True), .85),
            (dict(dtype='mixed_bfloat16'), dict(), .85),
            (dict(), dict(steps_per_execution=2), .85),
            (dict(tied=True), dict(), .5),
            (dict(dummy_class=False), dict(), .85)))],
    ids=str)
def test_fit_learns_through_noise(head_settings, compile_settings, at_least):
  x, noisy, clean = make_data(2000)
  model, head = make_model(**head_settings)
  model.compile(keras.optimizers.Adam(2e-2), loss=head.loss(),
                metrics=[head.accuracy(examples=16)], **compile_settings)
  model.fit(x, noisy, epochs=15, batch_size=64, verbose=0)
  assert model.predict(x, verbose=0).shape == (2000, 32)
  classes, _ = ln_tfp.predict_top_k(model, x, 1)
  assert np.mean(classes[:, 0] == clean) > at_least


def test_the_weights_stay_float32_under_mixed_precision():
  head = ln_tfp.ManyClassesHead(5, dtype='mixed_float16')
  head.build((None, 3))
  assert {w.dtype for w in head.weights} == {'float32'}
  assert head(np.ones((2, 3), 'float16')).dtype == tf.float32


@pytest.mark.slow
def test_the_accuracy_looks_at_the_first_examples():
  x, noisy, _ = make_data(64)
  model, head = make_model()
  model.compile('sgd', loss=head.loss())
  model.fit(x, noisy, epochs=20, verbose=0)
  classifier = ln_tfp.to_classifier(model)
  hits = classifier.predict(x, verbose=0).argmax(axis=1) == noisy
  for examples in (None, 10, 1000):
    metric = head.accuracy(examples)
    metric.update_state(noisy, model(x))
    np.testing.assert_allclose(
        metric.result(), hits[:examples].mean(), rtol=1e-6)


@pytest.mark.parametrize('compiled', [False, True])
def test_the_accuracy_takes_the_likeliest_of_soft_labels(compiled):
  many, _ = make_pair(dtype='float32')
  features = many(
      np.random.default_rng(2).normal(size=(6, FEATURES)).astype('float32'))
  met = many.top_k(features, 1)[0].numpy()[:, 0]
  other = (met + 1) % CLASSES
  soft = np.array([
      [[met[0], .6], [other[0], .4]],
      [[met[1], .4], [other[1], .6]],
      [[other[2], .3], [met[2], .7]],
      [[met[3], 0.], [met[3], 0.]],  # padding is of no class
      [[met[4], 1.], [0, 0.]],
      [[met[5], .4], [other[5], .6]]], 'float32')
  for examples, weights, expected in (
      (None, None, 3 / 6), (3, None, 2 / 3),
      (None, [1., 0., 1., 0., 1., 3.], 3 / 6)):
    metric = many.accuracy(examples)
    tf.function(metric.update_state, jit_compile=compiled)(
        soft, features,
        None if weights is None else tf.constant(weights))
    np.testing.assert_allclose(metric.result(), expected, rtol=1e-6)
  three = np.array([[[met[0], .4], [other[0], .3], [other[0], .3]]], 'float32')
  metric = many.accuracy()  # equal classes add up
  metric.update_state(three, features[:1])
  assert metric.result() == 0.
  soft[0, 1, 0] = CLASSES
  metric = many.accuracy()
  update = tf.function(metric.update_state, jit_compile=compiled)
  if compiled:
    update(soft, features)
    assert np.isnan(metric.result())
  else:
    with pytest.raises(tf.errors.InvalidArgumentError, match='`y_true`'):
      update(soft, features)


@pytest.mark.slow
@pytest.mark.parametrize('jit_compile', [False, True])
def test_soft_labels_train_with_their_accuracy(jit_compile):
  x, noisy, _ = make_data(600)
  soft = np.stack([
      np.stack([noisy, (noisy + 1) % CLASSES], axis=1),
      np.tile([.8, .2], (600, 1))], axis=-1)
  model, head = make_model()
  model.compile(keras.optimizers.Adam(2e-2), loss=head.loss(),
                metrics=[head.accuracy()], jit_compile=jit_compile)
  model.fit(x, soft, epochs=3, verbose=0)
  classes, _ = ln_tfp.predict_top_k(model, x, 1)
  expected = np.mean(classes[:, 0] == noisy)
  assert 0. < expected < 1.
  np.testing.assert_allclose(
      model.evaluate(x, soft, verbose=0)[1], expected, rtol=1e-5)


def test_the_accuracy_of_a_head_ignores_a_class():
  many, _ = make_pair(dtype='float32')
  features = many(np.ones((4, FEATURES), 'float32'))
  met = many.top_k(features, 1)[0].numpy()[:, 0]
  labels = np.array([met[0], (met[1] + 1) % CLASSES, -1, -1])
  metric = many.accuracy(ignore_class=-1)
  metric.update_state(labels, features)
  assert metric.result() == .5
  restored = type(metric).from_config(metric.get_config())
  assert restored.ignore_class == -1


@pytest.mark.parametrize('dummy_class', [True, False])
@pytest.mark.slow
def test_the_exported_classifier_predicts_what_top_k_predicts(dummy_class):
  x, noisy, _ = make_data()
  model, head = make_model(dummy_class=dummy_class)
  model.compile('adam', loss=head.loss(), metrics=[head.accuracy()])
  model.fit(x, noisy, verbose=0)
  probabilities = ln_tfp.to_classifier(model).predict(x, verbose=0)
  classes, top = ln_tfp.predict_top_k(model, x, 5, batch_size=50)
  np.testing.assert_allclose(
      top, -np.sort(-probabilities, axis=1)[:, :5], rtol=1e-4)
  np.testing.assert_allclose(
      np.take_along_axis(probabilities, classes, axis=1), top, rtol=1e-4)
  np.testing.assert_allclose(
      model.evaluate(x, noisy, verbose=0)[1],
      np.mean(probabilities.argmax(axis=1) == noisy), atol=1e-6)


@pytest.mark.slow
def test_a_compiled_model_continues_after_load_and_clone(tmp_path):
  x, noisy, _ = make_data()
  inputs = keras.Input((FEATURES,))
  head = ln_tfp.ManyClassesHead(CLASSES)
  model = keras.Model(inputs, head(keras.layers.Dense(8)(inputs)))
  model.compile('adam', loss=head.loss(), metrics=[head.accuracy(32)])
  model.fit(x, noisy, verbose=0)
  model.save(tmp_path / 'model.keras')
  other = keras.models.load_model(tmp_path / 'model.keras')
  clone = keras.models.clone_model(model)
  clone.set_weights(model.get_weights())
  expected = model.evaluate(x, noisy, verbose=0)
  for copy in (other, clone):
    np.testing.assert_allclose(
        copy.evaluate(x, noisy, verbose=0), expected, rtol=1e-5)
  model.fit(x, noisy, shuffle=False, verbose=0)
  other.fit(x, noisy, shuffle=False, verbose=0)
  for one, two in zip(model.get_weights(), other.get_weights()):
    np.testing.assert_allclose(one, two, atol=1e-6)
  assert not np.allclose(clone.get_weights()[-1], model.get_weights()[-1])


@pytest.mark.parametrize('jit_compile', [False, True])
def test_swapped_losses_of_two_heads_are_refused(jit_compile):
  x = np.ones((4, FEATURES), 'float32')
  inputs = keras.Input((FEATURES,))
  heads = [ln_tfp.ManyClassesHead(CLASSES) for _ in range(2)]
  model = keras.Model(inputs, [head(inputs) for head in heads])
  y = [np.zeros(4), np.ones(4)]
  settings = dict(optimizer='sgd', jit_compile=jit_compile)
  model.compile(loss=[head.loss() for head in heads],
                metrics=[[head.accuracy()] for head in heads], **settings)
  model.fit(x, y, verbose=0)
  model.compile(loss=[head.loss() for head in heads[::-1]], **settings)
  with pytest.raises(ValueError, match=f'{heads[1].name!r}.*another one'):
    model.fit(x, y, verbose=0)


def test_the_loss_of_the_head_that_was_cloned_is_refused():
  x, noisy, _ = make_data(8)
  model, head = make_model()
  for which in ('loss', 'metrics', None):
    clone = keras.models.clone_model(model)
    own = clone.layers[-1]
    clone.compile(
        'sgd', loss=(head if which == 'loss' else own).loss(),
        metrics=[(head if which == 'metrics' else own).accuracy()])
    if which is None:
      clone.fit(x, noisy, verbose=0)
    else:
      with pytest.raises(ValueError, match='another one'):
        clone.fit(x, noisy, verbose=0)


class Subclassed(keras.Model):
  """A model that Keras saves by its attributes."""

  def __init__(self, **kwargs):
    super().__init__(**kwargs)
    self.features = keras.layers.Dense(8)
    self.head = ln_tfp.ManyClassesHead(CLASSES)

  def call(self, x):
    return self.head(self.features(x))


@pytest.mark.slow
def test_the_weights_of_a_compiled_model_fit_an_uncompiled_one(tmp_path):
  x, noisy, _ = make_data()
  model, other = Subclassed(), Subclassed()
  model.compile('adam', loss=model.head.loss(),
                metrics=[model.head.accuracy()])
  model.fit(x, noisy, verbose=0)
  model.save_weights(tmp_path / 'model.weights.h5')
  other(x[:1])
  other.load_weights(tmp_path / 'model.weights.h5')
  for one, two in zip(model.get_weights(), other.get_weights()):
    np.testing.assert_array_equal(one, two)


def test_a_loss_without_its_head_says_so():
  _, head = make_model()
  config = head.loss().get_config()
  with pytest.raises(ValueError, match='compile=False'):
    type(head.loss()).from_config({**config, 'head': 'elsewhere'})


def test_top_k_of_many_chunks_is_that_of_all_logits(monkeypatch):
  monkeypatch.setattr(ln_tfp.top_k, '_CHUNK', 7)
  rng = np.random.default_rng(0)
  x, table = rng.normal(size=(11, 4)), rng.normal(size=(23, 4))
  for with_zero in (False, True):
    logits = np.pad(x @ table.T, [[0, 0], [0, int(with_zero)]])
    classes, probabilities = ln_tfp.top_k.top_k(
        tf.constant(x), tf.constant(table), 9, with_zero)
    expected = np.argsort(-logits, axis=1)[:, :9]
    np.testing.assert_array_equal(classes, expected)
    softmax = tf.nn.softmax(logits).numpy()
    np.testing.assert_allclose(
        probabilities, np.take_along_axis(softmax, expected, axis=1))


def test_top_k_reads_a_logistic_normal_head_too():
  model = keras.Sequential([
      keras.Input((4,)), ln_tfp.LogisticNormalHead(7, dummy_class=False)])
  x = np.random.default_rng(0).normal(size=(5, 4)).astype('float32')
  probabilities = ln_tfp.to_classifier(model).predict(x, verbose=0)
  classes, top = ln_tfp.predict_top_k(model, x, 3)
  np.testing.assert_array_equal(
      classes, np.argsort(-probabilities, axis=1)[:, :3])
  np.testing.assert_allclose(
      top, -np.sort(-probabilities, axis=1)[:, :3], rtol=1e-5)
  with pytest.raises(ValueError, match='`k` must not exceed 7'):
    ln_tfp.predict_top_k(model, x, 8)
  with pytest.raises(ValueError, match='`model`'):
    ln_tfp.predict_top_k(keras.Sequential([keras.Input((4,)),
                                           keras.layers.Dense(3)]), x)


def test_top_k_names_one_of_several_outputs():
  inputs = keras.Input((4,))
  heads = [ln_tfp.ManyClassesHead(7, name='many'),
           ln_tfp.LogisticNormalHead(9, name='packed')]
  model = keras.Model(inputs, [head(inputs) for head in heads])
  x = np.random.default_rng(0).normal(size=(5, 4)).astype('float32')
  for head in heads:
    classes, top = ln_tfp.predict_top_k(model, x, 3, output=head.name)
    probabilities = ln_tfp.to_classifier(model, head.name).predict(
        x, verbose=0)
    np.testing.assert_array_equal(
        classes, np.argsort(-probabilities, axis=1)[:, :3])
    np.testing.assert_allclose(
        top, -np.sort(-probabilities, axis=1)[:, :3], rtol=1e-5)
  for output in (None, 'elsewhere'):
    with pytest.raises(ValueError, match='`output`'):
      ln_tfp.predict_top_k(model, x, 3, output=output)


@pytest.mark.parametrize('initializer', [
    lambda: keras.initializers.RandomNormal(
        seed=keras.random.SeedGenerator(3)),
    lambda: keras.initializers.RandomNormal(seed=3),
    lambda: lambda shape, dtype=None: keras.random.normal(shape, dtype=dtype),
], ids=['generator', 'seed', 'function'])
@pytest.mark.parametrize('tied', [False, True])
def test_no_two_tables_begin_alike(initializer, tied):
  head = ln_tfp.ManyClassesHead(
      FEATURES + 1, tied=tied, kernel_initializer=initializer())
  head.build((None, FEATURES))
  one, two = (w.numpy() for w in head.weights)
  assert np.any(one) and np.any(two)
  assert not np.allclose(one[:, :-1], two[:, :-1])
  assert not np.allclose(one[:, :-1].T[:, :FEATURES], two[:-1, :FEATURES])


@pytest.mark.parametrize('shape', [(), (3,), (None, None)])
def test_features_of_no_width_or_batch_are_refused(shape):
  with pytest.raises(ValueError, match=r'\[B, ..., F\]'):
    ln_tfp.ManyClassesHead(5).build(shape)


def test_features_of_another_shape_are_refused():
  with pytest.raises(ValueError, match=r'\[B, ..., F\]'):
    ln_tfp.ManyClassesHead(5)(tf.ones([3]))
  head = ln_tfp.ManyClassesHead(5)
  head(tf.ones([2, 3]))
  for shape in ([3], [2, 4]):
    with pytest.raises(ValueError, match='incompatible with the layer'):
      head(tf.ones(shape))


@pytest.mark.parametrize(('settings', 'message'), [
    (dict(num_classes=1), '`num_classes`'),
    (dict(num_classes=9, temperature=0.), '`temperature`'),
    (dict(num_classes=9, min_scale=-1.), '`min_scale`'),
    (dict(num_classes=9, kernel_initializer='zeros'), '`kernel_initializer`'),
])
def test_wrong_arguments_are_named(settings, message):
  with pytest.raises(ValueError, match=message):
    ln_tfp.ManyClassesHead(**settings)

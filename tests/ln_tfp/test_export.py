"""From classifiers and back, across processes without ln_tfp."""

import subprocess
import sys

import keras
import numpy as np
import pytest

import ln_tfp
from ln_tfp import backend


def inputs(n=6, seed=0):
  rng = np.random.default_rng(seed)
  return rng.normal(size=(n, 8, 8, 1)).astype('float32')


def backbone():
  return keras.Sequential([
      keras.layers.Input((8, 8, 1)),
      keras.layers.Conv2D(4, 3, activation='relu'),
      keras.layers.BatchNormalization(),
      keras.layers.Flatten(),
      keras.layers.Dense(16, activation='relu')])


def sequential(**arguments):
  return keras.Sequential(
      [backbone(), ln_tfp.LogisticNormalHead(5, **arguments)])


def functional(**arguments):
  x = keras.Input((8, 8, 1))
  y = keras.layers.Flatten()(x)
  y = keras.layers.Add()([keras.layers.Dense(9)(y), keras.layers.Dense(9)(y)])
  return keras.Model(x, ln_tfp.LogisticNormalHead(5, **arguments)(y))


def nested(**arguments):
  x = keras.Input((8, 8, 1))
  return keras.Model(x, sequential(**arguments)(x))


def randomise(model):
  """Moves all weights, batch statistics included, off their first values."""
  rng = np.random.default_rng(1)
  model.set_weights([w + rng.uniform(0., .05, size=w.shape)
                     for w in model.get_weights()])
  return model


@pytest.mark.parametrize('dummy_class', [True, False])
@pytest.mark.parametrize('build', [sequential, functional, nested])
def test_the_classifier_gives_the_same_probabilities(build, dummy_class):
  model = randomise(build(dummy_class=dummy_class, temperature=.3))
  classifier = ln_tfp.to_classifier(model)
  num_classes = None if dummy_class else 5
  expected = ln_tfp.probabilities(model(inputs()), num_classes)
  actual = classifier(inputs())
  assert actual.shape == (6, 5)
  np.testing.assert_allclose(actual, expected, atol=1e-6)


def test_the_classifier_is_an_independent_plain_keras_model():
  model = randomise(sequential(rank=2))
  before = np.asarray(ln_tfp.probabilities(model(inputs())))
  classifier = ln_tfp.to_classifier(model)
  assert classifier.count_params() == model.count_params() - (16 + 1) * 2 * 5
  modules = {type(layer).__module__.split('.')[0]
             for layer in classifier._flatten_layers()}
  assert modules == {'keras'}
  classifier.set_weights([0 * w for w in classifier.get_weights()])
  np.testing.assert_array_equal(
      ln_tfp.probabilities(model(inputs())), before)


def train(model, labels=(0, 1, 2, 3, 4, 0)):
  model.compile('adam', loss=ln_tfp.nll, metrics=[ln_tfp.Accuracy()])
  model.fit(inputs(), np.array(labels), verbose=0)
  return model


def trained_with_trained_parts():
  x = keras.Input((8, 8, 1))
  return train(keras.Model(x, train(sequential())(x)))


@pytest.mark.slow
def test_the_classifier_of_a_trained_model_loads_without_ln_tfp(tmp_path):
  models = {'nested': trained_with_trained_parts(),
            'sequential': train(sequential()),
            'functional': train(functional())}
  for name, model in models.items():
    classifier = ln_tfp.to_classifier(model)
    assert not classifier.compiled
    classifier.save(tmp_path / f'{name}.keras')
  if backend.IS_TENSORFLOW:  # the others have no strings
    ln_tfp.to_classifier(
        models['nested'], class_names='abcde').save(tmp_path / 'names.keras')
  np.save(tmp_path / 'x.npy', inputs())
  script = (
      'import sys; sys.modules["ln_tfp"] = None\n'
      'import keras, numpy as np\n'
      f'for name in {list(models)}:\n'
      '  model = keras.models.load_model(name + ".keras")\n'
      '  np.save(name + ".npy", model.predict(np.load("x.npy"), verbose=0))\n'
      'if keras.backend.backend() == "tensorflow":\n'
      '  model = keras.models.load_model("names.keras")\n'
      '  names = model.predict(np.load("x.npy"), verbose=0)["class_name"]\n'
      '  print(b"".join(names).decode())\n'
      '  print("".join(model.get_layer("class_names").get_vocabulary()))\n')
  done = subprocess.run([sys.executable, '-c', script], cwd=tmp_path,
                        check=True, capture_output=True, text=True)
  for name, model in models.items():
    np.testing.assert_allclose(
        np.load(tmp_path / f'{name}.npy'),
        ln_tfp.probabilities(model(inputs())), atol=1e-6)
  likeliest = np.argmax(ln_tfp.probabilities(models['nested'](inputs())), 1)
  expected = [''.join('abcde'[k] for k in likeliest), 'abcde']
  assert done.stdout.split() == (expected if backend.IS_TENSORFLOW else [])


@pytest.mark.slow
def test_the_classifier_can_be_compiled_evaluated_and_trained_on():
  classifier = ln_tfp.to_classifier(trained_with_trained_parts())
  classifier.compile(
      'sgd', 'sparse_categorical_crossentropy', metrics=['accuracy'])
  labels = np.arange(6) % 5
  loss, accuracy = classifier.evaluate(inputs(), labels, verbose=0)
  p = classifier.predict(inputs(), verbose=0)
  np.testing.assert_allclose(
      loss, -np.log(p[np.arange(6), labels]).mean(), rtol=1e-5)
  np.testing.assert_allclose(accuracy, (p.argmax(1) == labels).mean())
  classifier.fit(inputs(), labels, verbose=0)


@pytest.mark.tensorflow
def test_a_classifier_with_names_can_be_evaluated_without_them():
  labels = np.arange(6) % 5
  named = ln_tfp.to_classifier(functional(), class_names='abcde')
  plain = keras.Model(named.input, named.output['probabilities'])
  plain.compile(loss='sparse_categorical_crossentropy', metrics=['accuracy'])
  assert np.isfinite(plain.evaluate(inputs(), labels, verbose=0)).all()


def words_model(lookup):
  x = keras.Input((1,), dtype='string')
  y = keras.layers.Dense(4)(lookup(x))
  return keras.Model(x, ln_tfp.LogisticNormalHead(3)(y))


@pytest.mark.tensorflow
@pytest.mark.slow
def test_models_that_read_strings_can_be_exported(tmp_path):
  import tensorflow as tf
  words = tf.constant([['one'], ['two'], ['three'], ['one']])
  lookup = keras.layers.StringLookup(output_mode='one_hot')
  lookup.adapt(words)
  text = keras.layers.TextVectorization(output_mode='multi_hot')
  text.adapt(['one two', 'three', 'two'])
  for layer in (lookup, text,
                keras.layers.StringLookup(
                    vocabulary=['one', 'two'], output_mode='one_hot')):
    model = words_model(layer)
    model.compile('adam', loss=ln_tfp.nll)
    model.fit(words, np.array([0, 1, 2, 0]), verbose=0)
    classifier = ln_tfp.to_classifier(model)
    expected = ln_tfp.probabilities(model(words))
    np.testing.assert_allclose(classifier(words), expected, atol=1e-6)
    classifier.save(tmp_path / 'words.keras')
    loaded = keras.models.load_model(tmp_path / 'words.keras')
    np.testing.assert_allclose(loaded(words), expected, atol=1e-6)
    again = ln_tfp.from_classifier(classifier, warm_start=True)
    np.testing.assert_allclose(
        ln_tfp.probabilities(again(words)), expected, atol=1e-6)


def two_outputs(last, as_dict=False):
  x, z = keras.Input((4,), name='x'), keras.Input((2,), name='z')
  y = keras.layers.Dense(6, activation='relu')(x)
  both = keras.layers.Concatenate()([y, z])
  other = keras.layers.Dense(2, name='other')(both)
  if as_dict:
    return keras.Model([x, z], {'main': last(y), 'aux': other})
  return keras.Model([x, z], [last(y), other])


def test_one_of_several_outputs_is_exported_by_name():
  rng = np.random.default_rng(0)
  data = [rng.normal(size=(5, 4)).astype('float32'),
          rng.normal(size=(5, 2)).astype('float32')]
  model = two_outputs(ln_tfp.LogisticNormalHead(3, name='head'))
  classifier = ln_tfp.to_classifier(model, output='head')
  np.testing.assert_allclose(
      classifier(data), ln_tfp.probabilities(model(data)[0]), atol=1e-6)
  model = two_outputs(ln_tfp.LogisticNormalHead(3, name='head'), as_dict=True)
  classifier = ln_tfp.to_classifier(model, output='main')
  np.testing.assert_allclose(
      classifier(data), ln_tfp.probabilities(model(data)['main']), atol=1e-6)
  for arguments, message in (
      ({}, '`output` must name one'),
      ({'output': 'head'}, r"`output` must be one of \['aux', 'main'\]"),
      ({'output': 'aux'}, "LogisticNormalHead.*'other'")):
    with pytest.raises(ValueError, match=message):
      ln_tfp.to_classifier(model, **arguments)
  plain = two_outputs(keras.layers.Dense(3, activation='softmax', name='p'))
  back = ln_tfp.from_classifier(plain, output='p', warm_start=True)
  np.testing.assert_allclose(
      ln_tfp.probabilities(back(data)), plain(data)[0], atol=1e-6)


def test_an_output_of_a_nested_model_has_the_name_of_its_head():
  x = keras.Input((8, 8, 1))
  y = keras.layers.Dense(4)(keras.layers.Flatten()(x))
  nested_ = keras.Model(
      x, [y, ln_tfp.LogisticNormalHead(3, name='head')(y)], name='nested')
  z = keras.Input((8, 8, 1))
  model = keras.Model(z, nested_(z))
  np.testing.assert_allclose(
      ln_tfp.to_classifier(model, output='head')(inputs()),
      ln_tfp.probabilities(model(inputs())[1]), atol=1e-6)
  with pytest.raises(ValueError, match="one of .*'head'.*output='nested'"):
    ln_tfp.to_classifier(model, output='nested')  # which of the two?


def test_lambda_layers_are_exported():
  model = keras.Sequential([
      keras.Input((8, 8, 1)), keras.layers.Lambda(lambda x: 2. * x),
      keras.layers.Flatten(), ln_tfp.LogisticNormalHead(5)])
  np.testing.assert_allclose(
      ln_tfp.to_classifier(model)(inputs()),
      ln_tfp.probabilities(model(inputs())), atol=1e-6)


@pytest.mark.filterwarnings('ignore:Layer .* does not have a .quantize')
@pytest.mark.slow
def test_quantised_models_are_refused_in_words():
  model = sequential()
  model.quantize('int8')
  classifier = keras.Sequential([backbone(), keras.layers.Dense(5)])
  classifier.quantize('int8')
  for export, quantised in ((ln_tfp.to_classifier, model),
                            (ln_tfp.from_classifier, classifier)):
    with pytest.raises(ValueError, match='must not be quantised.*int8'):
      export(quantised)


@pytest.mark.parametrize('dummy_class', [True, False])
@pytest.mark.parametrize('use_bias', [True, False])
def test_a_warm_start_predicts_like_the_classifier(dummy_class, use_bias):
  classifier = randomise(keras.Sequential(
      [backbone(), keras.layers.Dense(5, 'softmax', use_bias=use_bias)]))
  model = ln_tfp.from_classifier(
      classifier, warm_start=True, temperature=.3, dummy_class=dummy_class,
      use_bias=use_bias)
  np.testing.assert_allclose(
      ln_tfp.probabilities(model(inputs()), 5), classifier(inputs()), atol=1e-6)
  np.testing.assert_allclose(
      ln_tfp.to_classifier(model)(inputs()), classifier(inputs()), atol=1e-6)
  with pytest.raises(ValueError, match='`warm_start`.*num_classes=7'):
    ln_tfp.from_classifier(
        classifier, warm_start=True, use_bias=use_bias, num_classes=7)


@pytest.mark.tensorflow
def test_float64_stays_float64():
  x = inputs().astype('float64').reshape(6, 64)
  classifier = keras.Sequential([
      keras.Input((64,), dtype='float64'),
      keras.layers.Dense(9, dtype='float64'),
      keras.layers.Dense(5, 'softmax', dtype='float64')])
  model = ln_tfp.from_classifier(classifier, warm_start=True)
  again = ln_tfp.to_classifier(model)
  assert model(x).dtype == again(x).dtype == 'float64'
  np.testing.assert_allclose(again(x), classifier(x), atol=1e-14)


@pytest.mark.tensorflow
def test_a_wrong_number_of_class_names_is_refused():
  for names in ('abc', 'abcda'):
    with pytest.raises(ValueError, match='`class_names` must hold 5.*[34]'):
      ln_tfp.to_classifier(sequential(), class_names=names)


@pytest.mark.tensorflow
@pytest.mark.slow
def test_the_classifier_goes_through_a_saved_model(tmp_path):
  import tensorflow as tf
  model = randomise(sequential())
  ln_tfp.to_classifier(model).export(tmp_path / 'saved', verbose=False)
  loaded = tf.saved_model.load(tmp_path / 'saved')
  np.testing.assert_allclose(
      loaded.serve(inputs()), ln_tfp.probabilities(model(inputs())), atol=1e-6)


def test_models_without_a_single_head_output_are_refused():
  x = keras.Input((4,))
  head = ln_tfp.LogisticNormalHead(3)(x)
  for wrong in (
      keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(3)]),
      keras.Model(x, [head, keras.layers.Dense(2)(x)]),
      keras.Model(x, keras.layers.Flatten()(head)),
      keras.Sequential([ln_tfp.LogisticNormalHead(3)]),  # never built
      'model'):
    with pytest.raises(ValueError, match='Argument `model` must'):
      ln_tfp.to_classifier(wrong)


@pytest.mark.parametrize('ending', [
    [keras.layers.Dense(5)],
    [keras.layers.Dense(5, activation='softmax')],
    [keras.layers.Dense(5), keras.layers.Softmax()],
    [keras.layers.Dense(5), keras.layers.Activation('softmax')],
], ids=['logits', 'softmax', 'layer', 'activation'])
@pytest.mark.slow
def test_from_classifier_keeps_the_backbone(ending):
  classifier = randomise(keras.Sequential([backbone(), *ending]))
  model = ln_tfp.from_classifier(classifier, temperature=.7, rank=2)
  head = model.layers[-1]
  assert isinstance(head, ln_tfp.LogisticNormalHead)
  assert (head.num_classes, head.temperature, head.rank) == (5, .7, 2)
  features = keras.Model(model.input, head.input)
  np.testing.assert_allclose(
      features(inputs()), classifier.layers[0](inputs()), atol=1e-6)
  before = classifier.get_weights()
  model.compile('sgd', loss=ln_tfp.nll)
  model.fit(inputs(), np.zeros(6), verbose=0)
  for old, new in zip(before, classifier.get_weights()):
    np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize('is_nested', [False, True])
def test_the_statistics_of_a_normalization_layer_are_kept(is_nested):
  scale = keras.layers.Normalization()
  scale.adapt(100. * inputs() + 7.)
  layers = [keras.Input((8, 8, 1)), scale, keras.layers.Flatten()]
  if is_nested:
    layers = [layers[0], keras.Sequential(layers)]
  x = 100. * inputs() + 7.
  classifier = keras.Sequential([*layers, keras.layers.Dense(5)])
  model = ln_tfp.from_classifier(classifier)
  features = keras.Model(model.input, model.layers[-1].input)
  expected = keras.Model(classifier.inputs[0], classifier.layers[-1].input)
  np.testing.assert_allclose(features(x), expected(x), atol=1e-6)
  np.testing.assert_allclose(
      ln_tfp.to_classifier(model)(x), ln_tfp.probabilities(model(x)),
      atol=1e-6)


def test_from_classifier_refuses_other_endings():
  for wrong in (
      keras.Sequential([backbone(), keras.layers.Dense(5, 'relu')]),
      keras.Sequential([backbone(), keras.layers.Dropout(.5)]),
      sequential()):
    with pytest.raises(ValueError, match='Argument `model` must'):
      ln_tfp.from_classifier(wrong)


def test_there_and_back_again():
  classifier = keras.Sequential([backbone(), keras.layers.Dense(5)])
  model = ln_tfp.from_classifier(classifier)
  again = ln_tfp.to_classifier(model)
  np.testing.assert_allclose(
      again(inputs()), ln_tfp.probabilities(model(inputs())), atol=1e-6)

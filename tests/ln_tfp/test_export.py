"""From classifiers and back, across processes without ln_tfp."""

import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

import ln_tfp


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
  before = ln_tfp.probabilities(model(inputs())).numpy()
  classifier = ln_tfp.to_classifier(model)
  assert classifier.count_params() == model.count_params() - (16 + 1) * 2 * 5
  modules = {type(layer).__module__.split('.')[0]
             for layer in classifier._flatten_layers()}
  assert modules == {'keras'}
  classifier.set_weights([0 * w for w in classifier.get_weights()])
  np.testing.assert_array_equal(
      ln_tfp.probabilities(model(inputs())), before)


def test_the_classifier_loads_where_ln_tfp_cannot_be_imported(tmp_path):
  model = randomise(nested())
  ln_tfp.to_classifier(model).save(tmp_path / 'classifier.keras')
  np.save(tmp_path / 'x.npy', inputs())
  script = (
      'import sys; sys.modules["ln_tfp"] = None\n'
      'import keras, numpy as np\n'
      'model = keras.models.load_model("classifier.keras")\n'
      'np.save("p.npy", model.predict(np.load("x.npy"), verbose=0))\n')
  subprocess.run([sys.executable, '-c', script], cwd=tmp_path, check=True,
                 capture_output=True)
  np.testing.assert_allclose(
      np.load(tmp_path / 'p.npy'), ln_tfp.probabilities(model(inputs())),
      atol=1e-6)


def test_the_classifier_goes_through_a_saved_model(tmp_path):
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

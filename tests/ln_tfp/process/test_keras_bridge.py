"""The process and Keras: backbones, plain models, heads."""

import subprocess
import sys

import keras
import numpy as np
import pytest
from sklearn import datasets
import tensorflow as tf
import tensorflow_probability as tfp

import ln_tfp


def make():
  x, y = datasets.load_digits(return_X_y=True)
  return (x / 16.).astype(np.float32), y


def make_backbone():
  keras.utils.set_random_seed(0)
  return keras.Sequential([
      keras.Input([8, 8, 1]), keras.layers.Flatten(),
      keras.layers.Dense(100, activation='relu')])


@pytest.mark.parametrize('kernel', ['linear', 'rbf'])
@pytest.mark.slow
def test_a_plain_keras_model_gives_the_same_probabilities(kernel):
  x, y = make()
  process = ln_tfp.LogisticNormalProcess(kernel, num_inducing=200).fit(x, y)
  model = process.to_keras()
  np.testing.assert_allclose(
      model.predict(x, verbose=0), process.predict_proba(x), atol=2e-4)
  np.testing.assert_allclose(
      tf.function(model, jit_compile=True)(x), process.predict_proba(x),
      atol=2e-4)


@pytest.mark.parametrize('kernel', ['linear', 'rbf'])
def test_a_plain_keras_model_may_be_of_features_far_from_zero(kernel):
  x, y = (part[:600] for part in make())
  far = 16. * x.astype(np.float64) + 1e5
  process = ln_tfp.LogisticNormalProcess(kernel, num_inducing=100).fit(far, y)
  model = process.to_keras()
  np.testing.assert_allclose(
      model(far.astype(np.float32)), process.predict_proba(far), atol=1e-4)
  near = ln_tfp.LogisticNormalProcess('linear').fit(x, y).to_keras()
  assert [type(layer) for layer in near.layers] == [keras.layers.Dense]


@pytest.mark.slow
def test_backbone_and_process_load_where_ln_tfp_cannot_be_imported(tmp_path):
  x, y = (part[:500] for part in make())
  images = x.reshape([-1, 8, 8, 1])
  backbone = make_backbone()
  np.save(tmp_path / 'images.npy', images[:20])
  classifiers = {}
  for kernel in ('linear', 'rbf'):
    process = ln_tfp.LogisticNormalProcess.from_backbone(
        backbone, images, y, kernel=kernel)
    assert process.kernel_ == kernel
    classifiers[kernel] = keras.Sequential([backbone, process.to_keras()])
    classifiers[kernel].save(tmp_path / f'{kernel}.keras')
    np.testing.assert_allclose(
        classifiers[kernel](images[:20]),
        process.predict_proba(backbone.predict(images[:20], verbose=0)),
        atol=2e-4)
  code = (
      'import sys; sys.modules["ln_tfp"] = None\n'
      'import keras, numpy as np\n'
      'images = np.load("images.npy")\n'
      f'for kernel in {list(classifiers)}:\n'
      '  model = keras.models.load_model(kernel + ".keras")\n'
      '  np.save(kernel + ".npy", model(images))\n')
  subprocess.run([sys.executable, '-c', code], check=True, cwd=tmp_path)
  for kernel, classifier in classifiers.items():
    np.testing.assert_allclose(
        np.load(tmp_path / f'{kernel}.npy'), classifier(images[:20]),
        atol=1e-6)


@pytest.mark.slow
def test_a_dataset_is_embedded_in_one_reading():
  x, y = make()
  images = x.reshape([-1, 8, 8, 1])
  backbone = make_backbone()
  shuffled = tf.data.Dataset.from_tensor_slices((images, y)).shuffle(
      2_000, seed=0).batch(100)
  one = ln_tfp.LogisticNormalProcess.from_backbone(
      backbone, images, y, kernel='linear', noise_model=False)
  two = ln_tfp.LogisticNormalProcess.from_backbone(
      backbone, shuffled, kernel='linear', noise_model=False)
  features = backbone.predict(images, verbose=0)
  np.testing.assert_allclose(
      one.predict_proba(features), two.predict_proba(features), atol=1e-3)


def test_batches_may_have_weights_and_labels_may_stay_outside():
  x, y = (part[:500] for part in make())
  images = x.reshape([-1, 8, 8, 1])
  backbone = make_backbone()
  weight = np.linspace(.5, 2., 500)
  settings = dict(kernel='linear', noise_model=False)
  cut = lambda *parts: lambda: (
      tuple(part[i:i + 90] for part in parts) for i in range(0, 500, 90))
  features = backbone.predict(images, verbose=0)
  for stream, labels, expected in (
      (cut(images, y, weight), None, weight), (cut(images), y, None)):
    process = ln_tfp.LogisticNormalProcess.from_backbone(
        backbone, stream, labels, **settings)
    other = ln_tfp.LogisticNormalProcess(**settings).fit(
        features, y, expected)
    np.testing.assert_allclose(
        process.predict_proba(features), other.predict_proba(features),
        atol=1e-4)
  with pytest.raises(ValueError, match='`y` must be labels'):
    ln_tfp.LogisticNormalProcess.from_backbone(backbone, images)


@pytest.mark.parametrize('dummy_class', [True, False])
@pytest.mark.slow
def test_a_head_starts_at_the_mean_of_the_process(dummy_class):
  x, y = make()
  process = ln_tfp.LogisticNormalProcess('linear', noise_model=False).fit(x, y)
  head = ln_tfp.LogisticNormalHead(
      10, temperature=.7, dummy_class=dummy_class)
  model = keras.Sequential([keras.Input([64]), head])
  process.initialize_head(head)
  num_logits = 11 if dummy_class else 10
  smoothed = .99 * np.eye(10, num_logits) + .01 / num_logits
  logits = np.log(smoothed[:, :-1]) - np.log(smoothed[:, -1:])
  # The targets' mean under mu is the head's mean at temperature 1.
  packed = model.predict(x, verbose=0)
  np.testing.assert_allclose(
      packed[:, 0], process._solution.mean(x) @ logits, atol=1e-3)
  predicted = np.argmax(ln_tfp.probabilities(packed, 10), axis=1)
  assert np.mean(predicted == process.predict(x)) > .97


@pytest.mark.slow
def test_a_warm_start_lowers_the_first_losses():
  x, y = make()
  process = ln_tfp.LogisticNormalProcess('linear').fit(x, y)
  losses = []
  for warm in (False, True):
    keras.utils.set_random_seed(1)
    head = ln_tfp.LogisticNormalHead(10)
    model = keras.Sequential([keras.Input([64]), head])
    if warm:
      process.initialize_head(head)
    model.compile('adam', loss=ln_tfp.nll, metrics=[ln_tfp.Accuracy()])
    history = model.fit(x, y, epochs=2, verbose=0).history
    losses.append(history['loss'][-1])
  assert losses[1] < losses[0] - 1.
  assert history['accuracy'][0] > .9


@pytest.mark.slow
def test_a_fresh_head_is_built_by_its_start():
  x, y = make()
  process = ln_tfp.LogisticNormalProcess('linear').fit(x, y)
  head = ln_tfp.LogisticNormalHead(10)
  process.initialize_head(head)
  assert head(x).shape == (len(x), 3, 10)


@pytest.mark.slow
def test_what_keras_cannot_express_is_refused():
  x, y = make()
  rbf = ln_tfp.LogisticNormalProcess('rbf', num_inducing=50).fit(x, y)
  with pytest.raises(ValueError, match="use kernel='linear'"):
    rbf.initialize_head(ln_tfp.LogisticNormalHead(10))
  linear = ln_tfp.LogisticNormalProcess('linear').fit(x, y)
  with pytest.raises(ValueError, match='must have 10 classes'):
    linear.initialize_head(ln_tfp.LogisticNormalHead(5))
  with pytest.raises(ValueError, match='label_smoothing'):
    linear.initialize_head(ln_tfp.LogisticNormalHead(10), label_smoothing=0.)
  theirs = ln_tfp.LogisticNormalProcess(
      tfp.math.psd_kernels.MaternThreeHalves(length_scale=np.float32(2.)),
      num_inducing=50).fit(x, y)
  with pytest.raises(ValueError, match="'linear' and 'rbf' alone"):
    theirs.to_keras()
  pictures = keras.Sequential(
      [keras.Input([8, 8, 1]), keras.layers.MaxPooling2D()])
  with pytest.raises(ValueError, match=r'shape \[batch, F\]'):
    ln_tfp.LogisticNormalProcess.from_backbone(
        pictures, x.reshape([-1, 8, 8, 1]), y)

"""The networks: shapes, parameter counts, seeds, weights from files."""

import random

import keras
import numpy as np
import pytest

from experiments import models

# Keras saves a variable through NumPy's old `__array__` protocol.
pytestmark = pytest.mark.filterwarnings(
    'ignore:__array__ implementation:DeprecationWarning')


def _logits(num_classes=10):
  return keras.layers.Dense(num_classes, name='logits')


def _small(seed, head=None, widths=(5,)):
  return models.build(
      'mlp', (3, 2), head or _logits(4), seed=seed, widths=widths)


def _equal(model, other):
  return all(
      np.array_equal(a, b)
      for a, b in zip(model.get_weights(), other.get_weights(), strict=True))


def test_lenet5_has_the_papers_number_of_parameters():
  model = models.build('lenet5', (28, 28, 1), _logits(), seed=0)
  assert model.count_params() == 545_546
  # The Logistic-Normal head adds a second projection of 84 features to 10.
  double = models.build('lenet5', (28, 28, 1), _logits(20), seed=0)
  assert double.count_params() == 546_396


def _trainable(model):
  return sum(int(np.prod(v.shape)) for v in model.trainable_variables)


@pytest.mark.slow
def test_wide_resnet_28_2_has_the_papers_number_of_trainable_parameters():
  model = models.build('wide_resnet', (32, 32, 3), _logits(), seed=0)
  assert _trainable(model) == 1_467_610
  double = models.build('wide_resnet', (32, 32, 3), _logits(20), seed=0)
  assert _trainable(double) == 1_468_900


def test_wide_resnet_halves_the_resolution_twice_and_widens_with_width():
  model = models.wide_resnet((32, 32, 3), depth=16, width=3)
  assert model.get_layer('final_relu').output.shape == (None, 8, 8, 192)
  convolutions = [
      layer for layer in model.layers
      if isinstance(layer, keras.layers.Conv2D) and layer.kernel_size == (3, 3)]
  assert len(convolutions) == 16 - 3  # depth counts three shortcuts
  assert model.output.shape == (None, 192)


@pytest.mark.parametrize('depth', [4, 12, 27])
def test_wide_resnet_refuses_a_depth_that_is_not_6n_plus_4(depth):
  with pytest.raises(ValueError, match='`depth` must be 6n'):
    models.wide_resnet(depth=depth)


def test_mlp_flattens_its_input():
  model = _small(0)
  assert model(np.zeros([7, 3, 2], np.float32)).shape == (7, 4)
  assert model.count_params() == 6 * 5 + 5 + 5 * 4 + 4


def test_the_same_seed_gives_the_same_weights_and_another_seed_others():
  assert _equal(_small(1), _small(1))
  assert not _equal(_small(1), _small(2))


def test_two_layers_of_one_shape_start_differently():
  first, second = _small(0, widths=(5, 5, 5)).get_weights()[2:6:2]
  assert not np.array_equal(first, second)


def test_initial_weights_do_not_depend_on_what_was_built_before():
  before = _small(1)
  random.seed(7)
  keras.utils.set_random_seed(8)
  _small(5)
  head = _logits(4)
  keras.layers.Dense(3)
  assert _equal(before, _small(1, head))


def test_building_leaves_the_global_random_state_alone():
  head = _logits(4)
  random.seed(3)
  expected = random.random()
  random.seed(3)
  _small(1, head)
  assert random.random() == expected


def test_the_state_of_random_is_restored_after_an_error():
  head = _logits()
  state = random.getstate()
  with pytest.raises(ValueError, match='`widths`'):
    models.build('mlp', (2,), head, seed=0, widths=())
  assert random.getstate() == state


def test_the_heads_settings_survive_being_constructed_anew():
  head = keras.layers.Dense(
      3, use_bias=False, kernel_regularizer=keras.regularizers.L2(.5),
      dtype='float32', name='mine')
  model = _small(0, head)
  assert model.layers[-1].name == 'mine'
  assert not model.layers[-1].use_bias
  assert model.layers[-1].kernel_regularizer.l2 == pytest.approx(.5)


def test_a_head_with_weights_is_refused():
  head = _logits()
  head.build((None, 4))
  with pytest.raises(ValueError, match='`head` must be a Keras layer'):
    models.build('mlp', (4,), head, seed=0)


def test_an_unknown_name_is_refused_with_the_known_ones():
  with pytest.raises(ValueError, match='mlp, lenet5, wide_resnet, resnet50'):
    models.build('vgg', (4,), _logits(), seed=0)


@pytest.mark.slow
def test_models_survive_saving_and_loading(tmp_path):
  model = models.build(
      'wide_resnet', (8, 8, 3), _logits(), seed=0, depth=10, width=1)
  model.save(tmp_path / 'model.keras')
  x = np.random.default_rng(0).normal(size=[2, 8, 8, 3]).astype(np.float32)
  np.testing.assert_allclose(
      keras.saving.load_model(tmp_path / 'model.keras')(x), model(x))


@pytest.mark.parametrize('weights', ['imagenet', 'elsewhere/weights.h5'])
def test_resnet50_without_its_file_says_in_one_line_what_is_missing(
    weights, tmp_path, monkeypatch):
  monkeypatch.setenv('HOME', str(tmp_path))
  monkeypatch.setattr(
      keras.utils, 'get_file', lambda *_, **__: pytest.fail('a download'))
  with pytest.raises(FileNotFoundError, match='`weights`.*no file') as error:
    models.resnet50((32, 32, 3), weights=weights)
  assert '\n' not in str(error.value)


@pytest.mark.slow
def test_resnet50_refuses_a_file_of_something_else(tmp_path):
  path = tmp_path / 'weights.h5'
  path.write_bytes(b'not a weight file')
  with pytest.raises(ValueError, match='does not hold the weights'):
    models.resnet50((32, 32, 3), weights=path)


@pytest.mark.slow
@pytest.mark.thorough
def test_resnet50_with_keras_weights_sees_images_as_keras_normalises_them(
    tmp_path, monkeypatch):
  """Our normalised RGB input gives the features of Keras's own pipeline."""
  monkeypatch.setenv('HOME', str(tmp_path))
  with models.seeded(1):
    reference = keras.applications.ResNet50(
        include_top=False, weights=None, input_shape=(32, 32, 3),
        pooling='avg')
  path = (tmp_path / '.keras' / 'models'
          / 'resnet50_weights_tf_dim_ordering_tf_kernels_notop.h5')
  path.parent.mkdir(parents=True)
  reference.save(path)  # the old HDF5 format, which the real file has

  pixels = np.random.default_rng(0).integers(0, 256, [2, 32, 32, 3])
  expected = reference(
      keras.applications.resnet50.preprocess_input(pixels.astype('float32')))
  mean, std = np.array([.5, .4, .3]), np.array([.2, .3, .1])
  model = models.resnet50(
      (32, 32, 3), weights='imagenet', mean=mean, std=std)
  features = model((pixels / 255 - mean) / std)
  np.testing.assert_allclose(features, expected, rtol=1e-3, atol=1e-3)
  assert features.shape == (2, 2048)
  plain = models.resnet50((32, 32, 3), weights='imagenet', translate=False)
  np.testing.assert_allclose(
      plain(pixels / 255.), reference(pixels / 255.), rtol=1e-3, atol=1e-3)

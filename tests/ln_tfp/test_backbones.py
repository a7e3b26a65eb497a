"""Tests of `ln_tfp.backbones`."""

import warnings

import keras
from keras.src.backend import config as keras_config
import numpy as np
import pytest

from ln_tfp import backbones


def _tiny():
  return keras.Sequential([
      keras.Input((None, None, 3)), keras.layers.Rescaling(1. / 255.),
      keras.layers.Conv2D(4, 3), keras.layers.GlobalAveragePooling2D()])


@pytest.fixture
def cache(tmp_path, monkeypatch):
  """Keras's cache of weights, empty."""
  monkeypatch.setattr(keras_config, '_KERAS_DIR', str(tmp_path))
  return tmp_path / 'models'


def test_a_file_gives_its_models_features_and_its_digest(tmp_path):
  model = _tiny()
  model.save(tmp_path / 'tiny.keras')
  backbone = backbones.load(tmp_path / 'tiny.keras')
  images = np.random.default_rng(0).integers(0, 256, (5, 8, 8, 3), np.uint8)
  np.testing.assert_allclose(
      backbone(images), model(images.astype(np.float32)), atol=1e-6)
  assert backbone.name == 'tiny.keras'
  _tiny().save(tmp_path / 'other.keras')
  assert backbones.load(
      tmp_path / 'other.keras').digest != backbone.digest


def test_grey_images_are_seen_in_three_channels(tmp_path):
  _tiny().save(tmp_path / 'tiny.keras')
  backbone = backbones.load(tmp_path / 'tiny.keras')
  grey = np.random.default_rng(0).integers(0, 256, (5, 8, 8), np.uint8)
  colour = np.stack([grey] * 3, axis=-1)
  np.testing.assert_array_equal(backbone(grey), backbone(colour))
  np.testing.assert_array_equal(
      backbone(grey[..., np.newaxis]), backbone(colour))


def test_a_model_whose_output_is_no_vector_is_refused(tmp_path):
  keras.Sequential([
      keras.Input((8, 8, 3)), keras.layers.Conv2D(4, 3)]).save(
          tmp_path / 'maps.keras')
  backbone = backbones.load(tmp_path / 'maps.keras')
  with pytest.raises(ValueError, match='maps.keras, which gives'):
    backbone(np.zeros((1, 8, 8, 3)))


@pytest.mark.slow
def test_a_network_by_name_resizes_and_preprocesses_by_itself(cache):
  network = keras.applications.MobileNetV2(
      include_top=False, pooling='avg', weights=None, input_shape=(96, 96, 3))
  cache.mkdir()
  with warnings.catch_warnings():
    warnings.simplefilter('ignore')  # the format of Keras's cache is an old one
    network.save(
        cache /
        'mobilenet_v2_weights_tf_dim_ordering_tf_kernels_1.0_96_no_top.h5')
  backbone = backbones.load('MobileNetV2', size=96)
  images = np.random.default_rng(0).uniform(0, 255, (2, 32, 32, 3))
  resized = keras.layers.Resizing(96, 96)(images.astype(np.float32))
  expected = network.predict_on_batch(
      keras.applications.mobilenet_v2.preprocess_input(np.array(resized)))
  np.testing.assert_allclose(backbone(images), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_missing_weights_files_and_names_are_said(cache, tmp_path, monkeypatch):
  assert not cache.exists()

  def no_network(*unused, **also_unused):
    raise Exception('URL fetch failure')  # what Keras raises

  monkeypatch.setattr(keras.utils, 'get_file', no_network)
  monkeypatch.setattr(
      'keras.src.utils.file_utils.get_file', no_network)
  with pytest.raises(FileNotFoundError, match='weights of MobileNetV2'):
    backbones.load('MobileNetV2', size=96)
  with pytest.raises(FileNotFoundError, match='nonesuch.keras'):
    backbones.load(tmp_path / 'nonesuch.keras')
  with pytest.raises(ValueError, match='MobileNetV2, MobileNet|Xception'):
    backbones.load('nonesuch')

"""ResNet-50 of `keras.applications`, the paper's network for Clothing1M."""

from __future__ import annotations

from collections.abc import Sequence
import os
import pathlib

from etils import epy
import numpy as np

with epy.lazy_imports():  # flags are parsed before TensorFlow is imported
  import keras

_FILE = 'resnet50_weights_tf_dim_ordering_tf_kernels_notop.h5'
# What Keras's file was trained on: blue, green, red in 0..255 less these.
_IMAGENET_MEAN_RGB = np.array([123.68, 116.779, 103.939])


def resnet50(input_shape: tuple[int, int, int] = (224, 224, 3),
             weights: str | os.PathLike | None = None,
             mean: Sequence[float] = (.6959, .6537, .6371),
             std: Sequence[float] = (.3113, .3192, .3214),
             translate: bool = True) -> keras.Model:
  """ResNet-50 without its classifier, average-pooled to 2,048 features.

  Nothing is ever downloaded here.

  Args:
    input_shape: Height, width, channels.
    weights: None for random weights; 'imagenet' for Keras's own file in its
      cache, `~/.keras/models`; or the path of that file elsewhere.
    mean: What the input pipeline subtracted from the RGB values in [0, 1].
      Keras's weights expect another normalisation and BGR; a `Rescaling`
      layer and a reversed first kernel translate. Unused without `weights`.
      The defaults, here and for `std`, are those of Clothing1M.
    std: What the pipeline divided by.
    translate: Whether to translate; False feeds Keras's weights the normalised
      images as they are.
  """
  translate = translate and weights is not None
  pretrained = None if weights is None else _read(
      _check(weights_file(weights)), input_shape)
  inputs = keras.Input(input_shape, name='inputs')
  x = inputs
  if translate:
    scale = 255. * np.asarray(std)
    offset = 255. * np.asarray(mean) - _IMAGENET_MEAN_RGB
    x = keras.layers.Rescaling(
        scale.tolist(), offset.tolist(), name='to_imagenet')(x)
  network = keras.applications.ResNet50(
      include_top=False, weights=None, input_tensor=x,
      input_shape=input_shape, pooling='avg', name='resnet50')
  if pretrained is not None:
    network.set_weights(pretrained)
  if translate:
    stem = network.get_layer('conv1_conv')
    kernel, bias = stem.get_weights()
    stem.set_weights([kernel[:, :, ::-1], bias])
  # Keras's network expects a list of one input; this one takes the tensor.
  return keras.Model(inputs, network.output, name='resnet50')


def weights_file(weights: str | os.PathLike) -> pathlib.Path:
  """Where the weights have to be, see `resnet50`."""
  if weights == 'imagenet':
    return pathlib.Path.home() / '.keras' / 'models' / _FILE
  return pathlib.Path(weights)


def fetch_weights() -> None:
  """Has Keras put its file into its cache, through the network."""
  keras.applications.ResNet50(include_top=False, weights='imagenet')


def _check(path):
  if not path.is_file():
    raise FileNotFoundError(
        f'Argument `weights`: there is no file {path}; put {_FILE} of '
        'keras.applications there, or let `python -m experiments.prepare '
        '--dataset=clothing1m --weights` fetch it.')
  return path


def _read(path, input_shape):
  """The weights in Keras's file, as arrays."""
  # Keras matches that format layer by layer: the network that reads it must
  # not have a `Rescaling` layer.
  network = keras.applications.ResNet50(
      include_top=False, weights=None, input_shape=input_shape, pooling='avg')
  try:
    network.load_weights(path)
  except (ValueError, OSError, KeyError) as error:
    raise ValueError(
        f'Argument `weights`: {path} does not hold the weights of '
        f'keras.applications.ResNet50(include_top=False). {error}') from error
  return network.get_weights()

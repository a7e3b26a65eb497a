"""Features of images by a pretrained network."""

from collections.abc import Callable
import contextlib
import dataclasses
import os
import pathlib
import socket
from typing import TextIO

import keras
import numpy as np

from ln_tfp.audit import files
from ln_tfp.audit import progress as progress_lib

_SIZE = 224  # side of the images, where a network does not say
_BATCH_SIZE = 64
_SECONDS = 10.  # to wait for an answer of the network
# Tried by `auto`, if their weights are on this machine; the first is fetched.
_AUTO = ('EfficientNetV2B0', 'EfficientNetB0', 'MobileNetV2', 'ResNet50')


@dataclasses.dataclass(frozen=True, eq=False)
class Backbone:
  """A network that turns images into features.

  Attributes:
    name: what the user calls it.
    size: side of the images that it takes.
    model: images 0..255 `[N, size, size, 3]` -> features `[N, F]`.
  """
  name: str
  size: int
  model: keras.Model


def load(name: str, size: int | None = None) -> Backbone | None:
  """Returns a backbone.

  Args:
    name: a `.keras` file whose model takes images of 0..255; the name of a
      network of `keras.applications`; or 'auto' for one whose weights are on
      this machine or can be fetched.
    size: side of the images, by default what the network says, or 224.

  Returns:
    The backbone; None if `auto` finds none.
  """
  if name == 'auto':
    return _load_auto(size)
  if name.endswith('.keras') or os.sep in name:
    return _load_file(name, size)
  make, preprocess = _application(name)
  try:
    return _build(name, make, preprocess, size)
  except Exception as error:  # of files and of the network
    raise files.InputError(
        f'--backbone={name}: its weights are not here and could not be fetched '
        f'({files.dataset.reason(error)}).') from error


def embed(
    backbone: Backbone, images, progress: TextIO | None = None) -> np.ndarray:
  """Returns the features of images, float32 `[N, F]`.

  Args:
    backbone: the network.
    images: an `ImageFolder`, or an array `[N, H, W, C]` of 0..255 or 0..1.
    progress: where to tell how far it is.
  """
  bar = progress_lib.Progress(progress, 'embedding', len(images))
  scale = 1.
  if isinstance(images, np.ndarray):
    scale = _check_pixels(images)
  parts = []
  for start in range(0, len(images), _BATCH_SIZE):
    stop = start + _BATCH_SIZE
    if isinstance(images, files.ImageFolder):
      batch = images.batch(start, stop, backbone.size)
    else:
      batch = _resize(images[start:stop], backbone.size) * scale
    parts.append(np.asarray(backbone.model.predict_on_batch(batch), np.float32))
    bar.update(min(stop, len(images)))
  bar.close()
  return np.concatenate(parts)


def _load_auto(size):
  cache = pathlib.Path(keras.config.keras_home()) / 'models' if hasattr(
      keras.config, 'keras_home') else pathlib.Path.home() / '.keras' / 'models'
  here = [name for name in _AUTO if any(cache.glob(f'{_stem(name)}*notop*'))]
  for name in here or _AUTO[:1]:
    try:
      return load(name, size)
    except files.InputError:
      continue
  return None


def _stem(name):
  return name.lower().replace('efficientnetv2b', 'efficientnetv2-b')


def _load_file(name, size):
  path = files.dataset.regular_file(name)
  try:
    model = keras.models.load_model(path, compile=False)
  except Exception as error:  # Keras raises almost anything
    raise files.InputError(
        f'--backbone={name}: no Keras model ({files.dataset.reason(error)}).'
    ) from error
  shape = getattr(model, 'input_shape', None)
  if not isinstance(shape, tuple) or len(shape) != 4 or (
      shape[-1] not in (3, None)):
    raise files.InputError(
        f'--backbone={name}: the model must take images [N, H, W, 3], not '
        f'{shape}.')
  own = shape[1] if shape[1] == shape[2] else None
  if size is not None and own is not None and size != own:
    raise files.InputError(
        f'--backbone={name} takes images of {own} x {own}, not --size={size}.')
  return Backbone(name, own or size or _SIZE, _pooled(model))


def _pooled(model):
  """Returns a model of features `[N, F]`, pooled if need be."""
  rank = len(model.output_shape)
  if rank == 2:
    return model
  if rank != 4:
    raise files.InputError(
        '--backbone: the model must return features [N, F], not '
        f'{model.output_shape}.')
  pooled = keras.layers.GlobalAveragePooling2D()(model.output)
  return keras.Model(model.input, pooled)


def _application(name) -> tuple[Callable, Callable]:
  """Returns a network of `keras.applications` and its preprocessing."""
  make = getattr(keras.applications, name, None)
  for module in vars(keras.applications).values():
    if callable(make) and getattr(module, name, None) is make and hasattr(
        module, 'preprocess_input'):
      return make, module.preprocess_input
  raise files.InputError(
      f'--backbone={name}: there is no such file, and no such network in '
      'keras.applications.')


def _build(name, make, preprocess, size):
  size = size or _SIZE
  with _timeout():
    network = make(include_top=False, weights='imagenet', pooling='avg',
                   input_shape=(size, size, 3))
  inputs = keras.Input((size, size, 3))
  return Backbone(name, size, keras.Model(
      inputs, network(preprocess(inputs), training=False)))


@contextlib.contextmanager
def _timeout():
  before = socket.getdefaulttimeout()
  socket.setdefaulttimeout(_SECONDS)
  try:
    yield
  finally:
    socket.setdefaulttimeout(before)


def _check_pixels(images):
  """Returns the factor that brings pixels to 0..255."""
  low, high = float(images.min()), float(images.max())
  if images.ndim != 4 or images.shape[-1] not in (1, 3) or not (
      low >= 0. and high <= 255.):
    raise files.InputError(
        'A backbone takes images of 0..255 or 0..1 with one or three channels; '
        f'there are values from {low:g} to {high:g} in arrays of shape '
        f'{images.shape[1:]}.')
  return 255. if images.dtype.kind == 'f' and high <= 1. else 1.


def _resize(batch, size):
  batch = np.asarray(batch, np.float32)
  if batch.shape[-1] == 1:
    batch = np.repeat(batch, 3, axis=-1)
  return np.asarray(keras.ops.image.resize(batch, (size, size)))

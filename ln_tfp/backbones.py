"""Pretrained networks that turn images into features."""

import dataclasses
import hashlib
import inspect
import os
import pathlib
import types

import keras
import numpy as np

from ln_tfp import files


@dataclasses.dataclass(frozen=True)
class Backbone:
  """A network, images `[B, H, W, C]` with values in 0..255 -> features.

  Attributes:
    model: a Keras model, images `[B, H, W, 3]` of any size -> `[B, F]`.
    name: of the network or of its file.
    digest: SHA-256 of the file, or of architecture, size and weights.
  """
  model: keras.Model
  name: str
  digest: str

  def __call__(self, images: np.ndarray) -> np.ndarray:
    """Returns float32 features `[B, F]`; grey images are given three channels.
    """
    images = np.asarray(images, np.float32)
    if images.ndim == 3:
      images = images[..., np.newaxis]
    if images.shape[-1] == 1:
      images = np.repeat(images, 3, axis=-1)
    features = np.asarray(self.model.predict_on_batch(images), np.float32)
    if features.ndim != 2:
      raise ValueError(
          'Argument `backbone` must give features of shape [batch, F]. '
          f'Received: {self.name}, which gives {features.shape}.')
    return features


def load(backbone: str | os.PathLike, size: int | None = None) -> Backbone:
  """Returns a backbone by name or from a file.

      backbone = backbones.load('EfficientNetV2B0')
      features = backbone(images)

  Args:
    backbone: a network of `keras.applications`, whose ImageNet weights Keras
      fetches if they are not in its cache; or a `.keras` file of a model that
      takes images as they are, values in 0..255.
    size: side to which the images are resized for a network by name; by
      default that of its training.

  Raises:
    FileNotFoundError: if there is no such file, or the weights cannot be had.
  """
  path = pathlib.Path(backbone)
  if path.suffix == '.keras':
    if not path.is_file():
      raise FileNotFoundError(f'There is no backbone {path}.')
    model = keras.models.load_model(path, compile=False)
    return Backbone(model, path.name, files.sha256(path))
  model, size = _application(str(backbone), size)
  digest = hashlib.sha256(f'{backbone} {size}'.encode())
  for weights in model.get_weights():
    digest.update(np.ascontiguousarray(weights).tobytes())
  return Backbone(model, str(backbone), digest.hexdigest())


def names() -> list[str]:
  """Returns the networks of `keras.applications`."""
  return sorted(_modules())


def _application(name, size):
  """Returns a network of `keras.applications` behind its preprocessing."""
  modules = _modules()
  if name not in modules:
    raise ValueError(
        'Argument `backbone` must be a .keras file or one of '
        f'{", ".join(sorted(modules))}. Received: backbone={name!r}.')
  create = getattr(keras.applications, name)
  if size is None:
    size = _trained_size(create)
  try:
    network = create(
        include_top=False, pooling='avg', weights='imagenet',
        input_shape=(size, size, 3))
  except Exception as error:  # Keras raises this very class without a network
    if type(error) is not Exception and not isinstance(error, OSError):
      raise
    raise FileNotFoundError(
        f'The ImageNet weights of {name} are neither in the cache of Keras '
        f'nor could they be fetched: {error}') from error
  images = keras.Input((None, None, 3), name='images')
  x = keras.layers.Resizing(size, size)(images)
  x = modules[name].preprocess_input(x)
  return keras.Model(images, network(x), name=name.lower()), size


def _trained_size(create):
  """Returns the side of the images that a network was trained on."""
  # Keras knows it as the shape that a network with its classifier insists on.
  return create(weights=None).input_shape[1]


def _modules() -> dict[str, types.ModuleType]:
  """Returns the module of each network, which has its preprocessing."""
  found = {}
  for _, module in inspect.getmembers(keras.applications, inspect.ismodule):
    if hasattr(module, 'preprocess_input'):
      for name, _member in inspect.getmembers(module, inspect.isfunction):
        if name[0].isupper() and hasattr(keras.applications, name):
          found[name] = module
  return found

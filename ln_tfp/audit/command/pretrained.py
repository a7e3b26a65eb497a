"""Features of images by a pretrained network, for the command."""

import contextlib
import dataclasses
import os
import pathlib
import socket
from typing import TextIO

import keras
import numpy as np

from ln_tfp import backbones
from ln_tfp.audit import files
from ln_tfp.audit import progress as progress_lib

_SIZE = 224  # side of the images, where a network does not say
BATCH_SIZE = 64
_SECONDS = 10.  # to wait for an answer of the network
# Tried by `auto` if their weights are on this machine, in the files that Keras
# keeps them in; the first is fetched.
_AUTO = {
    'EfficientNetV2B0': 'efficientnetv2-b0_notop.h5',
    'EfficientNetB0': 'efficientnetb0_notop.h5',
    'MobileNetV2': 'mobilenet_v2_weights_*_1.0_224_no_top.h5',
    'ResNet50': 'resnet50_weights_*_notop.h5',
}


@dataclasses.dataclass(frozen=True, eq=False)
class Embedder:
  """A backbone, and the side of the images that it is given."""
  backbone: backbones.Backbone
  size: int

  @property
  def name(self) -> str:
    """What the network is called."""
    return self.backbone.name

  @property
  def width(self) -> int:
    """The number of features."""
    return self.backbone.model.output_shape[-1]


def load(name: str, size: int | None = None) -> Embedder | None:
  """Returns an embedder.

  Args:
    name: a `.keras` file or a network of `keras.applications`, see
      `ln_tfp.backbones`; or 'auto' for one whose weights are on this machine
      or can be fetched.
    size: side of the images, by default what the network says, or 224.

  Returns:
    The embedder; None if `auto` finds none.
  """
  if name == 'auto':
    return _load_auto(size)
  try:
    with _timeout():
      backbone = backbones.load(name, size)
  except Exception as error:  # Keras raises almost anything
    raise files.InputError(
        f'--backbone={name}: {files.reason(error)}.') from error
  shape = backbone.model.input_shape
  if not isinstance(shape, tuple) or len(shape) != 4 or shape[-1] != 3 or (
      len(backbone.model.output_shape) != 2):
    raise files.InputError(
        f'--backbone={name}: the model must turn images [N, H, W, 3] into '
        f'features [N, F], not {shape} into {backbone.model.output_shape}.')
  own = shape[1]
  if None not in (own, size) and size != own:
    raise files.InputError(
        f'--backbone={name} takes images of {own} x {own}, not --size={size}.')
  return Embedder(backbone, own or size or _SIZE)


def embed(
    embedder: Embedder, images, progress: TextIO | None = None) -> np.ndarray:
  """Returns the features of images, float32 `[N, F]`.

  Args:
    embedder: the network.
    images: an `ImageFolder`, or an array `[N, H, W, C]` of 0..255 or 0..1.
    progress: where to tell how far it is.
  """
  read = _reader(images, embedder.size)
  bar = progress_lib.Progress(progress, 'embedding', len(images))
  parts = []
  for start in range(0, len(images), BATCH_SIZE):
    stop = min(start + BATCH_SIZE, len(images))
    parts.append(embedder.backbone(read(start, stop)))
    bar.update(stop)
  bar.close()
  return np.concatenate(parts)


def _reader(images, size):
  """Returns a function from a range to images of 0..255 and of that side."""
  if isinstance(images, files.ImageFolder):
    return lambda start, stop: images.batch(start, stop, size)
  low, high = float(images.min()), float(images.max())
  if images.shape[-1] not in (1, 3) or not (low >= 0. and high <= 255.):
    raise files.InputError(
        'A backbone takes images of 0..255 or 0..1 with one or three channels; '
        f'there are values from {low:g} to {high:g} in arrays of shape '
        f'{images.shape[1:]}.')
  scale = 255. if images.dtype.kind == 'f' and high <= 1. else 1.
  return lambda start, stop: keras.ops.convert_to_numpy(
      keras.ops.image.resize(
          np.asarray(images[start:stop], np.float32) * scale, (size, size)))


def _load_auto(size):
  cache = pathlib.Path(
      os.environ.get('KERAS_HOME', pathlib.Path.home() / '.keras')) / 'models'
  here = [name for name, file in _AUTO.items() if any(cache.glob(file))]
  for name in here or list(_AUTO)[:1]:
    with contextlib.suppress(files.InputError):
      return load(name, size)
  return None


@contextlib.contextmanager
def _timeout():
  """Without a network Keras should say so, not wait for it."""
  before = socket.getdefaulttimeout()
  socket.setdefaulttimeout(_SECONDS)
  try:
    yield
  finally:
    socket.setdefaulttimeout(before)

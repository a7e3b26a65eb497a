"""CIFAR-N: the published label files, and no others."""

import hashlib
import os
import pathlib
import pickle
import zipfile

import numpy as np
import pytest

from experiments import data
from experiments.data import cifar_n

_DATA_DIR = os.environ.get('LN_TFP_DATA_DIR', '')
_CIFAR_N = pathlib.Path(_DATA_DIR) / 'cifar_n'
needs_cifar_n = pytest.mark.skipif(
    not (_DATA_DIR and _CIFAR_N.is_dir()),
    reason='LN_TFP_DATA_DIR does not name a directory with CIFAR-N.')


def publish(monkeypatch, name, path, content):
  """Writes a label file as the authors did, and makes it the published one."""
  # They had a NumPy before 2, which calls its own modules otherwise.
  pickled = pickle.dumps(content, 2).replace(b'numpy._core', b'numpy.core')
  with zipfile.ZipFile(path, 'w') as archive:
    archive.writestr('archive/data.pkl', pickled)
    archive.writestr('archive/version', '3\n')
  file = path.read_bytes()
  published = cifar_n._PUBLISHED[name]
  monkeypatch.setitem(cifar_n._PUBLISHED, name, cifar_n._Published(
      published.cifar, path.name, len(file),
      hashlib.sha256(file).hexdigest(), published.keys))


@pytest.fixture(name='labels')
def _labels():
  rng = np.random.default_rng(0)
  return {name: rng.integers(0, 100, 1000)
          for name in ('clean_label', 'noisy_label')}


@pytest.fixture(name='train')
def _train(labels):
  """Training examples, shuffled."""
  ids = np.random.default_rng(1).permutation(1000)
  true = labels['clean_label'][ids]
  return data.Examples(np.zeros((1000, 1), np.uint8), true, true, ids)


@pytest.mark.parametrize('convert', [np.asarray, np.ndarray.tolist])
def test_human_labels_find_their_images(
    tmp_path, monkeypatch, labels, train, convert):
  path = tmp_path / 'CIFAR-100_human.pt'
  publish(monkeypatch, 'cifar100n', path, {
      name: convert(values) for name, values in labels.items()})
  read = cifar_n.read_labels('cifar100n', path, train)
  np.testing.assert_array_equal(
      read['noisy'], labels['noisy_label'][train.ids])
  assert read['noisy'].dtype == np.int32


def test_clean_labels_that_disagree_are_counted(
    tmp_path, monkeypatch, labels, train):
  labels['clean_label'][:3] = (labels['clean_label'][:3] + 1) % 100
  publish(monkeypatch, 'cifar100n', tmp_path / 'labels.pt', labels)
  with pytest.raises(data.BadDataError, match='3 of 1000'):
    cifar_n.read_labels('cifar100n', tmp_path / 'labels.pt', train)


@pytest.mark.parametrize('damage', [
    lambda content: b'', lambda content: content[:-1],
    lambda content: content + b'\0',
    lambda content: content[:99] + bytes([content[99] ^ 1]) + content[100:]])
def test_a_file_that_is_not_the_published_one_is_not_opened(
    tmp_path, monkeypatch, labels, train, damage):
  path = tmp_path / 'labels.pt'
  publish(monkeypatch, 'cifar100n', path, labels)
  path.write_bytes(damage(path.read_bytes()))
  monkeypatch.setattr(
      zipfile, 'ZipFile', lambda *_: pytest.fail('It was opened.'))
  with pytest.raises(data.BadDataError, match='not the published file'):
    cifar_n.read_labels('cifar100n', path, train)


def test_no_more_than_the_published_size_is_read(tmp_path, train):
  path = tmp_path / 'labels.pt'
  with path.open('wb') as file:
    file.truncate(2**40)  # a terabyte of nothing
  with pytest.raises(data.BadDataError, match='not the published file'):
    cifar_n.read_labels('cifar100n', path, train)


class _Executes:
  """Unpickled without restrictions, it makes a directory."""

  def __init__(self, path):
    self.path = path

  def __reduce__(self):
    return os.mkdir, (str(self.path),)


def test_even_a_published_file_may_use_nothing_but_arrays(
    tmp_path, monkeypatch, labels, train):
  trap, path = tmp_path / 'trap', tmp_path / 'labels.pt'
  publish(monkeypatch, 'cifar100n', path, {**labels, 'x': _Executes(trap)})
  with pytest.raises(data.BadDataError, match='mkdir'):
    cifar_n.read_labels('cifar100n', path, train)
  assert not trap.exists()


@pytest.mark.real_data
@needs_cifar_n
@pytest.mark.parametrize('name, file, num_classes, expected', [
    ('cifar10n', 'CIFAR-10_human.pt', 10, [17.23, 18.12, 17.64, 9.01, 40.21]),
    ('cifar100n', 'CIFAR-100_human.pt', 100, [40.20])])
def test_the_published_files_have_their_noise_rates(
    name, file, num_classes, expected):
  with zipfile.ZipFile(_CIFAR_N / file) as archive, archive.open(
      [n for n in archive.namelist() if n.endswith('data.pkl')][0]) as pickled:
    clean = np.asarray(cifar_n._Unpickler(pickled).load()['clean_label'])
  train = data.Examples(
      np.zeros((50_000, 1)), clean, clean, np.arange(50_000))
  labels = cifar_n.read_labels(name, _CIFAR_N / file, train)
  assert tuple(labels) == data.traits(name).label_sets
  rates = [round(100 * np.mean(noisy != clean), 2) for noisy in labels.values()]
  assert rates == expected
  assert max(noisy.max() for noisy in labels.values()) == num_classes - 1

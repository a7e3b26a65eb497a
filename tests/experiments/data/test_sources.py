import importlib.util
import os
import re
import time

import numpy as np
import pytest
import tensorflow_datasets as tfds

from experiments import data
from experiments.data import cifar_n
from experiments.data import embedded
from tests.experiments.data import test_cifar_n

_EMBEDDED = ('two_moons', 'circles', 'digits', 'digits_n')
_DATA_DIR = os.environ.get('LN_TFP_DATA_DIR')
needs_data_dir = pytest.mark.skipif(
    not _DATA_DIR,
    reason='LN_TFP_DATA_DIR does not name a directory of prepared data sets.')


@pytest.mark.parametrize('name', _EMBEDDED)
def test_embedded_data_sets_keep_the_interface(name):
  source = data.load(name)
  assert source.name == name
  for split in (source.train, source.test):
    assert split.true.dtype == np.int32
    assert split.ids.dtype == np.int64
    assert len(split.inputs) == len(split.true) == len(split.ids)
    np.testing.assert_array_equal(
        np.unique(split.true), np.arange(source.num_classes))
  assert not set(source.train.ids) & set(source.test.ids)


@pytest.mark.parametrize('name', _EMBEDDED)
def test_embedded_data_sets_are_the_same_every_time(name):
  first, second = data.load(name), data.load(name)
  np.testing.assert_array_equal(first.train.inputs, second.train.inputs)
  np.testing.assert_array_equal(first.train.true, second.train.true)


def test_digits_are_all_of_scikit_learns():
  source = data.load('digits')
  assert (len(source.train), len(source.test)) == (1_300, 497)
  ids = np.concatenate([source.train.ids, source.test.ids])
  np.testing.assert_array_equal(np.sort(ids), np.arange(1_797))
  bunch = embedded.datasets.load_digits()
  for split in (source.train, source.test):
    np.testing.assert_array_equal(
        split.inputs[..., 0], bunch.images[split.ids])
    np.testing.assert_array_equal(split.true, bunch.target[split.ids])
  assert source.train.inputs.max() * source.preprocessing.scale == 1.


@pytest.mark.parametrize('name, expected', [
    ('random1', 17.23), ('random2', 18.12), ('random3', 17.64),
    ('aggregate', 9.01), ('worst', 40.21)])
def test_digits_n_is_about_as_noisy_as_cifar10n(name, expected):
  train = data.load('digits_n').train
  rate = 100 * np.mean(train.label_sets[name] != train.true)
  assert abs(rate - expected) < 3


def test_digits_n_labels_come_from_its_annotators():
  train = data.load('digits_n').train
  noisy = train.label_sets
  annotators = np.stack([noisy[f'random{i}'] for i in (1, 2, 3)])
  for i, clean in enumerate(train.true):
    given = annotators[:, i].tolist()
    majority = [label for label in given if given.count(label) > 1] or given
    assert noisy['aggregate'][i] in majority
    wrong = [label for label in given if label != clean] or given
    assert noisy['worst'][i] in wrong


def test_digits_n_noise_depends_on_the_image():
  train = data.load('digits_n').train
  wrong = train.label_sets['random1'] != train.true
  rates = [np.mean(wrong[train.true == digit]) for digit in range(10)]
  # Under symmetric noise the rates would differ by about 3 points.
  assert np.std(rates) > 0.06


def test_digits_n_has_the_digits_with_a_clean_test_split():
  digits, digits_n = data.load('digits'), data.load('digits_n')
  np.testing.assert_array_equal(digits.train.true, digits_n.train.true)
  np.testing.assert_array_equal(digits.test.true, digits_n.test.true)
  assert not digits_n.test.label_sets


@pytest.mark.parametrize('name', [
    name for name in data.NAMES if data.traits(name).module in (
        'tfds_sources', 'cifar_n', 'clothing1m', 'features')])
def test_what_is_missing_is_said_at_once_and_in_one_line(name, tmp_path):
  start = time.perf_counter()
  with pytest.raises(data.MissingDataError) as caught:
    data.load(name, tmp_path)
  assert time.perf_counter() - start < 5
  message = str(caught.value)
  assert '\n' not in message
  assert name in message
  assert str(tmp_path) in message
  if name != 'clothing1m':  # given on request, by no command
    command = re.search(
        r'`python -m (experiments\.\w+) --dataset=(\w+) --data_dir=(\S+)`',
        message)
    assert importlib.util.find_spec(command[1])
    assert command[2] in data.NAMES
    assert command[3] == str(tmp_path)


def test_an_unknown_data_set_is_refused():
  with pytest.raises(ValueError, match="name='imagenet'"):
    data.load('imagenet')


def test_examples_of_different_lengths_are_refused():
  with pytest.raises(ValueError, match='`true`'):
    data.Examples(
        np.zeros((3, 2)), np.zeros(3, int), np.zeros(2, int), np.arange(3))


def test_equal_ids_are_refused():
  with pytest.raises(ValueError, match='`ids` must be unique'):
    data.Examples(
        np.zeros((2, 2)), np.zeros(2, int), np.zeros(2, int),
        np.array([4, 4]))


def test_a_subset_keeps_everything_together():
  train = data.load('digits_n').train
  mask = np.arange(len(train)) % 3 == 0
  subset = train.subset(mask)
  np.testing.assert_array_equal(subset.inputs, train.inputs[mask])
  np.testing.assert_array_equal(
      subset.label_sets['worst'], train.label_sets['worst'][mask])


def _prepare(name, data_dir, shape, num):
  """Prepares random images under the name of a data set of TFDS.

  Returns the training images in the order of generation, which is not TFDS's
  read order.
  """
  features = {
      'image': tfds.features.Image(shape=shape),
      'label': tfds.features.ClassLabel(num_classes=10)}
  has_ids = name.startswith('cifar')
  if has_ids:
    features['id'] = tfds.features.Text()
  images = np.random.default_rng(0).integers(0, 256, (num, *shape), np.uint8)

  def generate(split):
    for i, image in enumerate(images):
      record = {'image': image, 'label': i % 10}
      if has_ids:
        record['id'] = f'{split}_{i:05d}'
      yield i, record

  tfds.dataset_builders.store_as_tfds_dataset(
      name=name, version='1.0.0', data_dir=data_dir,
      features=tfds.features.FeaturesDict(features),
      split_datasets={split: generate(split) for split in ('train', 'test')})
  return images


@pytest.mark.slow
def test_prepared_data_sets_are_read_with_their_ids(tmp_path):
  images = _prepare('cifar10', tmp_path, (4, 4, 3), 30)
  source = data.load('cifar10', tmp_path)
  train = source.train
  assert source.class_names[9] == 'truck'
  np.testing.assert_array_equal(np.sort(train.ids), np.arange(30))
  np.testing.assert_array_equal(train.inputs, images[train.ids])
  np.testing.assert_array_equal(train.true, train.ids % 10)
  # Otherwise this would not tell ids from positions.
  assert not np.array_equal(train.ids, np.arange(30))


@pytest.mark.slow
def test_data_sets_without_ids_are_numbered_in_a_fixed_read_order(tmp_path):
  images = _prepare('mnist', tmp_path, (4, 4, 1), 30)
  first, second = (data.load('mnist', tmp_path).train for _ in range(2))
  np.testing.assert_array_equal(first.ids, np.arange(30))
  np.testing.assert_array_equal(first.inputs, second.inputs)
  np.testing.assert_array_equal(
      np.sort(first.inputs.reshape(30, -1), axis=0),
      np.sort(images.reshape(30, -1), axis=0))


def test_human_labels_come_with_their_images(tmp_path, monkeypatch):
  _prepare('cifar10', tmp_path, (4, 4, 3), 30)
  human = np.random.default_rng(1).integers(0, 10, (5, 30))
  keys = cifar_n._PUBLISHED['cifar10n'].keys
  (tmp_path / 'cifar_n').mkdir()
  test_cifar_n.publish(
      monkeypatch, 'cifar10n', tmp_path / 'cifar_n' / 'CIFAR-10_human.pt',
      {'clean_label': np.arange(30) % 10, **dict(zip(keys, human))})
  train = data.load('cifar10n', tmp_path).train
  for name, labels in zip(data.traits('cifar10n').label_sets, human):
    np.testing.assert_array_equal(
        train.label_sets[name], labels[train.ids])


def test_human_labels_without_images_ask_for_the_images(tmp_path):
  (tmp_path / 'cifar_n').mkdir()
  (tmp_path / 'cifar_n' / 'CIFAR-10_human.pt').touch()
  with pytest.raises(data.MissingDataError, match='--dataset=cifar10 '):
    data.load('cifar10n', tmp_path)


@pytest.mark.real_data
@pytest.mark.slow
@needs_data_dir
def test_cifar10n_fits_cifar10():
  train = data.load('cifar10n', _DATA_DIR).train
  assert train.inputs.shape == (50_000, 32, 32, 3)
  rates = {
      name: round(100 * np.mean(labels != train.true), 2)
      for name, labels in train.label_sets.items()}
  assert rates == {
      'random1': 17.23, 'random2': 18.12, 'random3': 17.64, 'aggregate': 9.01,
      'worst': 40.21}


@pytest.mark.real_data
@pytest.mark.slow
@needs_data_dir
def test_mnist_is_whole():
  source = data.load('mnist', _DATA_DIR)
  assert source.train.inputs.shape == (60_000, 28, 28, 1)
  assert source.test.inputs.shape == (10_000, 28, 28, 1)
  # The published class counts.
  assert np.bincount(source.train.true).tolist() == [
      5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]

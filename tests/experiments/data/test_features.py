"""Tests of features of images by a frozen backbone."""

import dataclasses
import json

import keras
import numpy as np
import pytest

from experiments import data
from experiments.data import features
from ln_tfp import backbones


@pytest.fixture(scope='module')
def backbone(tmp_path_factory):
  """A small random network, from a file."""
  path = tmp_path_factory.mktemp('backbone') / 'tiny.keras'
  keras.Sequential([
      keras.Input((None, None, 3)), keras.layers.Rescaling(1. / 255.),
      keras.layers.Conv2D(6, 3), keras.layers.GlobalAveragePooling2D()
  ]).save(path)
  return backbones.load(path)


def _images(num, seed):
  rng = np.random.default_rng(seed)
  labels = rng.integers(0, 10, num)
  return data.Examples(
      rng.integers(0, 256, (num, 8, 8, 3), np.uint8), labels, labels,
      rng.permutation(num))


@pytest.fixture
def source():
  return data.Source(
      'cifar10', data.traits('cifar10').class_names, _images(50, 0),
      _images(20, 1), data.traits('cifar10').preprocessing)


def test_features_are_the_backbones_standardised_by_the_training_split(
    source, backbone, tmp_path):
  features.embed(source, backbone, tmp_path, batch_size=16)
  loaded = data.load('cifar10_features', tmp_path)
  raw_train, raw_test = (
      backbone(split.inputs).astype(np.float16).astype(np.float64)
      for split in (source.train, source.test))
  mean, std = raw_train.mean(axis=0), raw_train.std(axis=0)
  for split, raw, images in ((loaded.train, raw_train, source.train),
                             (loaded.test, raw_test, source.test)):
    assert split.inputs.dtype == np.float32
    np.testing.assert_allclose(
        split.inputs, (raw - mean) / std, rtol=1e-3, atol=2e-3)
    np.testing.assert_array_equal(split.true, images.true)
    np.testing.assert_array_equal(split.ids, images.ids)
  assert loaded.input_shape == (6,)
  assert loaded.class_names == source.class_names
  assert loaded.provenance == {
      'backbone': 'tiny.keras', 'digest': backbone.digest}


def test_an_interrupted_embedding_goes_on_and_a_finished_one_is_kept(
    source, backbone, tmp_path):
  calls = []

  def interrupt(split, total, done):
    calls.append((split, total, done))
    if done == 32:
      raise KeyboardInterrupt

  with pytest.raises(KeyboardInterrupt):
    features.embed(source, backbone, tmp_path, interrupt, batch_size=16)
  with pytest.raises(data.MissingDataError):
    data.load('cifar10_features', tmp_path)
  seen = []
  watched = dataclasses.replace(backbone)
  features.embed(
      source, watched, tmp_path, lambda *state: seen.append(state),
      batch_size=16)
  assert seen[0] == ('train', 50, 48)  # not from the start
  whole = tmp_path / 'whole'
  features.embed(source, backbone, whole, batch_size=16)
  for name in ('train.npy', 'test.npy'):
    np.testing.assert_array_equal(
        np.load(tmp_path / 'features' / 'cifar10' / name),
        np.load(whole / 'features' / 'cifar10' / name))
  seen.clear()
  features.embed(
      source, backbone, tmp_path, lambda *state: seen.append(state))
  assert not seen


@pytest.mark.parametrize('content', ['{"dig', '[]', '{"done": "all"}', '\xff'])
def test_progress_that_cannot_be_read_is_no_progress(
    source, backbone, tmp_path, content):
  folder = tmp_path / 'features' / 'cifar10'
  folder.mkdir(parents=True)
  (folder / 'train.progress.json').write_text(content, encoding='latin-1')
  features.embed(source, backbone, tmp_path)
  assert len(data.load('cifar10_features', tmp_path).train) == 50


def test_another_backbone_replaces_the_features_of_the_first(
    source, backbone, tmp_path):
  features.embed(source, backbone, tmp_path)
  before = data.load('cifar10_features', tmp_path)
  model = keras.models.clone_model(backbone.model)
  model.set_weights([w[..., ::-1] for w in model.get_weights()])
  features.embed(source, dataclasses.replace(
      backbone, model=model, digest='another'), tmp_path)
  after = data.load('cifar10_features', tmp_path)
  assert after.provenance['digest'] == 'another'
  assert not np.allclose(before.train.inputs, after.train.inputs)


def _spoil(folder, what):
  if what == 'count':
    np.save(folder / 'train.npy', np.zeros((49, 6), np.float16))
  elif what == 'nan':
    array = np.load(folder / 'test.npy')
    array[3, 2] = np.nan
    np.save(folder / 'test.npy', array)
  elif what == 'another data set':
    document = json.loads((folder / 'provenance.json').read_text())
    document['images'] = 'cifar100'
    (folder / 'provenance.json').write_text(json.dumps(document))
  elif what == 'truncated':
    content = (folder / 'train.npy').read_bytes()
    (folder / 'train.npy').write_bytes(content[:100])
  elif what == 'provenance':
    (folder / 'provenance.json').write_text('{')


def test_a_split_that_is_done_is_not_embedded_again(
    source, backbone, tmp_path):
  def interrupt(split, total, done):
    del total, done
    if split == 'test':
      raise KeyboardInterrupt

  with pytest.raises(KeyboardInterrupt):
    features.embed(source, backbone, tmp_path, interrupt)
  seen = set()
  features.embed(
      source, backbone, tmp_path, lambda split, *_: seen.add(split),
      batch_size=16)
  assert not seen  # the one batch of the test split was written, too


@pytest.mark.parametrize('what, message', [
    ('count', r'shape \(49, 6\) and 50 labels, expected \(50, 6\)'),
    ('nan', 'row 3 of test is not finite'),
    ('another data set', 'features of cifar100, not of cifar10'),
    ('truncated', 'train is damaged'),
    ('provenance', 'provenance.json is damaged'),
])
def test_bad_features_are_refused_with_one_line(
    source, backbone, tmp_path, what, message):
  folder = features.embed(source, backbone, tmp_path)
  _spoil(folder, what)
  with pytest.raises(data.BadDataError, match=message) as caught:
    data.load('cifar10_features', tmp_path)
  assert '\n' not in str(caught.value)


def test_features_that_float16_cannot_hold_are_refused(source, tmp_path):
  keras.Sequential([
      keras.Input((8, 8, 3)), keras.layers.Rescaling(1e6),
      keras.layers.GlobalAveragePooling2D()]).save(tmp_path / 'large.keras')
  with pytest.raises(data.BadDataError, match='float16 cannot hold'):
    features.embed(source, backbones.load(tmp_path / 'large.keras'), tmp_path)


def test_missing_features_name_the_command_that_makes_them(tmp_path):
  with pytest.raises(
      data.MissingDataError,
      match=r'experiments\.embed --dataset=cifar10 --data_dir='):
    data.load('cifar10_features', tmp_path)

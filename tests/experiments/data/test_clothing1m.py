import numpy as np
from PIL import Image
import pytest
import tensorflow as tf

from experiments import data

_CLASSES = ('T-Shirt', 'Shirt', 'Knitwear')
_SIZES = ((300, 260), (256, 256), (100, 150), (513, 300))


@pytest.fixture(name='root')
def _root(tmp_path):
  """A data set of the published layout: 12 + 3 + 4 images of three classes."""
  root = tmp_path / 'clothing1m'
  rng = np.random.default_rng(0)
  (root / 'category_names_eng.txt').parent.mkdir()
  (root / 'category_names_eng.txt').write_text('\n'.join(_CLASSES) + '\n')
  splits = {'noisy_train': 12, 'clean_val': 3, 'clean_test': 4}
  clean, noisy = [], []
  for split, num in splits.items():
    keys = []
    for i in range(num):
      # The published names have commas.
      key = f'images/{i % 2}/{split},{i}.jpg'
      keys.append(key)
      path = root / key
      path.parent.mkdir(parents=True, exist_ok=True)
      pixels = rng.integers(0, 256, (*_SIZES[i % 4], 3), np.uint8)
      Image.fromarray(pixels).save(path)
      (noisy if split == 'noisy_train' else clean).append(f'{key} {i % 3}')
    (root / f'{split}_key_list.txt').write_text('\n'.join(keys) + '\n')
  (root / 'clean_label_kv.txt').write_text('\n'.join(clean) + '\n')
  (root / 'noisy_label_kv.txt').write_text('\n'.join(noisy) + '\n')
  return root


def _batches(source, split, **arguments):
  return data.Batches(
      getattr(source, split), batch_size=5,
      preprocessing=source.preprocessing, **arguments)


def _normalise(source, pixels):
  preprocessing = source.preprocessing
  return (pixels / 255. - np.array(preprocessing.mean)) / np.array(
      preprocessing.std)


def test_splits_and_labels_are_those_of_the_lists(root):
  source = data.load('clothing1m', root.parent)
  assert source.class_names == _CLASSES
  assert [len(split) for split in (
      source.train, source.validation, source.test)] == [12, 3, 4]
  np.testing.assert_array_equal(source.train.given, np.arange(12) % 3)
  assert source.test.inputs[3].decode() == str(
      root / 'images/1/clean_test,3.jpg')


@pytest.mark.slow
def test_evaluation_takes_the_centre_in_order(root):
  source = data.load('clothing1m', root.parent)
  (batch,) = _batches(source, 'test').epoch(0)
  assert batch.inputs.shape == (4, 224, 224, 3)
  np.testing.assert_array_equal(batch.labels, [0, 1, 2, 0])
  # 256 x 256 needs no resizing: the oracle is plain slicing.
  pixels = np.asarray(tf.io.decode_image(
      tf.io.read_file(source.test.inputs[1])))
  np.testing.assert_allclose(
      batch.inputs[1], _normalise(source, pixels[16:240, 16:240]), atol=1e-4)


def test_the_shorter_side_becomes_256(root):
  source = data.load('clothing1m', root.parent)
  (batch,) = _batches(source, 'test').epoch(0)
  pixels = tf.io.decode_image(tf.io.read_file(source.test.inputs[2]))
  resized = np.asarray(tf.image.resize(pixels, (256, 384)))
  np.testing.assert_allclose(
      batch.inputs[2], _normalise(source, resized[16:240, 80:304]), atol=1e-4)


@pytest.mark.slow
def test_training_crops_and_flips_at_random_and_repeatably(root):
  source = data.load('clothing1m', root.parent)

  def epoch(number):
    batches = _batches(source, 'train', seed=0, augment=True).epoch(number)
    return {int(i): image for batch in batches
            for i, image in zip(batch.ids, batch.inputs)}

  first, again, other = epoch(0), epoch(0), epoch(1)
  for i, image in first.items():
    np.testing.assert_array_equal(image, again[i])
    assert not np.array_equal(image, other[i])


@pytest.mark.slow
def test_training_crops_are_windows_of_the_image(root):
  source = data.load('clothing1m', root.parent)
  pixels = np.asarray(tf.io.decode_image(
      tf.io.read_file(source.train.inputs[1])))
  flips = set()
  for epoch in range(8):
    for batch in _batches(source, 'train', seed=0, augment=True).epoch(epoch):
      for i, image in zip(batch.ids, batch.inputs):
        if i == 1:
          flips.add(_find_window(_normalise(source, pixels), image))
  assert flips == {False, True}


def _find_window(image, crop):
  """Returns whether the crop is mirrored; fails if it is no window."""
  for mirrored in (False, True):
    candidate = crop[:, ::-1] if mirrored else crop
    for top in range(33):
      for left in range(33):
        if abs(image[top, left, 0] - candidate[0, 0, 0]) < 1e-4 and np.allclose(
            image[top:top + 224, left:left + 224], candidate, atol=1e-4):
          return mirrored
  return pytest.fail('A crop is no window of its image.')


def test_an_epoch_is_balanced_over_the_classes(root):
  source = data.load('clothing1m', root.parent)
  batches = _batches(source, 'train', seed=0, augment=True, per_class=2)
  drawn = [np.concatenate([batch.labels for batch in batches.epoch(epoch)])
           for epoch in (0, 1)]
  assert [np.bincount(labels).tolist() for labels in drawn] == [[2, 2, 2]] * 2


@pytest.mark.slow
def test_workers_share_the_images(root):
  source = data.load('clothing1m', root.parent)
  alone = list(_batches(source, 'train', seed=0, augment=True).epoch(0))
  parts = [
      list(_batches(source, 'train', seed=0, augment=True, worker=worker,
                    num_workers=3).epoch(0)) for worker in range(3)]
  for step, batch in enumerate(alone):
    np.testing.assert_array_equal(
        np.concatenate([part[step].inputs for part in parts]), batch.inputs)


def test_a_missing_image_is_named_on_loading(root):
  (root / 'images/1/noisy_train,7.jpg').unlink()
  with pytest.raises(data.MissingDataError, match='1 images .*noisy_train,7'):
    data.load('clothing1m', root.parent)


@pytest.mark.parametrize('damage, message', [
    (lambda path: path.unlink(), 'noisy_train,7.jpg is missing'),
    (lambda path: path.write_bytes(b'no image'),
     'noisy_train,7.jpg is broken'),
    (lambda path: path.write_bytes(path.read_bytes()[:2000]),
     'noisy_train,7.jpg is broken'),
])
def test_a_missing_or_broken_image_is_named_on_reading(root, damage, message):
  source = data.load('clothing1m', root.parent)
  damage(root / 'images/1/noisy_train,7.jpg')
  with pytest.raises(ValueError, match=message):
    for _ in _batches(source, 'train', seed=0, augment=True).epoch(0):
      pass


def test_an_image_without_a_label_is_named(root):
  path = root / 'noisy_label_kv.txt'
  path.write_text('\n'.join(path.read_text().splitlines()[:-1]))
  with pytest.raises(ValueError, match='noisy_train,11.jpg'):
    data.load('clothing1m', root.parent)


@pytest.mark.parametrize('line', ['images/0/a.jpg 3', 'images/0/a.jpg', 'a -1'])
def test_a_malformed_label_is_named_with_its_line(root, line):
  with (root / 'clean_label_kv.txt').open('a') as file:
    file.write(line + '\n')
  with pytest.raises(ValueError, match='clean_label_kv.txt, line 8'):
    data.load('clothing1m', root.parent)


def test_files_must_be_cropped(root):
  source = data.load('clothing1m', root.parent)
  with pytest.raises(ValueError, match='`preprocessing` must crop'):
    data.Batches(source.test, batch_size=4)

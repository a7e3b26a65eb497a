import gc
import time
import weakref

import numpy as np
import pytest

from experiments import data

_CIFAR = data.Preprocessing(
    mean=(0.49, 0.48, 0.45), std=(0.25, 0.24, 0.26), pad=2, flip=True)


def _images(num, size=6):
  return np.random.default_rng(0).integers(
      0, 256, (num, size, size, 3), np.uint8)


def _examples(inputs, labels=None, ids=None):
  labels = np.zeros(len(inputs), int) if labels is None else labels
  ids = np.arange(len(inputs)) if ids is None else ids
  return data.Examples(inputs, labels, labels, ids)


def _batches(num=50, *, batch_size=8, seed=0, **arguments):
  examples = _examples(_images(num), np.arange(num) % 5, np.arange(num) * 3)
  return data.Batches(
      examples, batch_size=batch_size, seed=seed, **arguments)


def _ids(batches, epoch=0):
  return np.concatenate([batch.ids for batch in batches.epoch(epoch)])


@pytest.mark.parametrize('augment', [False, True])
def test_an_epoch_has_every_example_once_and_drops_nothing(augment):
  batches = _batches(50, preprocessing=_CIFAR, augment=augment)
  sizes = [len(batch.ids) for batch in batches.epoch(0)]
  assert sizes == [8] * 6 + [2]
  assert len(sizes) == batches.steps_per_epoch
  np.testing.assert_array_equal(np.sort(_ids(batches)), np.arange(50) * 3)


@pytest.mark.parametrize('augment', [False, True])
def test_images_labels_and_ids_stay_together(augment):
  preprocessing = data.Preprocessing(scale=1., flip=augment)
  batches = _batches(50, preprocessing=preprocessing, augment=augment)
  images = _images(50)
  for inputs, labels, ids in batches.epoch(3):
    np.testing.assert_array_equal(labels, ids // 3 % 5)
    # A mirror image has the same column sums, in another order.
    np.testing.assert_array_equal(
        np.sort(inputs.sum(axis=1), axis=1),
        np.sort(images[ids // 3].sum(axis=1, dtype=np.float32), axis=1))


def test_evaluation_keeps_the_order():
  np.testing.assert_array_equal(
      _ids(_batches(20, seed=None)), np.arange(20) * 3)


def test_the_order_depends_on_seed_and_epoch():
  orders = {
      tuple(_ids(_batches(seed=seed), epoch))
      for seed in (0, 1) for epoch in (0, 1)}
  assert len(orders) == 4


@pytest.mark.parametrize('augment', [False, True])
def test_a_replayed_epoch_is_bit_identical(augment):
  first = _batches(preprocessing=_CIFAR, augment=augment)
  for epoch in range(3):
    list(first.epoch(epoch))
  replayed = _batches(preprocessing=_CIFAR, augment=augment).epoch(3)
  for one, other in zip(first.epoch(3), replayed, strict=True):
    for left, right in zip(one, other):
      np.testing.assert_array_equal(left, right)


def test_augmentation_depends_on_the_id_not_on_the_batch():
  def by_id(batch_size):
    batches = _batches(
        batch_size=batch_size, preprocessing=_CIFAR, augment=True)
    return {
        int(i): image for batch in batches.epoch(2)
        for i, image in zip(batch.ids, batch.inputs)}

  small, large = by_id(3), by_id(50)
  for i, image in small.items():
    np.testing.assert_array_equal(image, large[i])


def test_augmented_images_are_flipped_crops_of_the_padded_image():
  images, ids = _images(400), np.arange(400)
  augmented = _CIFAR.augment(images, 0, 0, ids)
  seen = np.zeros((5, 5, 2), int)
  padded = np.pad(images, ((0, 0), (2, 2), (2, 2), (0, 0)))
  for image, result in zip(padded, augmented):
    for top, left, flip in np.ndindex(5, 5, 2):
      # The image is mirrored in its frame, then cropped.
      frame = image[:, ::-1] if flip else image
      if np.array_equal(frame[top:top + 6, left:left + 6], result):
        seen[top, left, flip] += 1
        break
    else:
      pytest.fail('An augmented image is no crop of the original.')
  assert seen.sum() == 400
  # All fifty ways, each about eight times.
  assert seen.min() > 0


def test_augmentation_changes_from_epoch_to_epoch():
  images, ids = _images(100), np.arange(100)
  first, second = (
      _CIFAR.augment(images, 0, epoch, ids) for epoch in (0, 1))
  same = np.mean(np.all(first == second, axis=(1, 2, 3)))
  assert same < 0.1


def test_augmentation_leaves_the_data_set_alone():
  images = _images(20)
  _CIFAR.augment(images, 0, 0, np.arange(20))
  np.testing.assert_array_equal(images, _images(20))


def test_inputs_are_scaled_and_normalised():
  images = _images(8)
  (batch,) = data.Batches(
      _examples(images), batch_size=8, preprocessing=_CIFAR).epoch(0)
  expected = (images / 255. - np.array(_CIFAR.mean)) / np.array(_CIFAR.std)
  assert batch.inputs.dtype == np.float32
  np.testing.assert_allclose(batch.inputs, expected, atol=1e-6)


@pytest.mark.parametrize('augment', [False, True])
@pytest.mark.parametrize('num_workers', [2, 3, 5])
def test_workers_share_each_global_batch(num_workers, augment):
  # In batches of 13 the last of 40 has one example: the other workers get none.
  arguments = dict(preprocessing=_CIFAR, augment=augment, batch_size=13)
  alone = list(_batches(40, **arguments).epoch(1))
  workers = [
      list(_batches(
          40, worker=worker, num_workers=num_workers, **arguments).epoch(1))
      for worker in range(num_workers)]
  assert {len(worker) for worker in workers} == {len(alone)}
  for step, batch in enumerate(alone):
    parts = [worker[step] for worker in workers]
    sizes = [len(part.ids) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    for field in range(3):
      np.testing.assert_array_equal(
          np.concatenate([part[field] for part in parts]), batch[field])


def test_class_balanced_epochs_are_redrawn():
  labels = np.repeat([0, 2, 3], [10, 20, 40])
  batches = data.Batches(
      _examples(_images(70), labels), batch_size=8, seed=0, per_class=9)
  subsets = []
  for epoch in range(3):
    drawn = np.concatenate([b.labels for b in batches.epoch(epoch)])
    assert np.bincount(drawn).tolist() == [9, 0, 9, 9]
    ids = _ids(batches, epoch)
    assert len(np.unique(ids)) == 27
    subsets.append(frozenset(ids.tolist()))
  assert batches.num_examples == 27
  assert batches.steps_per_epoch == 4
  assert len(set(subsets)) == 3


def test_the_order_of_an_epoch_does_not_depend_on_positions():
  ids = np.random.default_rng(1).permutation(50)
  one, other = (
      data.Batches(
          _examples(_images(50), ids=order), batch_size=50, seed=4)
      for order in (np.arange(50), ids))
  np.testing.assert_array_equal(_ids(one), _ids(other))


def test_a_batch_of_digits_costs_less_than_100_microseconds():
  source = data.load('digits')
  batches = data.Batches(
      source.train, batch_size=64, seed=0, preprocessing=source.preprocessing)
  times = []
  for epoch in range(50):
    start = time.perf_counter()
    for _ in batches.epoch(epoch):
      pass
    times.append((time.perf_counter() - start) / batches.steps_per_epoch)
  # The minimum, because the machine may be busy with something else.
  assert min(times) < 100e-6


@pytest.mark.slow
def test_images_are_kept_once_and_let_go():
  images = _images(50)
  batches = data.Batches(
      _examples(images), batch_size=8, seed=0, preprocessing=_CIFAR,
      augment=True)
  assert batches._inputs is images
  list(batches.epoch(0))
  reference = weakref.ref(images)
  del images, batches
  gc.collect()
  assert reference() is None


def test_an_abandoned_epoch_does_no_harm():
  batches = _batches(preprocessing=_CIFAR, augment=True)
  next(batches.epoch(0))
  np.testing.assert_array_equal(np.sort(_ids(batches)), np.arange(50) * 3)


@pytest.mark.parametrize('arguments, message', [
    (dict(batch_size=0), 'batch_size=0'),
    (dict(worker=2, num_workers=2), 'worker=2'),
    (dict(seed=None, augment=True), 'seed=None'),
    (dict(seed=None, per_class=2), 'seed=None'),
    (dict(per_class=11), 'smallest class, 10'),
    (dict(num=0), 'at least one'),
])
def test_wrong_arguments_are_refused(arguments, message):
  with pytest.raises(ValueError, match=message):
    _batches(**arguments)


@pytest.mark.parametrize('arguments, message', [
    (dict(mean=(0.5,)), '`mean` and `std`'),
    (dict(mean=(0.5,), std=(0.,)), r'std=\(0.0,\)'),
    (dict(pad=-1), 'pad=-1'),
    (dict(resize=100, crop=224), 'resize=100'),
])
def test_wrong_preprocessing_is_refused(arguments, message):
  with pytest.raises(ValueError, match=message):
    data.Preprocessing(**arguments)

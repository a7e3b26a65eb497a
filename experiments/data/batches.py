"""Batches that can be replayed: all order and augmentation has a formula.

The order of epoch e is a function of (seed, e) and the example ids, the
augmentation of an image one of (seed, e, id). There is no state: a resumed run
sees what an uninterrupted one would have seen.
"""

from collections.abc import Iterator
import functools
import os
from typing import NamedTuple
import weakref

import numpy as np
import tensorflow as tf

from experiments.data import examples as examples_lib
from experiments.data import preprocessing as preprocessing_lib
from ln_tfp import random

_PREFETCH = 4


class Batch(NamedTuple):
  """inputs float32 `[B, ...]`, labels int32 `[B]`, ids int64 `[B]`; NumPy."""
  inputs: np.ndarray
  labels: np.ndarray
  ids: np.ndarray


class Batches:
  """The batches of a set of examples, epoch by epoch.

      batches = data.Batches(
          source.train, batch_size=128, seed=0,
          preprocessing=source.preprocessing, augment=True)
      for epoch in range(300):
        for inputs, labels, ids in batches.epoch(epoch):
          ...

  The last batch of an epoch may be short; nothing is dropped.
  """

  def __init__(
      self,
      examples: examples_lib.Examples,
      *,
      batch_size: int,
      seed: int | None = None,
      preprocessing: preprocessing_lib.Preprocessing | None = None,
      augment: bool = False,
      worker: int = 0,
      num_workers: int = 1,
      per_class: int | None = None,
      view: int = 0,
  ):
    """Creates the batches; the examples are kept, not copied.

    Args:
      examples: whose given labels are the labels.
      batch_size: of the global batch, whatever the number of workers.
      seed: of order and augmentation; None keeps the order (evaluation).
      preprocessing: `Source.preprocessing`; by default inputs are divided by
        255.
      augment: whether `preprocessing` crops and flips at random.
      worker: which of the workers this is.
      num_workers: each global batch is cut into as many contiguous parts of
        nearly equal size. Together the workers see what one would see alone.
      per_class: if given, an epoch has that many examples of each class, drawn
        without replacement anew for each (seed, epoch).
      view: the same examples with other augmentation for each view.
    """
    self._inputs = examples.inputs
    self._labels = examples.given
    self._ids = examples.ids
    self._seed = seed
    self._preprocessing = preprocessing or preprocessing_lib.Preprocessing()
    self._augment = augment
    self._worker = worker
    self._num_workers = num_workers
    self._per_class = per_class
    self._augmentation_seed = seed if not view else int(
        random.bits('view', seed, view) >> np.uint64(1))
    self.batch_size = batch_size
    self._tf_augmented = _in_tensorflow(self)
    self._check()

  @property
  def num_examples(self) -> int:
    """Of one epoch, over all workers."""
    if self._per_class is None:
      return len(self._ids)
    return self._per_class * len(np.unique(self._labels))

  @property
  def augments(self) -> bool:
    """Whether an example differs from epoch to epoch, and view to view."""
    return self._augment

  @property
  def steps_per_epoch(self) -> int:
    return -(-self.num_examples // self.batch_size)

  def epoch(self, epoch: int) -> Iterator[Batch]:
    """Returns the batches of an epoch, the same ones in every call."""
    parts = self._parts(self._order(epoch))
    if self._inputs.ndim == 1:
      return self._stream(epoch, parts)
    if self._augment and (self._preprocessing.pad or self._preprocessing.flip):
      return self._prefetch(epoch, parts)
    return (
        self._batch(self._preprocessing.normalise(self._inputs[part]), part)
        for part in parts)

  def _order(self, epoch):
    """Returns the positions of the epoch's examples, over all workers."""
    if self._seed is None:
      return np.arange(len(self._ids))
    if self._per_class is None:
      return random.order('order', self._seed, epoch, self._ids)
    draw = random.order('subset', self._seed, epoch, self._ids)
    by_class = draw[np.argsort(self._labels[draw], kind='stable')]
    counts = np.bincount(self._labels)
    starts = (np.cumsum(counts) - counts)[counts > 0]
    chosen = by_class[starts[:, np.newaxis] + np.arange(self._per_class)]
    chosen = chosen.ravel()
    return chosen[
        random.order('order', self._seed, epoch, self._ids[chosen])]

  def _parts(self, order):
    """Cuts an order into this worker's part of each global batch.

    The first workers take one more where a batch cannot be cut evenly. So all
    parts but the last have the same size, and the last is not larger.
    """
    parts = []
    for start in range(0, len(order), self.batch_size):
      batch = order[start:start + self.batch_size]
      size, larger = divmod(len(batch), self._num_workers)
      first = self._worker * size + min(self._worker, larger)
      parts.append(batch[first:first + size + (self._worker < larger)])
    return parts

  def _batch(self, inputs, part):
    return Batch(inputs, self._labels[part], self._ids[part])

  def _augmented(self, epoch, part):
    images = self._preprocessing.augment(
        self._inputs[part], self._augmentation_seed, epoch, self._ids[part])
    return self._preprocessing.normalise(images)

  def _prefetch(self, epoch, parts):
    """Augments in a thread of tf.data, ahead of the training step."""
    dataset = tf.data.Dataset.from_tensor_slices(np.concatenate(parts))
    dataset = dataset.batch(max(1, len(parts[0])))
    dataset = dataset.map(lambda part: self._tf_augmented(epoch, part))
    inputs = dataset.prefetch(_PREFETCH).as_numpy_iterator()
    nothing = np.zeros((0, *self._inputs.shape[1:]), np.float32)
    for part in parts:
      yield self._batch(next(inputs) if len(part) else nothing, part)

  def _stream(self, epoch, parts):
    """Reads image files, decoding ahead of the training step."""
    everything = np.concatenate(parts)
    ids = self._ids[everything]
    where = np.full((len(ids), 2), 0.5)
    flips = np.zeros(len(ids), bool)
    if self._augment:
      where = self._preprocessing.crops(self._augmentation_seed, epoch, ids)
      flips = self._preprocessing.flips(self._augmentation_seed, epoch, ids)
    dataset = tf.data.Dataset.from_tensor_slices(
        (self._inputs[everything], where, flips))
    dataset = dataset.map(
        functools.partial(_read, self._preprocessing),
        num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
    dataset = dataset.batch(max(1, len(parts[0])))
    inputs = dataset.prefetch(_PREFETCH).as_numpy_iterator()
    crop = self._preprocessing.crop
    nothing = np.zeros((0, crop, crop, 3), np.float32)
    for part in parts:
      try:
        batch = next(inputs) if len(part) else nothing
      except tf.errors.OpError as error:
        raise _broken_image(self._inputs[part], error) from error
      yield self._batch(batch, part)

  def _check(self):
    if not len(self._ids):
      raise ValueError('Argument `examples` must hold at least one.')
    if self.batch_size < 1:
      raise ValueError(
          'Argument `batch_size` must be positive. '
          f'Received: batch_size={self.batch_size}.')
    if not 0 <= self._worker < self._num_workers:
      raise ValueError(
          'Argument `worker` must be in 0..num_workers-1. Received: '
          f'worker={self._worker}, num_workers={self._num_workers}.')
    if self._seed is None and (self._augment or self._per_class is not None):
      raise ValueError(
          'Argument `seed` must be given with `augment` or `per_class`. '
          'Received: seed=None.')
    if self._inputs.ndim == 1 and not self._preprocessing.crop:
      raise ValueError(
          'Argument `preprocessing` must crop images from files, which differ '
          f'in size. Received: preprocessing={self._preprocessing}.')
    if self._per_class is not None:
      smallest = np.unique(self._labels, return_counts=True)[1].min()
      if not 1 <= self._per_class <= smallest:
        raise ValueError(
            'Argument `per_class` must be positive and at most the size of the '
            f'smallest class, {smallest}. '
            f'Received: per_class={self._per_class}.')


def _in_tensorflow(batches):
  """Returns `batches._augmented` as a TensorFlow function.

  TensorFlow never forgets a Python function that a graph calls. It is therefore
  one a `Batches`, not one an epoch, and does not keep the images alive.
  """
  reference = weakref.ref(batches)

  @tf.function(input_signature=[
      tf.TensorSpec([], tf.int64), tf.TensorSpec([None], tf.int64)])
  def augmented(epoch, part):
    return tf.numpy_function(
        lambda epoch, part: reference()._augmented(epoch, part),
        [epoch, part], tf.float32, stateful=False)

  return augmented


def _read(preprocessing, path, where, flip):
  """Returns the float32 input in an image file; a TensorFlow function.

  Images in files differ in size: they are resized and cropped one by one.

  Args:
    preprocessing: what happens to the pixels.
    path: string tensor.
    where: `[2]`, top and left of the crop as shares of the space that there
      is, in [0, 1); one half is the centre.
    flip: whether to mirror.
  """
  image, crop = _decode(path), preprocessing.crop
  size = tf.shape(image)[:2]
  # The other side by integer division, never below the shorter one.
  image = tf.image.resize(
      image, size * preprocessing.resize // tf.reduce_min(size))
  space = tf.shape(image)[:2] - crop
  top_left = tf.cast(tf.cast(space + 1, tf.float64) * where, tf.int32)
  image = tf.slice(image, tf.concat([top_left, [0]], 0), [crop, crop, 3])
  image.set_shape([crop, crop, 3])
  if preprocessing.flip:
    image = tf.cond(flip, lambda: tf.reverse(image, [1]), lambda: image)
  factor, offset = preprocessing.affine()
  return tf.cast(image, tf.float32) * factor + offset


def _decode(path):
  """Returns the uint8 `[H, W, 3]` image in a file."""
  return tf.io.decode_image(
      tf.io.read_file(path), channels=3, expand_animations=False)


def _broken_image(paths, error):
  """Returns an error that names the first file that cannot be read."""
  for path in paths:
    try:
      _decode(path)
    except tf.errors.OpError as cause:
      kind = 'missing' if isinstance(cause, tf.errors.NotFoundError) else (
          'broken')
      return ValueError(f'Image {os.fsdecode(path)} is {kind}.')
  return ValueError(f'One of the images {list(paths)} is broken: {error}')

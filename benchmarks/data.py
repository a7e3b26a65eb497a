"""How fast augmented batches are delivered, against Keras's own layers.

Batches of 128 images of CIFAR's size are padded, cropped, flipped and
normalised: by `data.Batches`, and by Keras's preprocessing layers in a
`Dataset.map` over the examples. Takes about a minute on two idle cores.
"""

import keras
import numpy as np
import tensorflow as tf

from benchmarks import timing
from experiments import data

_BATCH_SIZE = 128
_ROUNDS = 7
_PREPROCESSING = data.Preprocessing(
    mean=(0.4914, 0.4822, 0.4465), std=(0.2470, 0.2435, 0.2616), pad=2,
    flip=True)


def make_examples(num: int) -> data.Examples:
  """Returns random images of the size of CIFAR's."""
  rng = np.random.default_rng(0)
  images = rng.integers(0, 256, (num, 32, 32, 3), np.uint8)
  labels = rng.integers(0, 10, num, np.int32)
  return data.Examples(images, labels, labels, np.arange(num))


def make_batches(examples: data.Examples) -> timing.Contestant:
  """An epoch of `data.Batches`."""
  batches = data.Batches(
      examples, batch_size=_BATCH_SIZE, seed=0, preprocessing=_PREPROCESSING,
      augment=True)
  return lambda: sum(len(batch.labels) for batch in batches.epoch(0))


def make_keras(examples: data.Examples) -> timing.Contestant:
  """The same by Keras's layers, in a map over the examples."""
  layers = [
      keras.layers.ZeroPadding2D(_PREPROCESSING.pad),
      keras.layers.RandomCrop(32, 32),
      keras.layers.RandomFlip('horizontal'),
      keras.layers.Rescaling(_PREPROCESSING.scale),
      keras.layers.Normalization(
          mean=_PREPROCESSING.mean,
          variance=[std**2 for std in _PREPROCESSING.std]),
  ]

  def augment(image, label):
    # ZeroPadding2D wants a batch; the others take an image, too.
    image = layers[0](image[tf.newaxis])[0]
    for layer in layers[1:]:
      image = layer(image, training=True)
    return image, label

  dataset = tf.data.Dataset.from_tensor_slices(
      (examples.inputs, examples.given))
  dataset = dataset.shuffle(len(examples), seed=0)
  dataset = dataset.map(augment, num_parallel_calls=tf.data.AUTOTUNE)
  dataset = dataset.batch(_BATCH_SIZE).prefetch(tf.data.AUTOTUNE)
  return lambda: sum(
      len(labels) for _, labels in dataset.as_numpy_iterator())


def measure() -> list[timing.Row]:
  """All rows."""
  small, large = make_examples(5_000), make_examples(50_000)
  times = timing.take_turns({
      'Batches': make_batches(small), 'Keras': make_keras(small),
      '50,000': make_batches(large)}, _ROUNDS)
  return [
      timing.ratio('Keras layers / Batches, augmented images of CIFAR', times,
                   'Keras', 'Batches', '>= 3'),
      timing.ratio('Batches, time an image, 50,000 / 5,000 images', times,
                   '50,000', 'Batches')]

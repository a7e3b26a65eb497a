"""How fast augmented batches are delivered, against Keras's own layers.

    python -m benchmarks.data

Batches of 128 images of CIFAR's size are padded, cropped, flipped and
normalised: by `data.Batches`, and by Keras's preprocessing layers in a
`Dataset.map` over the examples. The contestants take turns in one process.
Expected: `Batches` at least 3 times as fast, and about the same time an image
for ten times as many images. Takes about a minute on two cores.
"""

import statistics
import time

import keras
import numpy as np
import tensorflow as tf

from ln_tfp import data

_BATCH_SIZE = 128
_ROUNDS = 7
_PREPROCESSING = data.Preprocessing(
    mean=(0.4914, 0.4822, 0.4465), std=(0.2470, 0.2435, 0.2616), pad=2,
    flip=True)


def make_examples(num: int) -> data.Examples:
  """Returns random images of the size of CIFAR's."""
  rng = np.random.default_rng(0)
  images = rng.integers(0, 256, (num, 32, 32, 3), np.uint8)
  return data.Examples(
      images, rng.integers(0, 10, num, np.int32), np.arange(num))


def make_batches(examples: data.Examples):
  """Returns a function from an epoch to its batches, by `data.Batches`."""
  batches = data.Batches(
      examples.images, examples.labels, examples.ids, batch_size=_BATCH_SIZE,
      seed=0, preprocessing=_PREPROCESSING, augment=True)
  return batches.epoch


def make_keras(examples: data.Examples):
  """Returns the same by Keras's layers, in a map over the examples."""
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
      (examples.images, examples.labels))
  dataset = dataset.shuffle(len(examples), seed=0)
  dataset = dataset.map(augment, num_parallel_calls=tf.data.AUTOTUNE)
  dataset = dataset.batch(_BATCH_SIZE).prefetch(tf.data.AUTOTUNE)
  return lambda epoch: dataset.as_numpy_iterator()


def microseconds_per_image(batches, num: int) -> float:
  """Returns the time to deliver `num` images, divided by their number."""
  start = time.perf_counter()
  delivered = sum(len(batch[1]) for batch in batches)
  assert delivered == num
  return (time.perf_counter() - start) / num * 1e6


def report(title: str, first: list[float], second: list[float]) -> None:
  """Prints the times of two contestants and their ratios."""
  fast, slow = min(first), min(second)
  medians = statistics.median(second) / statistics.median(first)
  print(f'{title}: {fast:.1f} and {slow:.1f} us/image; ratio of the minima '
        f'{slow / fast:.2f}, of the medians {medians:.2f} (n={len(first)})')


def main() -> None:
  small, large = make_examples(5_000), make_examples(50_000)
  contestants = {
      'small': (make_batches(small), len(small)),
      'large': (make_batches(large), len(large)),
      'keras': (make_keras(small), len(small)),
  }
  times = {name: [] for name in contestants}
  # The first round warms up: Keras traces its layers.
  for epoch in range(_ROUNDS + 1):
    for name, (epoch_batches, num) in contestants.items():
      taken = microseconds_per_image(epoch_batches(epoch), num)
      if epoch:
        times[name].append(taken)
  report('Batches, Keras layers', times['small'], times['keras'])
  report('Batches of 5,000, of 50,000 images', times['small'], times['large'])


if __name__ == '__main__':
  main()

"""A small data set of one's own, and runs on it that take a second."""

import numpy as np

from experiments import data
from experiments import training

CLASSES = 3


def source(num_train=100, num_test=37, preprocessing=None, seed=0, scale=1.):
  """Three blobs in four dimensions, on top of each other at the edges."""
  rng = np.random.default_rng(seed)

  def examples(size):
    labels = rng.integers(CLASSES, size=size).astype(np.int32)
    centres = 2. * np.eye(CLASSES, 4)[labels]
    images = scale * (centres + rng.normal(size=[size, 4]))
    return data.Examples(
        images.astype(np.float32), labels, labels, np.arange(size) + 1000)

  return data.Source(
      'blobs', ('a', 'b', 'c'), examples(num_train), examples(num_test),
      preprocessing or data.Preprocessing(scale=1.))


def run(**settings):
  defaults = dict(
      dataset='blobs', method='CE', noise='sym:0.4', epochs=2, batch_size=32,
      model_arguments={'widths': (8,)})
  return training.Run(**{**defaults, **settings})

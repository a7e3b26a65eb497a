"""Segmentation: a noisy label for each pixel, and pixels without any.

    python examples/segmentation.py

Stripes of three colours; one label in five is wrong, and the border of a stripe
is nobody's (255, as in Pascal VOC): such pixels neither teach nor count.
"""

import keras
import numpy as np
from scipy import ndimage

import ln_tfp

_NOBODYS = 255


def make_images(num=64, size=24):
  """Returns images, their classes, and the noisy labels with borders."""
  rng = np.random.default_rng(0)
  classes = np.zeros((num, size, size), np.int32)
  for image in classes:  # three stripes in any order
    stripes = np.split(image, np.sort(rng.integers(4, size - 4, 2)), axis=1)
    for stripe, kind in zip(stripes, rng.permutation(3)):
      stripe[:] = kind
  colours = np.array([[.5, .5, .5], [1., 0., 0.], [0., 0., 1.]])
  images = colours[classes] + rng.normal(0, .1, (num, size, size, 3))
  noisy = ln_tfp.noise.corrupt(
      classes.ravel(), 'sym:0.3').reshape(classes.shape)
  inside = (ndimage.maximum_filter(classes, (1, 3, 3))
            == ndimage.minimum_filter(classes, (1, 3, 3)))
  return images.astype(np.float32), classes, np.where(inside, noisy, _NOBODYS)


def main():
  images, classes, labels = make_images()
  head = ln_tfp.LogisticNormalHead(3)
  model = keras.Sequential([
      keras.layers.Conv2D(16, 3, padding='same', activation='relu'),
      keras.layers.Conv2D(16, 3, padding='same', activation='relu'), head])
  model.compile(keras.optimizers.Adam(.01),
                loss=head.loss(ignore_class=_NOBODYS),
                metrics=head.metrics(ignore_class=_NOBODYS))
  model.fit(images, labels, batch_size=8, epochs=12, verbose=2)
  found = ln_tfp.to_classifier(model).predict(images, verbose=0).argmax(-1)
  known = labels != _NOBODYS
  print(f'{np.mean((labels == classes)[known]):.1%} of the given labels are '
        f'right, {np.mean((found == classes)[known]):.1%} of the predicted '
        f'ones, {np.mean((found == classes)[~known]):.1%} on borders.')
  return np.mean((found == classes)[known])


if __name__ == '__main__':
  main()

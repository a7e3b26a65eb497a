"""A folder of images, some of them in the wrong sub-folder.

    python examples/image_folder.py             # only to see that it runs
    python examples/image_folder.py photos/     # photos/cat/1.jpg, ...

A network of `keras.applications` with its ImageNet weights, which Keras fetches
once, makes features of the images; the head learns from them, and the audit
lists files that are probably in the wrong place. Needs `pip install pillow`.
Without a folder, images are made and the weights are random, which finds
nothing.
"""

import functools
import pathlib
import sys
import tempfile

import keras
import numpy as np

import ln_tfp


def make_folder(folder, num=40, size=32):
  """Writes reddish and bluish images; one in ten is in the wrong place."""
  rng = np.random.default_rng(0)
  for i in range(num):
    image = rng.uniform(0, 120, (size, size, 3))
    image[..., 2 * (i % 2)] += 120
    colour = ('red', 'blue')[(i + (i % 10 == 0)) % 2]
    path = pathlib.Path(folder, colour, f'{i}.png')
    path.parent.mkdir(exist_ok=True)
    keras.utils.save_img(path, image, scale=False)


def main(folder=None, weights='imagenet', size=224):
  if folder is None:
    with tempfile.TemporaryDirectory() as made:
      make_folder(made)
      return main(made, weights=None, size=32)
  load = functools.partial(keras.utils.image_dataset_from_directory, folder,
                           image_size=(size, size), seed=0)
  data = load(shuffle=False)  # the order that an audit can name files in
  backbone = keras.applications.MobileNetV2(
      include_top=False, pooling='avg', weights=weights, alpha=.35,
      input_shape=(size, size, 3))
  backbone.trainable = False
  model = keras.Sequential([
      keras.layers.Rescaling(1 / 127.5, offset=-1), backbone,
      ln_tfp.LogisticNormalHead(len(data.class_names))])
  model.compile('adam', loss=ln_tfp.nll, metrics=[ln_tfp.Accuracy()])
  # `fit` cannot shuffle a `tf.data.Dataset`, which does so by itself.
  model.fit(load(shuffle=True), shuffle=False, epochs=5, verbose=2)
  report = ln_tfp.audit_labels(
      model, data, ids=data.file_paths, class_names=data.class_names)
  for i in report.ranked_issues[:20]:
    print(f'{report.ids[i]}: {report.class_names[report.suggested[i]]}?')
  return report


if __name__ == '__main__':
  main(*sys.argv[1:2])

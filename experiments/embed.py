"""Turns the images of a data set into features, once, with a frozen backbone.

    python -m experiments.embed --dataset=cifar10 --backbone=EfficientNetV2B0
    python -m experiments.embed --dataset=cifar10 --backbone=backbone.keras

The features go to DATA_DIR/features; afterwards all programs take the data sets
cifar10_features, cifar100_features, cifar10n_features and cifar100n_features.
A backbone is a network of keras.applications with ImageNet weights, or a .keras
file of a model from images, values in 0..255, to one vector each. No
augmentation; float16; with the backbone's name and digest beside them. An
interrupted call goes on where it was.

Data sets: mnist, fashion_mnist, cifar10, cifar100, clothing1m.
Time: 60,000 images of CIFAR eight to ten minutes on two cores with
EfficientNet-Lite0 at 128 x 128.
Expected: one line with the number of features and the folder.
"""

from absl import flags
from etils import epy
import tqdm

from experiments.cli import app
from experiments.sweep import launch

with epy.lazy_imports():  # flags are parsed before TensorFlow is imported
  from experiments.data import features
  from ln_tfp import backbones

flags.DEFINE_string(
    'backbone', None, 'Network of keras.applications, or a .keras file.')
flags.DEFINE_integer(
    'image_size', None,
    'Side to which images are resized for a network of keras.applications. '
    'Default: that of its training.', lower_bound=1)


def main(argv):
  del argv
  if not app.FLAGS.backbone:
    raise app.BadFlagError('--backbone: say which, see --help.')
  try:
    backbone = backbones.load(app.FLAGS.backbone, app.FLAGS.image_size)
  except (FileNotFoundError, ValueError) as error:
    raise app.BadFlagError(f'--backbone: {error}') from error
  source = launch.load(app.FLAGS.dataset)
  if len(source.input_shape) != 3:
    raise app.BadFlagError(f'--dataset: {source.name} has no images.')
  with tqdm.tqdm(unit=' images') as bar:
    def report(split, total, done):
      bar.desc, bar.total = split, total
      bar.update(done - bar.n)

    folder = features.embed(source, backbone, app.FLAGS.data_dir, report)
  print(f'{source.name}: features of {backbone.name} in {folder}.')


if __name__ == '__main__':
  app.start(main, computes=True)

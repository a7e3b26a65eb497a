"""Data sets by name, to try the audit on: digits, and what TFDS has."""

import os
import pathlib
import re

import numpy as np
from sklearn import datasets

from ln_tfp import noise as noise_lib
from ln_tfp.audit import files

_LARGEST = 2**31  # bytes on disk; the audit reads all of it


def load(
    name: str, noise: str, data_dir: str | os.PathLike | None,
    seed: int) -> files.Dataset:
  """Returns the training split of a data set, with noise in its labels.

  Args:
    name: `digits`, or the name of an image data set of TFDS.
    noise: of `ln_tfp.noise`; asymmetric noise moves each class to the next.
    data_dir: where TFDS has prepared its data sets, by default its own place.
    seed: of the noise.
  """
  if name == 'digits':
    bunch = datasets.load_digits()
    images = bunch.images.astype(np.uint8)[..., np.newaxis]
    labels, names = bunch.target, tuple(map(str, bunch.target_names))
  else:
    images, labels, names = _load_tfds(name, data_dir)
  ids = np.arange(len(labels))
  try:
    noisy = noise_lib.corrupt(
        labels, noise, seed, num_classes=len(names),
        mapping={k: (k + 1) % len(names) for k in range(len(names))})
  except ValueError as error:
    raise files.InputError(error) from error
  return files.Dataset(images, noisy, ids, names, labels.astype(np.int32))


def _load_tfds(name, data_dir):
  """Returns images, labels and the names of the classes."""
  try:
    import tensorflow_datasets as tfds
  except ImportError as error:
    raise files.InputError(
        f'--dataset={name} needs TensorFlow Datasets: pip install '
        'tensorflow-datasets. Without it there is --dataset=digits.') from error
  if not re.fullmatch(r'\w+(/\w+)?', name):
    raise files.InputError(f'--dataset={name}: this is no name of a data set.')
  directory = pathlib.Path(data_dir or tfds.core.constants.DATA_DIR)
  versions = sorted(directory.expanduser().glob(f'{name}/*/dataset_info.json'))
  if not versions:
    raise files.InputError(
        f'{name} is missing in {directory}: tensorflow_datasets.load({name!r}) '
        'fetches it.')
  builder = tfds.builder_from_directory(versions[-1].parent)
  features = builder.info.features
  if not {'image', 'label'} <= set(features) or 'train' not in (
      builder.info.splits):
    raise files.InputError(
        f'{name} is no set of labelled images with a training split.')
  if builder.info.splits['train'].num_bytes > _LARGEST:
    raise files.InputError(f'{name} does not fit in memory.')
  rows = list(builder.as_dataset(
      split='train', shuffle_files=False).as_numpy_iterator())
  images = [row['image'] for row in rows]
  if len({image.shape for image in images}) > 1:
    raise files.InputError(f'The images of {name} have different sizes.')
  return (np.stack(images), np.array([row['label'] for row in rows]),
          tuple(features['label'].names))

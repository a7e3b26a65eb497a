"""MNIST, Fashion-MNIST, CIFAR-10 and CIFAR-100, as TFDS prepares them."""

import os
import pathlib
import re

import numpy as np

from experiments.data import examples as examples_lib
from experiments.data import registry

_READ_BATCH = 1_000


def load(name: str, data_dir: str | os.PathLike) -> examples_lib.Source:
  """Returns a prepared data set; the examples come in TFDS's read order."""
  directory = _prepared_directory(name, pathlib.Path(data_dir))
  # From the directory alone: by name TFDS would ask its servers, too.
  tfds = _tfds()
  try:
    builder = tfds.builder_from_directory(directory)
    train, test = (_read(builder, split) for split in ('train', 'test'))
  except Exception as error:  # TFDS and TensorFlow raise almost anything
    raise registry.BadDataError(
        f'{directory} is damaged: {type(error).__name__}: '
        f'{str(error)[:300]}') from error
  return examples_lib.registered(name, train=train, test=test)


def prepare(name: str, data_dir: str | os.PathLike) -> None:
  """Downloads a data set and prepares it."""
  _tfds().builder(name, data_dir=data_dir).download_and_prepare()


def _tfds():
  # It takes seconds, and that a data set is missing should be said at once.
  import tensorflow_datasets  # pylint: disable=import-outside-toplevel
  return tensorflow_datasets


def _prepared_directory(name, data_dir):
  """Returns the directory of the newest prepared version."""
  versions = [
      path.parent for path in (data_dir / name).glob('*/dataset_info.json')
      if re.fullmatch(r'\d+\.\d+\.\d+', path.parent.name)]
  if not versions:
    raise registry.missing(name, data_dir, data_dir / name)
  return max(
      versions, key=lambda path: [int(part) for part in path.name.split('.')])


def _read(builder, split):
  info = builder.info.splits[split]
  images = np.empty(
      (info.num_examples, *builder.info.features['image'].shape), np.uint8)
  labels = np.empty(info.num_examples, np.int32)
  ids = np.arange(info.num_examples, dtype=np.int64)
  dataset = builder.as_dataset(
      split=split, shuffle_files=False, batch_size=_READ_BATCH,
      # One shard after the other: MNIST has no ids but the read index.
      read_config=_tfds().ReadConfig(
          interleave_cycle_length=1, try_autocache=False))
  start = 0
  for batch in dataset.as_numpy_iterator():
    stop = start + len(batch['label'])
    images[start:stop], labels[start:stop] = batch['image'], batch['label']
    if 'id' in batch:
      # CIFAR's ids look like b'train_01234'.
      ids[start:stop] = [int(name.split(b'_')[1]) for name in batch['id']]
    start = stop
  if start != info.num_examples:
    raise ValueError(
        f'{builder.data_path} is damaged: {split} has {start} of '
        f'{info.num_examples} examples.')
  return examples_lib.Examples(images, labels, labels, ids)

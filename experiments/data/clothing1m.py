"""Clothing1M from its published directory layout, read while training.

Xiao et al., "Learning from massive noisy labeled data for image
classification", CVPR 2015. `clothing1m` below the data directory holds the key
lists and `images`.
"""

import os
import pathlib

import numpy as np

from experiments.data import examples as examples_lib
from experiments.data import registry

_CATEGORIES = 'category_names_eng.txt'
# Split: its list of images, and the labels of these.
_LISTS = {
    'train': ('noisy_train_key_list.txt', 'noisy_label_kv.txt'),
    'validation': ('clean_val_key_list.txt', 'clean_label_kv.txt'),
    'test': ('clean_test_key_list.txt', 'clean_label_kv.txt'),
}


def load(name: str, data_dir: str | os.PathLike) -> examples_lib.Source:
  """Returns the data set; `inputs` are paths, ids are lines of the lists."""
  root = pathlib.Path(data_dir) / name
  for file in {_CATEGORIES, *sum(_LISTS.values(), ())}:
    if not (root / file).is_file():
      raise _missing(root / file)
  class_names = tuple(_lines(root / _CATEGORIES))
  splits = {
      split: _read(root, *files, len(class_names))
      for split, files in _LISTS.items()}
  return examples_lib.registered(name, class_names=class_names, **splits)


def prepare(name: str, data_dir: str | os.PathLike) -> None:
  """Checks that the data set is there: it is given on request only."""
  load(name, data_dir)


def _read(root, key_list, label_list, num_classes):
  keys = _lines(root / key_list)
  labels = _labels(root / label_list, num_classes)
  unlabelled = [key for key in keys if key not in labels]
  if unlabelled:
    raise ValueError(
        f'{root / label_list} has no label for {len(unlabelled)} images of '
        f'{key_list}, the first of which is {unlabelled[0]}.')
  _check_images(root, keys)
  # Bytes: a million paths as NumPy's strings would take four times as much.
  paths = np.array([os.fsencode(root / key) for key in keys], bytes)
  given = np.array([labels[key] for key in keys], np.int32)
  return examples_lib.Examples(paths, given, given, np.arange(len(keys)))


def _labels(path, num_classes):
  """Returns the label of each image that the file mentions."""
  labels = {}
  for number, line in enumerate(_lines(path), 1):
    key, _, label = line.rpartition(' ')
    if not (key and label.isdecimal() and int(label) < num_classes):
      raise ValueError(
          f'{path}, line {number}: expected an image and a label in '
          f'0..{num_classes - 1}. Received: {line!r}.')
    labels[key] = int(label)
  return labels


def _check_images(root, keys):
  """Names the images that are missing, before hours of training.

  Each folder is listed once, which is far cheaper than asking for each file.
  """
  listed = {}
  missing = []
  for key in keys:
    folder, _, file = key.rpartition('/')
    if folder not in listed:
      there = (root / folder).is_dir()
      listed[folder] = set(os.listdir(root / folder)) if there else set()
    if file not in listed[folder]:
      missing.append(key)
  if missing:
    raise registry.MissingDataError(
        f'{len(missing)} images of clothing1m are missing, the first of which '
        f'is {root / missing[0]}.')


def _lines(path):
  return path.read_text(encoding='utf-8').splitlines()


def _missing(path):
  return registry.MissingDataError(
      f'clothing1m needs {path}: its authors give the data set on request '
      '(https://github.com/Cysu/noisy_label), it cannot be downloaded.')

"""Clothing1M from its published directory layout, read while training.

Xiao et al., "Learning from massive noisy labeled data for image
classification", CVPR 2015. `clothing1m` below the data directory holds the key
lists and `images`.
"""

import os
import pathlib
import re

import numpy as np

from experiments.data import examples as examples_lib
from experiments.data import registry
from ln_tfp import files as files_lib

_LARGEST = 2**30  # bytes of a list; the published ones have less than a tenth
_LABEL = re.compile('[0-9]{1,9}')
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
  if len(set(class_names)) < len(class_names):
    raise registry.BadDataError(
        f'{root / _CATEGORIES} names a class twice: {", ".join(class_names)}.')
  keys = {split: _keys(root / files[0]) for split, files in _LISTS.items()}
  _check_apart(root, keys)
  splits = {
      split: _read(root, keys[split], *files, len(class_names))
      for split, files in _LISTS.items()}
  return examples_lib.registered(name, class_names=class_names, **splits)


def prepare(name: str, data_dir: str | os.PathLike) -> None:
  """Checks that the data set is there: it is given on request only."""
  load(name, data_dir)


def _keys(path):
  """Returns the images of a list, all of which are in the data directory."""
  keys = []
  for number, key in enumerate(_lines(path), 1):
    keys.append(os.path.normpath(key))
    if os.path.isabs(key) or keys[-1].split('/')[0] == '..' or '\0' in key:
      raise registry.BadDataError(
          f'{path}, line {number}: {key} leaves the data directory.')
  return keys


def _check_apart(root, keys):
  """Refuses an image in two of the lists: a test must be a test."""
  seen = {}
  for split, listed in keys.items():
    for key in listed:
      if seen.setdefault(key, split) != split:
        raise registry.BadDataError(
            f'{root}: {key} is in the lists of {seen[key]} and of {split}.')


def _read(root, keys, key_list, label_list, num_classes):
  labels = _labels(root / label_list, num_classes)
  unlabelled = [key for key in keys if key not in labels]
  if unlabelled:
    raise registry.BadDataError(
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
    if not (key and _LABEL.fullmatch(label) and int(label) < num_classes):
      raise registry.BadDataError(
          f'{path}, line {number}: expected an image and a label in '
          f'0..{num_classes - 1}. Received: {line[:200]!r}.')
    key = os.path.normpath(key)
    if labels.setdefault(key, int(label)) != int(label):
      raise registry.BadDataError(
          f'{path}, line {number}: {key} has the labels {labels[key]} and '
          f'{label}.')
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
  try:
    lines = files_lib.read_bounded(path, _LARGEST).decode().splitlines()
  except (OSError, UnicodeError) as error:
    raise registry.BadDataError(f'{path} is not readable: {error}') from error
  if not lines:
    raise registry.BadDataError(f'{path} is empty.')
  return lines


def _missing(path):
  return registry.MissingDataError(
      f'clothing1m needs {path}: its authors give the data set on request '
      '(https://github.com/Cysu/noisy_label), it cannot be downloaded.')

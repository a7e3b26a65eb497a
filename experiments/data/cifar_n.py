"""CIFAR-10N and CIFAR-100N: CIFAR with the labels of human annotators.

Wei et al., "Learning with noisy labels revisited: a study using real-world
human annotations", ICLR 2022. The label files lie in `cifar_n` below the data
directory, under their published names.
"""

import dataclasses
import hashlib
import os
import pathlib
import urllib.request

import numpy as np

from experiments.data import examples as examples_lib
from experiments.data import label_files
from experiments.data import tfds_sources

_URL = 'https://github.com/UCSC-REAL/cifar-10-100n/raw/main/data/'


@dataclasses.dataclass(frozen=True)
class _Published:
  """What the authors publish for one data set.

  The `.pt` file is indexed by the number in TFDS's id. The `.npy` file follows
  TFDS's read order, which `order` spells out; the two differ in a key.
  """
  cifar: str
  pt: str
  pt_sha256: str
  pt_keys: dict[str, str]
  npy: str
  npy_keys: dict[str, str]
  order: str


_CIFAR10N_KEYS = {
    'random1': 'random_label1', 'random2': 'random_label2',
    'random3': 'random_label3', 'aggregate': 'aggre_label',
    'worst': 'worse_label'}
_PUBLISHED = {
    'cifar10n': _Published(
        'cifar10', 'CIFAR-10_human.pt',
        '873e69c39cb9b5e97fb6bae2d60bb59b38a5cbc31d2b868f7903dcb2b9dd2310',
        _CIFAR10N_KEYS, 'CIFAR-10_human_ordered.npy', _CIFAR10N_KEYS,
        'image_order_c10.npy'),
    'cifar100n': _Published(
        'cifar100', 'CIFAR-100_human.pt',
        'bd2d80409754d420292d622e15e25248ba21e37d27429efac49c8da723f44394',
        {'noisy': 'noisy_label'}, 'CIFAR-100_human_ordered.npy',
        {'noisy': 'noise_label'}, 'image_order_c100.npy'),
}


def load(name: str, data_dir: str | os.PathLike) -> examples_lib.Source:
  """Returns CIFAR with human labels, from the `.pt` or else the `.npy` file."""
  published = _PUBLISHED[name]
  folder = pathlib.Path(data_dir) / 'cifar_n'
  if not any((folder / file).is_file()
             for file in (published.pt, published.npy)):
    raise examples_lib.missing(name, data_dir, folder / published.pt)
  source = tfds_sources.load(published.cifar, data_dir)
  noisy_labels = read_labels(name, folder, source.train, source.num_classes)
  train = dataclasses.replace(source.train, noisy_labels=noisy_labels)
  return dataclasses.replace(source, name=name, train=train)


def prepare(name: str, data_dir: str | os.PathLike) -> None:
  """Downloads CIFAR and the label file."""
  published = _PUBLISHED[name]
  tfds_sources.prepare(published.cifar, data_dir)
  target = pathlib.Path(data_dir) / 'cifar_n' / published.pt
  if target.exists():
    return
  with urllib.request.urlopen(_URL + published.pt, timeout=60) as response:
    content = response.read()
  digest = hashlib.sha256(content).hexdigest()
  if digest != published.pt_sha256:
    raise ValueError(
        f'{_URL}{published.pt} is not the published file: its SHA-256 is '
        f'{digest}.')
  target.parent.mkdir(parents=True, exist_ok=True)
  # An interrupted write must not look like the file.
  partial = target.with_suffix('.partial')
  partial.write_bytes(content)
  partial.replace(target)


def read_labels(
    name: str, folder: pathlib.Path, train: examples_lib.Examples,
    num_classes: int) -> dict[str, np.ndarray]:
  """Returns the human labels of the training examples, in their order.

  The clean labels of the file must be those of the data set, all of them.
  """
  published = _PUBLISHED[name]
  if (folder / published.pt).is_file():
    path, keys = folder / published.pt, published.pt_keys
    positions = train.ids
  else:
    path, keys = folder / published.npy, published.npy_keys
    positions = _read_positions(folder / published.order, train.ids)
  labels = label_files.read(
      path, ['clean_label', *keys.values()], len(train), num_classes)
  wrong = np.count_nonzero(labels['clean_label'][positions] != train.labels)
  if wrong:
    raise label_files.LabelFileError(
        f'{path} does not fit {published.cifar}: {wrong} of {len(train)} clean '
        'labels disagree with the data set.')
  return {name: labels[key][positions] for name, key in keys.items()}


def _read_positions(path, ids):
  """Returns where in TFDS's read order each example stands."""
  if not path.is_file():
    return np.arange(len(ids))  # The examples are in that order themselves.
  order = np.load(path, allow_pickle=False)
  if not np.array_equal(np.sort(order, axis=None), np.arange(len(ids))):
    raise label_files.LabelFileError(
        f'{path} is refused: it is no permutation of {len(ids)} images.')
  return np.argsort(order)[ids]

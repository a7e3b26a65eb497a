"""CIFAR-10N and CIFAR-100N: CIFAR with the labels of human annotators.

Wei et al., "Learning with noisy labels revisited: a study using real-world
human annotations", ICLR 2022. The label files lie in `cifar_n` below the data
directory, under their published names. A file is a pickle, and a pickle is a
program: it is opened only if it is, bit by bit, the published one.
"""

import dataclasses
import hashlib
import io
import os
import pathlib
import pickle
import urllib.request
import zipfile

import numpy as np

from experiments.data import examples as examples_lib
from experiments.data import registry
from ln_tfp import files

_URL = 'https://github.com/UCSC-REAL/cifar-10-100n/raw/main/data/'


@dataclasses.dataclass(frozen=True)
class _Published:
  """What the authors publish for one data set.

  Attributes:
    cifar: the data set with the labels of CIFAR itself.
    file: a PyTorch archive, indexed by the number in TFDS's id.
    size: of the file in bytes.
    sha256: of the file.
    keys: of the label sets in the file, in the order of the registry.
  """
  cifar: str
  file: str
  size: int
  sha256: str
  keys: tuple[str, ...]


_PUBLISHED = {
    'cifar10n': _Published(
        'cifar10', 'CIFAR-10_human.pt', 2_401_007,
        '873e69c39cb9b5e97fb6bae2d60bb59b38a5cbc31d2b868f7903dcb2b9dd2310',
        ('random_label1', 'random_label2', 'random_label3', 'aggre_label',
         'worse_label')),
    'cifar100n': _Published(
        'cifar100', 'CIFAR-100_human.pt', 1_000_959,
        'bd2d80409754d420292d622e15e25248ba21e37d27429efac49c8da723f44394',
        ('noisy_label',)),
}
_PUBLISHED |= {
    f'{name}_features': dataclasses.replace(
        published, cifar=f'{published.cifar}_features')
    for name, published in _PUBLISHED.items()}


def load(name: str, data_dir: str | os.PathLike) -> examples_lib.Source:
  """Returns CIFAR with human labels."""
  published = _PUBLISHED[name]
  path = _path(published, data_dir)
  if not path.is_file():
    raise registry.missing(name, data_dir, path)
  source = registry.load(published.cifar, data_dir)
  train = dataclasses.replace(
      source.train, label_sets=read_labels(name, path, source.train))
  return dataclasses.replace(source, name=name, train=train)


def prepare(name: str, data_dir: str | os.PathLike) -> None:
  """Downloads CIFAR and the label file."""
  published = _PUBLISHED[name]
  registry.prepare(published.cifar, data_dir)
  target = _path(published, data_dir)
  if target.exists():
    return
  url = _URL + published.file
  with urllib.request.urlopen(url, timeout=60) as response:
    content = _check(url, response.read(published.size + 1), published)
  files.write_atomically(target, content)


def read_labels(
    name: str, path: pathlib.Path,
    train: examples_lib.Examples) -> dict[str, np.ndarray]:
  """Returns the human labels of the training examples, in their order.

  The clean labels of the file must be those of the data set, all of them.
  """
  published = _PUBLISHED[name]
  try:
    with files.open_regular(path) as file:
      content = _check(path, file.read(published.size + 1), published)
  except OSError as error:
    raise registry.BadDataError(f'{path} is not readable: {error}') from error
  with zipfile.ZipFile(io.BytesIO(content)) as archive:
    [member] = [
        member for member in archive.namelist()
        if pathlib.PurePosixPath(member).name == 'data.pkl']
    labels = _Unpickler(io.BytesIO(archive.read(member))).load()
  clean = np.asarray(labels['clean_label'])[train.ids]
  wrong = np.count_nonzero(clean != train.true)
  if wrong:
    raise registry.BadDataError(
        f'{path} does not fit {published.cifar}: {wrong} of {len(train)} clean '
        'labels disagree with the data set.')
  names = registry.traits(name).label_sets
  return {
      name: np.asarray(labels[key])[train.ids].astype(np.int32)
      for name, key in zip(names, published.keys, strict=True)}


def _path(published, data_dir):
  return pathlib.Path(data_dir) / 'cifar_n' / published.file


def _check(where, content, published):
  """Returns the content of a file if it is the published one."""
  digest = hashlib.sha256(content).hexdigest()
  if digest != published.sha256:
    raise registry.BadDataError(
        f'{where} is not the published file of {published.size} bytes with '
        f'SHA-256 {published.sha256}: it has {digest}.')
  return content


class _Unpickler(pickle.Unpickler):
  """Builds NumPy's arrays, which is all that the published files ask for."""

  def find_class(self, module, name):
    if (module, name) in (
        ('numpy', 'ndarray'), ('numpy', 'dtype'), ('_codecs', 'encode'),
        ('numpy.core.multiarray', '_reconstruct')):
      # What NumPy 2 calls it, and 1.26 understands.
      module = module.replace('numpy.core', 'numpy._core')
      return super().find_class(module, name)
    raise registry.BadDataError(
        f'The pickle wants {module}.{name}, which labels do not need.')

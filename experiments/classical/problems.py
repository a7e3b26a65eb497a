"""Small classification problems, split anew for each seed."""

import dataclasses
import os
import pathlib

import numpy as np
from sklearn import datasets
from sklearn import model_selection

from experiments import data
from ln_tfp import noise as noise_lib

_TABLES = {'iris': datasets.load_iris, 'wine': datasets.load_wine,
           'breast_cancer': datasets.load_breast_cancer}
NAMES = (*_TABLES, 'digits', 'mnist_3000', 'cifar10_features', 'mnist_10000')
_TEST_SHARE = .3
_NUM_FEATURES_ROWS = 5_000  # of CIFAR-10
_TEST_ROWS = 2_000  # of MNIST and CIFAR-10: SVMs predict slowly


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
  """Rows to learn from and to judge by.

  Attributes:
    x: `[N, F]`.
    given: labels `[N]`, with noise.
    test_x: `[n, F]`.
    test_y: `[n]`, clean.
    num_classes: K.
    same_units: whether all features are of one kind, as pixels are; otherwise
      classifiers that want it standardise them.
  """
  x: np.ndarray
  given: np.ndarray
  test_x: np.ndarray
  test_y: np.ndarray
  num_classes: int
  same_units: bool

  def first(self, size: int | None) -> 'Problem':
    """The problem with so many training rows, or all."""
    return dataclasses.replace(
        self, x=self.x[:size], given=self.given[:size])


def load(
    name: str, noise: str, seed: int,
    data_dir: str | os.PathLike | None = None,
    features_dir: str | os.PathLike | None = None) -> Problem:
  """Returns a problem whose rows, split and noise depend on the seed.

  Asymmetric noise moves labels as in the paper on digits, MNIST and CIFAR-10,
  to the next class elsewhere.

  Args:
    name: one of `NAMES`.
    noise: as `ln_tfp.noise` reads it.
    seed: of rows and noise.
    data_dir: of MNIST.
    features_dir: with cifar10_train.npz and cifar10_test.npz, each of
      `features` and `labels`.

  Raises:
    data.MissingDataError: if the data are not there.
  """
  random = np.random.default_rng(seed)
  if name in _TABLES:
    x, y = _TABLES[name](return_X_y=True)
    mapping = {k: (k + 1) % (y.max() + 1) for k in range(y.max() + 1)}
    split = _split(x, y, seed)
  elif name == 'digits':
    source = data.load('digits')
    x = np.concatenate([source.train.inputs, source.test.inputs])
    y = np.concatenate([source.train.true, source.test.true])
    mapping = data.traits('digits').mapping
    split = _split(x.reshape([len(x), -1]) / 16., y, seed)
  elif name == 'cifar10_features':
    mapping = data.traits('cifar10').mapping
    split = _some(random, _NUM_FEATURES_ROWS, *_read_features(features_dir))
  else:
    source = data.load('mnist', data_dir)
    mapping = data.traits('mnist').mapping
    parts = []
    for part in (source.train, source.test):
      parts += [part.inputs.reshape([len(part), -1]) / np.float32(255.),
                part.true]
    split = _some(random, int(name.split('_')[1]), *parts)
  x, y, test_x, test_y = split
  num_classes = int(test_y.max()) + 1
  given = noise_lib.corrupt(
      y, noise, seed, num_classes=num_classes, mapping=mapping)
  return Problem(
      x, given, test_x, test_y, num_classes,
      name == 'digits' or name.startswith('mnist'))


def _split(x, y, seed):
  x, test_x, y, test_y = model_selection.train_test_split(
      x, y, test_size=_TEST_SHARE, stratify=y, random_state=seed)
  return x, y, test_x, test_y


def _some(random, size, x, y, test_x, test_y):
  rows = random.choice(len(x), size, replace=False)
  test = random.permutation(len(test_x))[:_TEST_ROWS]
  return x[rows], y[rows], test_x[test], test_y[test]


def _read_features(features_dir):
  result = []
  for part in ('train', 'test'):
    file = pathlib.Path(features_dir or '') / f'cifar10_{part}.npz'
    if not file.is_file():
      raise data.MissingDataError(
          f'The features of CIFAR-10, {file}, are missing: name their '
          'directory in --features_dir.')
    with np.load(file) as arrays:
      result += [arrays['features'].astype(np.float32), arrays['labels']]
  return result

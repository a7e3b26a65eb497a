"""Small classification problems, split anew for each seed."""

import dataclasses
import functools
import os

import numpy as np
from sklearn import datasets
from sklearn import model_selection

from experiments import data
from ln_tfp import noise as noise_lib

_TABLES = {'iris': datasets.load_iris, 'wine': datasets.load_wine,
           'breast_cancer': datasets.load_breast_cancer}
_LARGE = {'mnist_3000': ('mnist', 3_000),
          'cifar10_features': ('cifar10_features', 5_000),
          'mnist_10000': ('mnist', 10_000)}
NAMES = (*_TABLES, 'digits', *_LARGE)
_TEST_SHARE = .3
_TEST_ROWS = 2_000  # of the large ones: SVMs predict slowly


def size(name: str) -> int:
  """The training rows of a large problem; 0 for a table and digits."""
  return _LARGE.get(name, ('', 0))[1]


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
    data_dir: str | os.PathLike | None = None) -> Problem:
  """Returns a problem whose rows, split and noise depend on the seed.

  Asymmetric noise moves labels as in the paper on digits, MNIST and CIFAR-10,
  to the next class elsewhere.

  Args:
    name: one of `NAMES`.
    noise: as `ln_tfp.noise` reads it.
    seed: of rows and noise.
    data_dir: of MNIST and of CIFAR-10's features.

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
  else:
    source_name, size = _LARGE[name]
    source = _load(source_name, data_dir)
    mapping = data.traits(source_name).mapping
    split = _some(random, source.train, size) + _some(
        random, source.test, _TEST_ROWS)
  x, y, test_x, test_y = split
  num_classes = int(test_y.max()) + 1
  given = noise_lib.corrupt(
      y, noise, seed, num_classes=num_classes, mapping=mapping)
  return Problem(
      x, given, test_x, test_y, num_classes, name not in _TABLES)


@functools.lru_cache(maxsize=1)  # noises and seeds share it
def _load(name, data_dir):
  return data.load(name, data_dir)


def _split(x, y, seed):
  x, test_x, y, test_y = model_selection.train_test_split(
      x, y, test_size=_TEST_SHARE, stratify=y, random_state=seed)
  return x, y, test_x, test_y


def _some(random, examples, size):
  rows = random.permutation(len(examples))[:size]
  x = examples.inputs[rows].reshape([len(rows), -1])
  scale = 255. if x.dtype == np.uint8 else 1.
  return x / np.float32(scale), examples.true[rows]

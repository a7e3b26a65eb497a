"""The data of `benchmarks.audit`: a cell is a data set and its noise.

    cifar10n/worst      human labels, features of CIFAR-10's images
    digits/sym:0.2      synthetic noise of `ln_tfp.noise`

A part of a cell is a block of rows (CIFAR, of which there are many) or a seed
of the noise. Rows from 40,000 on of CIFAR's training set are in no part of the
cells below 50,000 rows: settings were chosen by them.
"""

import ast
import dataclasses
import functools
import importlib.util
import pathlib
import warnings

import numpy as np
from sklearn import datasets
from sklearn import decomposition
from sklearn.feature_extraction import text as text_lib

from experiments import data
import ln_tfp
from ln_tfp import random

_BLOCK = 10_000
_ALL_ROWS = 50_000
_MNIST_ROWS = 3_000
_TABLES = ('breast_cancer', 'wine', 'iris')
# The text set: docstrings, and which package they are of.
_PACKAGES = ('numpy', 'scipy', 'sklearn', 'keras', 'pandas', 'matplotlib')
_DOCSTRINGS = 500  # of each package
_COMPONENTS = 300

CELLS = (
    'cifar10n/aggregate', 'cifar10n/random1', 'cifar10n/random2',
    'cifar10n/random3', 'cifar10n/worst', 'cifar100n/noisy', 'cifar10/none',
    'cifar10/sym:0.2', 'cifar10/sym:0.4', 'cifar10/asym:0.2',
    'cifar10/asym:0.4', 'mnist/sym:0.4', 'mnist/asym:0.4', 'digits/none',
    'digits/sym:0.2', 'digits/sym:0.4', 'digits/asym:0.3', 'digits/asym:0.4',
    'digits_n/aggregate', 'digits_n/worst', 'text/sym:0.2', 'text/sym:0.4',
    'text/asym:0.3', 'breast_cancer/sym:0.2', 'wine/sym:0.2', 'iris/sym:0.2')
# The five human label sets, and CIFAR-100N, at full size.
LARGE_CELLS = tuple(
    f'{cell}@{_ALL_ROWS}' for cell in CELLS[:7])


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
  """What a contestant sees, and the truth, which it does not.

  Attributes:
    features: float32 `[N, F]`.
    given: int32 `[N]`.
    true: int32 `[N]`.
    num_classes: K.
  """
  features: np.ndarray
  given: np.ndarray
  true: np.ndarray
  num_classes: int

  @property
  def is_wrong(self) -> np.ndarray:
    return self.given != self.true


def load(cell: str, part: int, data_dir: str | None) -> Part:
  """Returns a part of a cell; `data.MissingDataError` if it is not there.

  Args:
    cell: data set and noise.
    part: number of the block of rows, or seed.
    data_dir: as for `experiments.data.load`, with the features that
      `experiments.embed` leaves there, and `cifar_n`.
  """
  name, _, rows = cell.partition('@')
  name, noise = name.split('/')
  if name.startswith('cifar'):
    block = slice(None) if rows else slice(
        part * _BLOCK, (part + 1) * _BLOCK)
    return _cifar(name, noise, block, part, data_dir)
  if name == 'mnist':
    return _mnist(noise, part, data_dir)
  if name.startswith('digits'):
    return _digits(name, noise, part)
  features, true = _text() if name == 'text' else _table(name)
  return _corrupt(features, true, noise, part)


def _cifar(name, noise, block, seed, data_dir):
  train = _cifar_examples(f'{name}_features', data_dir)
  num_classes = len(np.unique(train.true))
  if name.endswith('n'):
    given = train.label_sets[noise]
  else:
    given = ln_tfp.noise.corrupt(
        train.true, noise, seed, num_classes=num_classes,
        mapping=data.traits(name).mapping)
  return Part(train.inputs[block], given[block], train.true[block],
              num_classes)


@functools.lru_cache(1)
def _cifar_examples(name, data_dir):
  """Returns the training set in its published order."""
  train = data.load(name, data_dir).train
  return train.subset(np.argsort(train.ids))


def _mnist(noise, seed, data_dir):
  train = data.load('mnist', data_dir).train
  rows = random.order('rows', seed, train.ids)[:_MNIST_ROWS]
  features = train.inputs[rows].reshape(len(rows), -1).astype(np.float32)
  return _corrupt(features, train.true[rows], noise, seed,
                  data.traits('mnist').mapping)


def _digits(name, noise, seed):
  source = data.load(name)
  train = source.train
  flat = lambda examples: examples.inputs.reshape(
      len(examples), -1).astype(np.float32)
  if name == 'digits_n':
    return Part(flat(train), train.label_sets[noise], train.true, 10)
  # An audit has no use for a test set.
  features = np.concatenate([flat(train), flat(source.test)])
  true = np.concatenate([train.true, source.test.true])
  return _corrupt(features, true, noise, seed, data.traits(name).mapping)


def _table(name):
  if name not in _TABLES:
    raise ValueError(f'There is no data set {name!r}.')
  bunch = getattr(datasets, f'load_{name}')()
  return bunch.data.astype(np.float32), bunch.target.astype(np.int32)


@functools.lru_cache(1)
def _text():
  """Docstrings as components of TF-IDF, and the numbers of their packages."""
  texts, labels = [], []
  for label, package in enumerate(_PACKAGES):
    found = _docstrings(package)
    chosen = random.order('docstrings', package, np.arange(len(found)))
    texts += [found[i] for i in chosen[:_DOCSTRINGS]]
    labels += [label] * min(len(found), _DOCSTRINGS)
  # The name of a package in its docstrings would be too easy.
  words = text_lib.TfidfVectorizer(
      stop_words=list(_PACKAGES), sublinear_tf=True, min_df=3)
  matrix = words.fit_transform(texts)
  features = decomposition.TruncatedSVD(
      _COMPONENTS, random_state=0).fit_transform(matrix)
  return features.astype(np.float32), np.array(labels, np.int32)


def _docstrings(package):
  """Returns the different docstrings of a package of at least 200 letters."""
  root = pathlib.Path(importlib.util.find_spec(package).origin).parent
  found = set()
  for path in sorted(root.rglob('*.py')):
    if 'tests' in path.parts:
      continue
    with warnings.catch_warnings():
      warnings.simplefilter('ignore')  # of invalid escapes
      tree = ast.parse(path.read_text(encoding='utf-8', errors='replace'))
    for node in ast.walk(tree):
      if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        text = ast.get_docstring(node) or ''
        if len(text) >= 200:
          found.add(text)
  return sorted(found)


def _corrupt(features, true, noise, seed, mapping=None):
  num_classes = int(true.max()) + 1
  if mapping is None:
    mapping = {k: (k + 1) % num_classes for k in range(num_classes)}
  given = ln_tfp.noise.corrupt(
      true, noise, seed, num_classes=num_classes, mapping=mapping)
  return Part(features, given, true, num_classes)

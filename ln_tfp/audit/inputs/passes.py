"""Features that an audit reads several times, and their labels."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import itertools
from typing import Any
import zlib

import keras
import numpy as np
from scipy import sparse

from ln_tfp import backend
from ln_tfp.audit import trust

# Sparse matrices with more columns are reduced to so many components.
_SPARSE_WIDTH = 2_000
_COMPONENTS = 300
_ROWS = 4_096  # of a sparse matrix, or fingerprinted at a time
# The first batch alone would not give away who shuffles a few batches.
COMPARED = 8

SHUFFLED = (
    'came in another order when read again, so that nobody could say which '
    'example a finding is about. Read it without shuffling (shuffle=False; no '
    '`shuffle`, no random augmentation), or pass arrays.')


@dataclasses.dataclass(frozen=True, eq=False)
class Features:
  """N rows of features.

  Attributes:
    x: array `[N, F]`, or a function that returns an iterator of parts of it.
    labels: of any form that `given.read` reads.
    prints: uint64 `[N]`, equal for equal rows.
  """
  x: Any
  labels: Any
  prints: np.ndarray


def open_features(features: Any, labels: Any = None) -> Features:
  """Returns features as arrays or as batches that can be read again.

  Args:
    features: see `audit_features`.
    labels: likewise.
  """
  if is_stream(features):
    return _from_stream(features, labels)
  if labels is None:
    raise ValueError('Argument `labels` must be given unless `features` are '
                     'batches that bring them. Received: labels=None.')
  if not np.ndim(labels):
    raise ValueError('Argument `labels` must have one entry for each row of '
                     f'`features`. Received: labels={labels!r}.')
  if sparse.issparse(features):
    x = _from_sparse(features)
  else:
    x = _from_array(features)
  num = features.shape[0] if sparse.issparse(features) else len(x)
  if num != len(labels):
    raise ValueError(
        'Arguments `features` and `labels` must have the same length. '
        f'Received: {num} rows and {len(labels)} labels.')
  parts = x() if callable(x) else (
      x[i:i + _ROWS] for i in range(0, len(x), _ROWS))
  return Features(x, labels, np.concatenate(
      [np.empty(0, np.uint64), *map(trust.fingerprints, parts)]))


def is_stream(x: Any) -> bool:
  """Whether `x` is batches, not an array."""
  if callable(x) or backend.is_dataset(x) or isinstance(
      x, (keras.utils.PyDataset, Iterator)):
    return True
  # Such as a loader of batches; arrays, frames and tensors have a shape.
  return isinstance(x, Iterable) and not hasattr(x, 'shape') and (
      not isinstance(x, (Sequence, Mapping)))


def repeatable(x: Any, name: str) -> Callable[[], Iterator[Any]]:
  """Returns a function that begins another pass over batches.

  Args:
    x: a function that returns an iterator, a `tf.data.Dataset`, a
      `keras.utils.PyDataset` or anything else to iterate over.
    name: of the argument, for errors.
  """
  if isinstance(x, Iterator):
    raise ValueError(
        f'Argument `{name}` must be readable more than once: pass a function '
        f'that returns an iterator. Received: {type(x).__name__}.')
  if backend.is_dataset(x):
    if x.cardinality() == backend.INFINITE_CARDINALITY:
      raise ValueError(f'Argument `{name}` must end; this dataset is repeated '
                       'for ever.')
    return x.as_numpy_iterator
  if isinstance(x, keras.utils.PyDataset):
    if x.num_batches is None:
      raise ValueError(f'Argument `{name}` must end; this PyDataset has no '
                       'number of batches.')
    return lambda: _epoch(x)
  return lambda: iter(x() if callable(x) else x)


def _epoch(dataset):
  dataset.on_epoch_end()  # where many shuffle: that has to show
  for i in range(dataset.num_batches):
    yield dataset[i]


def check_batch(part: Any, name: str, ndim: int = 1) -> None:
  """Refuses what is no batch, such as a single example.

  Args:
    part: inputs or labels.
    name: of the argument that yields them.
    ndim: how many dimensions they have at least.
  """
  if sparse.issparse(part) or np.ndim(part) < ndim:
    shape = '' if sparse.issparse(part) else f' of shape {np.shape(part)}'
    raise ValueError(
        f'Argument `{name}` must yield batches of several examples, as dense '
        f'arrays. Received: {type(part).__name__}{shape}.')


def checksum(batch: Any) -> int:
  """Tells batches of other rows, or rows in another order, apart.

  It looks at the first and the last row, so that further passes cost little.
  """
  result = 0
  for part in keras.tree.flatten(batch):
    array = np.asarray(part)
    ends = np.concatenate([array[:1], array[-1:]])
    result = zlib.crc32(ends.tobytes() if ends.dtype != object else
                        repr(ends.tolist()).encode(), result)
  return result


class _Passes:
  """Batches of features; every pass is compared with the first one."""

  def __init__(self, begin: Callable[[], Iterator[Any]]):
    self._begin = begin
    self._sums = None

  def __call__(self) -> Iterator[Any]:
    sums = []
    for batch in self._begin():
      sums.append(checksum(batch))
      if self._sums is not None and sums != self._sums[:len(sums)]:
        raise ValueError(f'Argument `features` {SHUFFLED}')
      yield batch[0] if isinstance(batch, (tuple, list)) else batch
    self._sums = sums

  def read(self) -> tuple[np.ndarray, list[Any]]:
    """The first pass: fingerprints, and the labels of each batch."""
    prints, labels, sums = [np.empty(0, np.uint64)], [], []
    for batch in self._begin():
      parts = batch if isinstance(batch, (tuple, list)) else (batch,)
      check_batch(parts[0], 'features', 2)
      sums.append(checksum(batch))
      prints.append(trust.fingerprints(np.asarray(parts[0])))
      labels += [np.asarray(part) for part in parts[1:2]]
    self._sums = sums
    for _ in itertools.islice(self(), COMPARED):
      pass  # tells a shuffled one before the work begins
    return np.concatenate(prints), labels


def _from_stream(features, labels):
  passes = _Passes(repeatable(features, 'features'))
  prints, found = passes.read()
  if labels is None and not found:
    raise ValueError('Argument `labels` must be given unless the batches of '
                     '`features` bring them. Received: labels=None.')
  if labels is None:
    labels = np.concatenate(found)
  if len(labels) != len(prints):
    raise ValueError(
        'Argument `labels` must have one entry for each row of `features`. '
        f'Received: {len(labels)} for {len(prints)} rows.')
  return Features(passes, labels, prints)


def _from_array(features):
  """Returns numbers `[N, F]`."""
  x = np.asarray(features)
  if x.dtype.kind == 'O':  # such as a data frame of several types
    with contextlib.suppress(TypeError, ValueError):
      x = x.astype(np.float64)
  if x.ndim < 2 or x.dtype.kind not in 'iufb':
    raise ValueError(
        'Argument `features` must hold numbers of shape [N, F]. Received: '
        f'shape={x.shape}, dtype={x.dtype}.')
  return x.reshape(len(x), -1) if x.ndim > 2 else x


def _from_sparse(matrix):
  """Returns a wide matrix as components, another one as dense slices."""
  matrix = sparse.csr_array(matrix)
  if matrix.shape[1] <= _SPARSE_WIDTH:
    return lambda: (matrix[i:i + _ROWS].toarray()
                    for i in range(0, matrix.shape[0], _ROWS))
  # Half of what importing this library would add to TensorFlow's time.
  from sklearn import decomposition
  components = min(_COMPONENTS, *(size - 1 for size in matrix.shape))
  return decomposition.TruncatedSVD(
      components, random_state=0).fit_transform(matrix)

"""Rows to pass over as often as is needed: arrays, or streams of batches."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
import dataclasses
from typing import Any

import keras
import numpy as np
from sklearn.utils import validation

from ln_tfp import backend

# Numbers in one chunk of features, 32 MB of float32, and in a sample.
_CHUNK_SIZE = 2**23
_SAMPLE_SIZE = 2**25
_MIN_SAMPLE = 2_000


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
  """Some consecutive rows.

  Attributes:
    start: number of the first one.
    x: `[n, F]`, float32 or float64.
    y: labels, `None` where there are none.
    weight: `[n]`.
    certain: bool `[n]`, labels known to be right.
  """
  start: int
  x: np.ndarray
  y: Any
  weight: np.ndarray
  certain: np.ndarray

  def __len__(self) -> int:
    return len(self.x)

  @property
  def range(self) -> slice:
    return slice(self.start, self.start + len(self))


class Source:
  """Chunks of rows, the same at every pass.

  Args:
    batches: returns an iterator over `x`, `(x, y)` or `(x, y, weight)`.
    y: labels of all rows, where the batches have none.
    sample_weight: of all rows, where the batches have none.
    certain: bool `[N]`, labels known to be right.
  """

  def __init__(self, batches: Callable[[], Iterator[Any]], y: Any = None,
               sample_weight: Any = None, certain: Any = None):
    self._batches = batches
    self._y = y
    self._weight = sample_weight
    self._certain = certain
    self._width = None
    self._first = None

  @property
  def num_features(self) -> int:
    """F, by the first batch."""
    for batch in self._batches():
      return self._read(batch, 0).x.shape[1]
    raise ValueError('Found array with 0 sample(s) while a minimum of 1 is '
                     'required.')

  def __iter__(self) -> Iterator[Rows]:
    start, held, size = 0, [], 0
    for batch in self._batches():
      held.append(self._read(batch, start + size))
      size += len(held[-1])
      if not start and len(held) == 1:
        self._check_order(held[0].x[:8])
      if size * max(held[-1].x.shape[1], 1) >= _CHUNK_SIZE:
        yield _join(held)
        start, held, size = start + size, [], 0
    if held:
      yield _join(held)
      start += size
    for name, values in (('y', self._y), ('sample_weight', self._weight),
                         ('certain', self._certain)):
      if values is not None and len(values) != start:
        raise ValueError(f'Argument `{name}` must have {start} entries, one '
                         f'for each row. Received: {len(values)}.')

  def _check_order(self, first):
    """Raises if a pass begins with other rows than the one before."""
    if self._first is None:
      self._first = first.copy()
    elif first.shape != self._first.shape or not np.allclose(
        first, self._first, rtol=1e-3):
      raise ValueError(
          'Argument `X` must give the same rows in the same order each time it '
          'is read. Received: batches that differ (are they shuffled?).')

  def _read(self, batch, start):
    parts = tuple(batch) if isinstance(batch, (tuple, list)) else (batch,)
    x, y, weight, *_ = parts + (None, None)
    x = to_features(x)
    self._width = self._width or x.shape[1]
    if x.shape[1] != self._width:
      raise ValueError(f'X has {x.shape[1]} features in a batch, but is '
                       f'expecting {self._width} features as input.')
    rows = slice(start, start + len(x))
    if y is None:
      y = None if self._y is None else self._y[rows]
    if weight is None and self._weight is not None:
      weight = self._weight[rows]
    weight = (np.ones(len(x), x.dtype) if weight is None
              else validation._check_sample_weight(
                  weight, x, dtype=x.dtype, ensure_non_negative=True))
    certain = (np.zeros(len(x), bool) if self._certain is None
               else np.asarray(self._certain[rows], bool))
    y = None if y is None else _as_text(np.asarray(y))
    if y is not None:
      validation.check_consistent_length(x, y)
    return Rows(start, x, y, weight, certain)


def from_array(
    x: np.ndarray, y: Any = None, sample_weight: Any = None,
    certain: Any = None) -> Source:
  """A source of the rows of an array, which is read in slices."""
  step = max(1, -(-_CHUNK_SIZE // max(x.shape[1], 1)))
  return Source(
      lambda: (x[i:i + step] for i in range(0, len(x), step)),
      y, sample_weight, certain)


def is_stream(x: Any) -> bool:
  """Whether `x` is batches, not an array."""
  if callable(x) or backend.is_dataset(x) or isinstance(
      x, (keras.utils.PyDataset, Iterator)):
    return True
  return isinstance(x, Iterable) and not any(  # a loader, such as PyTorch's
      hasattr(x, name) for name in ('__array__', '__getitem__', 'shape'))


def from_stream(
    x: Any, y: Any = None, sample_weight: Any = None,
    certain: Any = None) -> Source:
  """A source of batches.

  Args:
    x: a function that returns an iterator, a `tf.data.Dataset`, a
      `keras.utils.PyDataset` or another loader that can be read again, the
      same rows in the same order at every pass.
    y: labels of all rows, where the batches have none.
    sample_weight: likewise.
    certain: bool `[N]`.
  """
  return Source(batches_of(x), y, sample_weight, certain)


def batches_of(x: Any) -> Callable[[], Iterator[Any]]:
  """Returns what begins a pass over a stream, see `from_stream`."""
  if isinstance(x, Iterator):
    raise ValueError(
        'Argument `X` must be readable more than once: pass a function that '
        f'returns an iterator. Received: {type(x).__name__}.')
  if backend.is_dataset(x):
    if x.cardinality() == backend.INFINITE_CARDINALITY:
      raise ValueError('Argument `X` must end. Received: an endless dataset.')
    return x.as_numpy_iterator
  if isinstance(x, keras.utils.PyDataset):
    return lambda: (x[i] for i in range(len(x)))
  return (lambda: iter(x())) if callable(x) else lambda: iter(x)


def to_features(x: Any) -> np.ndarray:
  """Checks a part of the features and returns it as float32 or float64."""
  x = np.asarray(x)
  if x.ndim != 2 or x.dtype.kind not in 'fiub':
    raise ValueError('Argument `X` must be numbers of shape [N, F]. Received: '
                     f'shape {x.shape}, dtype {x.dtype}.')
  validation.assert_all_finite(x, input_name='X')
  x = x.astype(np.result_type(x.dtype, np.float32), copy=False)
  if x.size and max(-x.min(), x.max()) > largest(x.dtype):
    raise ValueError(
        f'Argument `X` must not have numbers beyond {largest(x.dtype):.3g}, '
        f'whose squares are too large for {x.dtype}. Received: from '
        f'{x.min():g} to {x.max():g}.')
  return x


def largest(dtype: Any) -> float:
  """The largest feature: distances, which add squares, must not overflow."""
  return float(np.sqrt(np.finfo(dtype).max)) / 1e4


def _as_text(y):
  """Strings instead of the bytes that `tf.data` makes of them."""
  if y.dtype.kind == 'O' and len(y) and all(
      isinstance(label, bytes) for label in y.flat):
    y = y.astype(bytes)
  return np.char.decode(y) if y.dtype.kind == 'S' else y


def _join(held: Iterable[Rows]) -> Rows:
  if len(held) == 1:
    return held[0]
  y = None if held[0].y is None else np.concatenate([r.y for r in held])
  return Rows(
      held[0].start, np.concatenate([r.x for r in held]), y,
      np.concatenate([r.weight for r in held]),
      np.concatenate([r.certain for r in held]))


class Reservoir:
  """A uniform random sample of the rows that pass by, in random order.

  Every row has a random key, and those of the smallest keys stay. The keys are
  drawn row after row, so the sample does not depend on the chunks.

  Attributes:
    length: how many rows passed by.
    num_rows: how many of them of positive weight.
  """

  def __init__(self, random: np.random.Generator):
    self.num_rows = 0
    self.length = 0
    self._random = random
    self._keys = np.empty(0)
    self._parts = None

  def add(self, x: np.ndarray, labels: np.ndarray, weight: np.ndarray,
          certain: np.ndarray) -> None:
    """Passes rows by: `[n, F]`, encoded labels `[n, ...]`, `[n]`, `[n]`."""
    numbers = np.arange(self.length, self.length + len(x))
    self.length += len(x)
    parts = x, labels, weight, certain, numbers
    if self._parts is None:
      size = max(_MIN_SAMPLE, _SAMPLE_SIZE // max(x.shape[1], 1))
      self._parts = _allocate(size, parts)
    capacity, held = len(self._parts[0]), len(self._keys)
    keys = self._random.random(len(x))
    chosen = np.flatnonzero(weight > 0)
    self.num_rows += len(chosen)
    every = np.append(self._keys, keys[chosen])
    stay = np.ones(len(every), bool)
    if len(every) > capacity:
      stay[np.argpartition(every, capacity)[capacity:]] = False
    comes = held + np.flatnonzero(stay[held:])
    goes = np.append(np.flatnonzero(~stay[:held]), np.arange(held, capacity))
    places = goes[:len(comes)]
    for part, new in zip(self._parts, parts):
      part[places] = new[chosen[comes - held]]
    self._keys = np.append(
        self._keys, np.empty(max(0, min(capacity, len(every)) - held)))
    self._keys[places] = every[comes]

  def relabel(self, change: Callable[[np.ndarray], np.ndarray]) -> None:
    """Changes the labels of the sample, `[n, ...]`."""
    if self._parts is not None:
      labels = self._parts[1][:len(self._keys)]
      labels[...] = change(labels)

  def __getstate__(self) -> dict[str, Any]:
    """Leaves the memory out that no row is in: a pickle would store it."""
    state = vars(self).copy()
    if self._parts is not None:
      held = len(self._keys)
      state['_parts'] = [part[:held] for part in self._parts]
      state['_capacity'] = len(self._parts[0])
    return state

  def __setstate__(self, state: dict[str, Any]) -> None:
    capacity = state.pop('_capacity', None)
    vars(self).update(state)
    if self._parts is not None:
      held, self._parts = self._parts, _allocate(capacity, self._parts)
      for part, rows in zip(self._parts, held):
        part[:len(rows)] = rows

  def rows(self, limit: int | None = None) -> tuple[np.ndarray, ...]:
    """Returns x, labels, weight, certain and numbers of the sample.

    Args:
      limit: how many rows at most.
    """
    order = np.argsort(self._keys)[:limit]
    return tuple(part[order] for part in self._parts)


def _allocate(size, parts):
  """Memory for so many rows; what is never written to costs nothing."""
  return [np.empty([size, *part.shape[1:]], part.dtype) for part in parts]

"""Labels as votes: one class, shares of classes, or several annotators.

One form serves all three. Annotator m says of row i the shares `V_m[i]`, a row
of a sparse matrix `[N, K]`: a single one for an ordinary label, nothing where
the label is missing, the shares themselves for a soft label. Then

    targets              mean of the V_m, the Y of the regression,
    log evidence         sum_m V_m log(T_m)^T, log P(votes | true class),
    expected confusions  (V_m^T q)^T, with q the posterior of the true class.
"""

import dataclasses
import functools
from typing import Any
import warnings

import numpy as np
from scipy import sparse
from scipy import special
from sklearn.utils import column_or_1d
from sklearn.utils import multiclass
from sklearn.utils import validation

MISSING = -1


@dataclasses.dataclass(frozen=True, eq=False)
class Votes:
  """What is said about the classes of n rows.

  Attributes:
    labels: integers `[n, M]`, the class each of M annotators names, -1 where
      one names none; or shares `[n, K]`, floating, of one annotator.
    num_classes: K.
    certain: bool `[n]`, labels that are known to be right.
  """
  labels: np.ndarray
  num_classes: int
  certain: np.ndarray

  @property
  def num_annotators(self) -> int:
    return 1 if self._soft else self.labels.shape[1]

  def __len__(self) -> int:
    return len(self.labels)

  def __getitem__(self, rows: Any) -> 'Votes':
    return Votes(self.labels[rows], self.num_classes, self.certain[rows])

  @property
  def _soft(self):
    return np.issubdtype(self.labels.dtype, np.floating)

  @functools.cached_property
  def matrices(self) -> list[sparse.csr_array]:
    """The V_m, `[n, K]` each."""
    shape = len(self), self.num_classes
    if self._soft:
      return [sparse.csr_array(self.labels)]
    result = []
    for column in self.labels.T:
      present = column != MISSING
      pointers = np.concatenate([[0], np.cumsum(present)])
      result.append(sparse.csr_array(
          (np.ones(pointers[-1], np.float32), column[present], pointers),
          shape=shape))
    return result

  @functools.cached_property
  def _beside(self) -> sparse.csr_array:
    """All V_m beside each other, `[n, M K]`: hundreds may vote."""
    return sparse.hstack(self.matrices, format='csr')

  @functools.cached_property
  def plain(self) -> np.ndarray | None:
    """The labels `[n]`, if each row has one: the usual case, which is fast."""
    if self._soft or self.labels.shape[1] > 1 or not self.is_labelled.all():
      return None
    return self.labels[:, 0]

  @functools.cached_property
  def is_labelled(self) -> np.ndarray:
    """Whether anybody says anything, bool `[n]`."""
    if self._soft:
      return self.labels.any(axis=1)
    return (self.labels != MISSING).any(axis=1)

  def as_certain(self) -> 'Votes':
    """The same votes, all known to be right."""
    return dataclasses.replace(self, certain=np.ones(len(self), bool))

  def targets(self, dtype: Any = np.float64) -> np.ndarray:
    """The mean vote, `[n, K]`; zeros where there is none."""
    total = functools.reduce(lambda a, b: a + b, self.matrices)
    counts = np.maximum(total.sum(axis=1), 1e-30)
    return (total.toarray() / counts[:, np.newaxis]).astype(dtype)

  def log_evidence(self, log_transition: np.ndarray) -> np.ndarray:
    """log P(votes | true class) `[n, K]`, for `[M, K, K]` (m, true, given)."""
    stacked = np.swapaxes(log_transition, 1, 2).reshape(-1, self.num_classes)
    return self._beside @ stacked

  def counts(self, posterior: np.ndarray) -> np.ndarray:
    """Expected numbers of (true, given) `[M, K, K]`, certain rows left out.

    Args:
      posterior: of the true class, times the weights of the rows, `[n, K]`.
    """
    if self.certain.any():
      posterior = np.where(self.certain[:, np.newaxis], 0., posterior)
    if self.plain is not None:
      return np.stack([np.bincount(self.plain, column, self.num_classes)
                       for column in posterior.T])[np.newaxis]
    counts = (self._beside.T @ posterior).astype(np.float64)
    shape = self.num_annotators, self.num_classes, self.num_classes
    return np.swapaxes(counts.reshape(shape), 1, 2)

  def constant_log_likelihood(self, weight: np.ndarray) -> float:
    """The largest, if each annotator names classes by constant shares.

    Args:
      weight: of the rows, `[n]`.
    """
    sums = np.stack([weight @ votes for votes in self.matrices])
    shares = sums / np.maximum(sums.sum(axis=1, keepdims=True), 1e-30)
    return float(np.sum(special.xlogy(sums, shares)))

  def agreement(self, posterior: np.ndarray) -> np.ndarray:
    """The probability that each vote is right, `[n, M]`; NaN where missing."""
    columns = []
    for votes in self.matrices:
      given = votes.sum(axis=1)
      right = votes.multiply(posterior).sum(axis=1)
      columns.append(np.where(given > 0, right / np.maximum(given, 1e-30),
                              np.nan))
    return np.stack(columns, axis=1)


class Reader:
  """Reads labels of any kind, part by part, into `Votes`.

  Until `finish` classes are numbered as they appear, afterwards in their order.

  Attributes:
    classes: the labels of the classes seen, by number.
  """

  def __init__(self, classes: Any = None):
    self._dims = None
    self._finished = classes is not None
    self.classes = None if classes is None else np.unique(classes)

  def read(self, y: Any, certain: np.ndarray) -> Votes:
    """Returns the votes of some rows.

    Args:
      y: `[n]` labels of any type, `[n, M]` integers of M annotators with -1
        for missing, or `[n, K]` floating shares.
      certain: bool `[n]`.
    """
    y = _to_array(y)
    dims = (y.dtype.kind == 'f', y.shape[1]) if y.ndim == 2 else ()
    if self._dims not in (None, dims):
      raise ValueError('Argument `y` must have the same form in all batches. '
                       f'Received: y of shape {y.shape}.')
    if y.ndim == 2 and y.dtype.kind == 'f':
      if self.classes is None:
        self.classes = np.arange(y.shape[1])
      if len(self.classes) != y.shape[1]:
        raise ValueError(
            'Argument `y` of floats [N, K] must have a column for each of the '
            f'{len(self.classes)} classes. Received: y of shape {y.shape}.')
      votes = Votes(_check_shares(y), y.shape[1], certain)
    else:
      columns = y if y.ndim == 2 else y[:, np.newaxis]
      missing = ((columns == MISSING) if y.ndim == 2
                 else np.zeros(columns.shape, bool))
      labels = np.full(columns.shape, MISSING, np.int32)
      labels[~missing] = self._number(columns[~missing])
      votes = Votes(labels, len(self.classes), certain)
    self._dims = dims
    return votes

  def _number(self, labels):
    present, inverse = np.unique(labels, return_inverse=True)
    if self.classes is None:
      self.classes = present
    new = np.setdiff1d(present, self.classes)
    if len(new) and self._finished:
      raise ValueError(
          f'Argument `y` must have labels of the classes {self.classes}. '
          f'Received: {new}.')
    self.classes = np.concatenate([self.classes, new])
    order = np.argsort(self.classes, kind='stable')
    numbers = order[np.searchsorted(self.classes, present, sorter=order)]
    return numbers[inverse]

  def finish(self) -> np.ndarray:
    """Puts the classes in order; returns the former numbers in that order."""
    order = np.argsort(self.classes, kind='stable')
    self.classes = self.classes[order]
    self._finished = True
    return order


def renumber(labels: np.ndarray, order: np.ndarray) -> np.ndarray:
  """Returns labels read before `Reader.finish` as if read after it."""
  if np.issubdtype(labels.dtype, np.floating):
    return labels
  return np.append(np.argsort(order), MISSING)[labels]  # [-1] stays -1


def _to_array(y):
  if y is None:
    raise ValueError('Argument `y` must be labels, or the batches of `X` must '
                     'have them. Received: y=None.')
  y = np.asarray(y)
  if y.dtype.kind == 'f':
    validation.assert_all_finite(y, input_name='y')
  if y.dtype.kind == 'O' and any(label is None for label in y.flat):
    raise ValueError('Argument `y` must have a label for each row. Received: '
                     'None among them.')
  if y.ndim != 2 or y.shape[1] == 1:
    y = column_or_1d(y, warn=True)
    with warnings.catch_warnings():
      # Many classes for so few rows: a part of them says nothing of the rest.
      warnings.filterwarnings('ignore', 'The number of unique classes')
      multiclass.check_classification_targets(y)
    return y
  if y.dtype.kind not in 'fiu':
    raise ValueError(
        'Argument `y` must be labels [N], integers [N, M] of M annotators or '
        'floating shares [N, K]. Received: y of shape '
        f'{y.shape} and dtype {y.dtype}.')
  if y.dtype.kind == 'i' and np.any(y < MISSING):
    raise ValueError(
        'Argument `y` of integers [N, M] must have classes from 0 on, or -1 '
        f'where a label is missing. Received: {y.min()}.')
  if y.dtype.kind != 'f' and len(y) and np.all((y == 0) | (y == 1)) and np.all(
      y.sum(axis=1) == 1):
    raise ValueError(
        'Argument `y` of integers [N, M] means labels of M annotators, but all '
        'rows are one-hot. Pass one-hot labels as floats, or their argmax.')
  return y


def _check_shares(y):
  sums = y.sum(axis=1)
  if np.any(y < 0) or np.any(
      (np.abs(sums - 1.) > 1e-3) & (sums != 0.)):
    raise ValueError(
        'Argument `y` of floats [N, K] must have rows that are not negative '
        'and sum to one, or are all zero (no label).')
  return y

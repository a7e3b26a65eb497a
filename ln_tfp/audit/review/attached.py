"""What a user lays beside a report: examples, features, rows of a table."""

from typing import Any

import numpy as np
from scipy import sparse


def open_attached(values: Any, name: str, num: int) -> Any:
  """Returns something that can be indexed by a position, or None.

  Args:
    values: array, data frame, sparse matrix, sequence or None.
    name: of the argument: `inputs`, `features` or `rows`.
    num: how many entries there must be.
  """
  if values is None:
    return None
  if hasattr(values, 'iloc'):
    values = values.to_dict('records') if name == 'rows' else np.asarray(values)
  elif sparse.issparse(values):
    values = Sparse(values)
  elif name == 'features' and isinstance(values, (list, tuple)):
    values = np.asarray(values)
  if not hasattr(values, '__len__') or not hasattr(values, '__getitem__'):
    raise ValueError(f'Argument `{name}` must be an array or a sequence. '
                     f'Received: {type(values).__name__}.')
  if len(values) != num:
    raise ValueError(
        f'Argument `{name}` must have {num} entries, one for each label of the '
        'report; examples without a label are not in it, and its `ids` say '
        f'which ones are. Received: {len(values)}.')
  return values


class Sparse:
  """A sparse matrix `[N, F]` whose rows are dense when they are asked for."""

  def __init__(self, matrix: Any):
    self._matrix = sparse.csr_array(matrix)

  def __len__(self):
    return self._matrix.shape[0]

  def __getitem__(self, i: Any) -> np.ndarray:
    rows = self._matrix[np.atleast_1d(i)].toarray()
    return rows if np.ndim(i) else rows[0]

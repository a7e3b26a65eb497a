"""Labels of any kind as classes.

Numbers count as classes by their value, names by their text. Texts are numbers
only if all of them are whole numbers as one writes them: `1`, `01` and `1_0`
are three names.
"""

import re
from typing import Any

import numpy as np

from ln_tfp.audit.files import dataset

_WHOLE = re.compile(r'0|-?[1-9][0-9]{0,17}')
# Matrices of K x K numbers are held; beyond this they alone take gigabytes.
_MAX_CLASSES = 10_000


def encode(
    values: Any, class_names: tuple[str, ...] | None = None
) -> tuple[np.ndarray, tuple[str, ...]]:
  """Returns labels as int32 `[N]`, and the names of the classes.

  Args:
    values: names or whole numbers `[N]`. With `class_names` numbers count the
      classes from 0, unless the classes are called by numbers themselves.
    class_names: the classes, or None for those that occur.
  """
  values = np.asarray(values)
  if values.ndim == 2 and values.shape[1] == 1:
    values = values[:, 0]
  if values.ndim != 1:
    raise dataset.InputError(
        'Labels must be a single column; there is an array of shape '
        f'{values.shape}.')
  numbers = _whole_numbers(values)
  texts = [str(value).strip() for value in (
      values.tolist() if numbers is None else numbers)]
  for i, text in enumerate(texts):
    if not text:
      raise dataset.InputError(f'Label {i} is empty.')
  if class_names is None:
    class_names = tuple(
        sorted(set(texts)) if numbers is None else
        map(str, sorted(set(numbers))))
  elif numbers is not None and not set(texts) & set(class_names):
    texts = [class_names[n] if 0 <= n < len(class_names) else str(n)
             for n in numbers]
  return _to_codes(texts, class_names), class_names


def _to_codes(texts, class_names):
  positions = {name: i for i, name in enumerate(class_names)}
  if len(positions) < len(class_names):
    raise dataset.InputError('The names of the classes must be different.')
  for i, text in enumerate(texts):
    if text not in positions:
      raise dataset.InputError(f'Label {i} is {text!r}, which is no class.')
  codes = np.array([positions[text] for text in texts], np.int32)
  num_used = len(np.unique(codes))
  if num_used < 2:
    raise dataset.InputError(
        'All labels are the same; an audit needs at least two classes.'
        if num_used else 'There are no labels.')
  if len(class_names) > _MAX_CLASSES:
    size = 3 * 8 * len(class_names)**2 / 2**30
    raise dataset.InputError(
        f'There are {len(class_names):,} classes, whose matrices alone need '
        f'{size:.1f} GB; at most {_MAX_CLASSES:,} can be audited.')
  if len(texts) >= 20 and num_used > len(texts) / 2:
    raise dataset.InputError(
        f'There are {num_used:,} different labels for {len(texts):,} examples: '
        'these are no classes.')
  return codes


def _whole_numbers(values):
  """Returns the labels as Python integers, or None if they are names."""
  if values.dtype.kind in 'iub':
    numbers = values.astype(object) + 0
  elif values.dtype.kind == 'f':
    values = values.astype(np.float64)
    wrong = ~(np.isfinite(values) & (values == np.floor(values)) &
              (np.abs(values) < 2**53))
    if wrong.any():
      i = int(np.argmax(wrong))
      raise dataset.InputError(f'Label {i} is {values[i]}, which is no class.')
    numbers = values.astype(np.int64)
  elif values.dtype.kind in 'UO':
    return _texts_as_numbers(values.tolist())
  else:
    raise dataset.InputError(
        f'Labels must be names or whole numbers, not {values.dtype}.')
  numbers = [int(number) for number in numbers]
  for i, number in enumerate(numbers):
    if not 0 <= number < 2**63:
      raise dataset.InputError(f'Label {i} is {number}, which is no class.')
  return numbers


def _texts_as_numbers(values):
  for i, value in enumerate(values):
    if not isinstance(value, (str, int)):
      raise dataset.InputError(
          f'Label {i} is {value!r}, which is no name of a class.')
  texts = [str(value).strip() for value in values]
  if all(map(_WHOLE.fullmatch, texts)):
    return list(map(int, texts))
  return None

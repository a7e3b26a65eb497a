"""Checks of arguments, each with a message that names the argument.

They return the value as Python's own number, so that NumPy's can be given
everywhere and configurations can be written as JSON.
"""

from collections.abc import Sequence
import math
import numbers
from typing import Any


def whole(name: str, value: Any, minimum: int | None = None) -> int:
  """Returns a whole number, at least `minimum`, as an integer."""
  if (not _is_number(value) or not math.isfinite(value) or int(value) != value
      or minimum is not None and value < minimum):
    bound = '' if minimum is None else f' of at least {minimum}'
    raise ValueError(f'Argument `{name}` must be a whole number{bound}. '
                     f'{_received(name, value)}')
  return int(value)


def positive(name: str, value: Any) -> float:
  """Returns a number that is positive and finite."""
  if not _is_number(value) or not 0 < value < math.inf:
    raise ValueError(f'Argument `{name}` must be positive and finite. '
                     f'{_received(name, value)}')
  return float(value)


def not_negative(name: str, value: Any) -> float:
  """Returns a number that is not negative, and finite."""
  if not _is_number(value) or not 0 <= value < math.inf:
    raise ValueError(f'Argument `{name}` must be finite and not negative. '
                     f'{_received(name, value)}')
  return float(value)


def between(name: str, value: Any, low: float, high: float,
            open_below: bool = False) -> float:
  """Returns a number in [low, high], or in (low, high]."""
  if not _is_number(value) or not (
      low < value <= high if open_below else low <= value <= high):
    bracket = '(' if open_below else '['
    raise ValueError(f'Argument `{name}` must be in {bracket}{low:g}, {high:g}]'
                     f'. {_received(name, value)}')
  return float(value)


def one_of(name: str, value: Any, known: Sequence[str]) -> str:
  """Returns a string that is one of those known."""
  if value not in known:
    raise ValueError(f'Argument `{name}` must be one of '
                     f'{", ".join(map(repr, known))}. '
                     f'{_received(name, value)}')
  return value


def _is_number(value):
  return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _received(name, value):
  kind = '' if _is_number(value) else f', a {type(value).__name__}'
  return f'Received: {name}={value!r}{kind}.'

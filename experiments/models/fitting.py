"""Whether a backbone fits its input, told without building it.

Building needs TensorFlow and its devices; the program that plans a sweep should
find out before any worker starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from etils import epy

from experiments.models import network

with epy.lazy_imports():  # flags are parsed before TensorFlow is imported
  from ln_tfp import checks

_WIDEST = 10**6  # units; beyond, a layer alone takes gigabytes


def check(name: str, input_shape: tuple[int, ...],
          given: Mapping[str, Any]) -> None:
  """Raises a `ValueError` where `build` could not but fail.

  Args:
    name: of the backbone.
    input_shape: of one input.
    given: arguments of the backbone.
  """
  arguments = {**network.arguments(name, given), **given}
  if 'widths' in arguments:
    check_widths(arguments['widths'])
  if 'depth' in arguments:
    check_depth(arguments['depth'])
    checks.whole('width', arguments['width'], 1)
  least = {'lenet5': 4, 'wide_resnet': 1, 'resnet50': 32}.get(name)
  if least is not None and (
      len(input_shape) != 3 or min(input_shape[:2]) < least):
    raise ValueError(
        f'{name} needs images of at least {least} x {least} pixels. Received: '
        f'inputs of shape {tuple(input_shape)}.')


def check_widths(widths: Sequence[int]) -> None:
  """Refuses what is no list of widths of layers."""
  if not isinstance(widths, (list, tuple)) or not widths:
    raise ValueError('Argument `widths` must be a list of at least one '
                     f'positive integer. Received: widths={widths!r}.')
  for width in widths:
    checks.whole('widths', width, 1)
    if width > _WIDEST:
      raise ValueError(f'Argument `widths` must be at most {_WIDEST:,}. '
                       f'Received: widths={widths!r}.')


def check_depth(depth: int) -> None:
  """Refuses depths that a wide residual network cannot have."""
  if checks.whole('depth', depth) < 10 or depth % 6 != 4:
    raise ValueError('Argument `depth` must be 6n + 4 with n >= 1. '
                     f'Received: depth={depth}.')

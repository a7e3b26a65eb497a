"""Labelled examples, in all the forms that `keras.Model.fit` takes them in."""

from collections.abc import Callable
from collections.abc import Iterator
import dataclasses
import itertools
from typing import Any

import keras
import numpy as np

from ln_tfp.audit.inputs import passes

_LOOKS = 3  # at the first batches, to see whether they stay the same


@dataclasses.dataclass(frozen=True)
class Output:
  """One of a model's outputs, or its only one.

  Attributes:
    index: its number; None for the only one.
    name: its name.
  """
  index: int | None = None
  name: str | None = None

  def of(self, values: Any) -> Any:
    """Returns what belongs to this output, of all outputs or all labels."""
    if self.index is None:
      return values
    if isinstance(values, dict):
      return values[self.name]
    return values[self.index] if isinstance(values, (list, tuple)) else values


ONLY = Output()


@dataclasses.dataclass(frozen=True, eq=False)
class Examples:
  """Batches of labelled examples.

  Attributes:
    begin: starts a pass over batches `(inputs, labels, weight)`; the weight may
      be None.
    can_repeat: whether there can be more than one pass.
    index: names of the examples, or None.
  """
  begin: Callable[[], Iterator[tuple[Any, np.ndarray, np.ndarray | None]]]
  can_repeat: bool
  index: Any = None

  def check_order(self) -> None:
    """Refuses examples that come in another order when read again."""
    if not self.can_repeat:
      return
    looks = {
        tuple(passes.checksum(batch[:2])
              for batch in itertools.islice(self.begin(), passes.COMPARED))
        for _ in range(_LOOKS)}
    if len(looks) > 1:
      raise ValueError(f'Argument `x` {passes.SHUFFLED}')

  def pick(self, positions: np.ndarray) -> dict[int, np.ndarray]:
    """Returns the inputs at some positions, where there is one input."""
    wanted, start, found = set(map(int, positions)), 0, {}
    if not self.can_repeat or not wanted:
      return found
    for inputs, labels, _ in self.begin():
      if keras.tree.is_nested(inputs):
        return {}
      for i in wanted.intersection(range(start, start + len(labels))):
        found[i] = np.array(inputs[i - start])
      start += len(labels)
    return found


def open_examples(
    x: Any, y: Any = None, batch_size: int = 256,
    output: Output = ONLY) -> Examples:
  """Returns examples in batches, after a check of the arguments.

  Args:
    x: see `audit_labels`.
    y: likewise.
    batch_size: of arrays.
    output: whose labels to take.
  """
  if passes.is_stream(x):
    if y is not None:
      raise ValueError('Argument `y` must be None if `x` is a dataset, which '
                       'brings its labels.')
    once = isinstance(x, Iterator)
    begin = (lambda: x) if once else passes.repeatable(x, 'x')
    return Examples(
        lambda: (_split(batch, output) for batch in begin()), not once)
  if y is None:
    raise ValueError('Argument `y` must be given unless `x` is a dataset. '
                     'Received: y=None.')
  if batch_size < 1:
    raise ValueError('Argument `batch_size` must be positive. '
                     f'Received: batch_size={batch_size}.')
  y = output.of(y)
  index = next((part.index for part in (x, y) if hasattr(part, 'iloc')), None)
  x = keras.tree.map_structure(np.asarray, x) if _is_structure(
      x) else np.asarray(x)
  y = np.asarray(y)
  lengths = {len(array) for array in keras.tree.flatten(x)}
  if y.ndim == 0 or lengths != {len(y)}:
    raise ValueError(
        'Arguments `x` and `y` must have the same length. Received: '
        f'{", ".join(map(str, sorted(lengths)))} examples and '
        f'{len(y) if y.ndim else "a single"} labels.')
  return Examples(
      lambda: ((keras.tree.map_structure(
          lambda a, s=start: a[s:s + batch_size], x),
                y[start:start + batch_size], None)
               for start in range(0, len(y), batch_size)), True, index)


def _is_structure(x):
  """Whether `x` is several inputs, rather than a list of numbers."""
  if isinstance(x, dict):
    return True
  return isinstance(x, (list, tuple)) and all(
      (isinstance(part, np.ndarray) or keras.ops.is_tensor(part))
      and part.ndim > 0 for part in x) and (isinstance(x, tuple) or len(x) > 0)


def _split(batch, output):
  """Returns inputs, labels and weight of a batch of a dataset."""
  if not isinstance(batch, (tuple, list)) or len(batch) not in (2, 3):
    raise ValueError(
        'Argument `x` must be a dataset of pairs (examples, labels), or of '
        f'(examples, labels, weights). Received: a batch {type(batch)}'
        f'{f" of {len(batch)}" if isinstance(batch, (tuple, list)) else ""}.')
  inputs, labels, *weight = batch
  labels = output.of(labels)
  if isinstance(labels, (dict, list, tuple)):
    raise ValueError('Argument `output` must name one of the outputs: there '
                     'are labels for several.')
  for part in (*keras.tree.flatten(inputs), labels):
    passes.check_batch(part, 'x')
  weight = np.asarray(output.of(weight[0])) if weight else None
  return inputs, np.asarray(labels), weight

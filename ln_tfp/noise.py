"""Label noise as a pure function of (clean labels, example ids, seed).

    noisy = ln_tfp.noise.corrupt(labels, 'sym:0.4', seed=0)

Symmetric noise redraws a label from all classes, its own included; asymmetric
noise moves it along a mapping, once, so that flips never cascade. The random
number of an example is a hash of the seed and its id: reordering, subsetting,
batching or sharding the examples does not change anybody's label.
"""

from collections.abc import Mapping
import dataclasses
import re

import numpy as np

from ln_tfp import checks
from ln_tfp import random

_KINDS = ('none', 'sym', 'asym', 'matrix', 'human')
# As people write it: Python's float also takes 0_1 and the digits of Thai.
_RATE = re.compile(r'[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?', re.I)
_FORMS = "'none', 'sym:RATE', 'asym:RATE', 'matrix' or 'human:NAME'"


@dataclasses.dataclass(frozen=True)
class Noise:
  """A kind of noise, as parsed from `str(noise)`.

  A rate of zero is no noise: `Noise('sym', 0.) == Noise('none')`.

  Attributes:
    kind: 'none', 'sym', 'asym', 'matrix' or 'human'.
    rate: the probability that a label is redrawn (sym) or moved (asym).
    name: the name of the set of human labels.
  """
  kind: str
  rate: float | None = None
  name: str | None = None

  def __post_init__(self):
    checks.one_of('kind', self.kind, _KINDS)
    if (self.rate is not None) != (self.kind in ('sym', 'asym')):
      raise ValueError(
          "Argument `rate` must be given for 'sym' and 'asym', and only there. "
          f'Received: kind={self.kind!r}, rate={self.rate}.')
    if bool(self.name) != (self.kind == 'human'):
      raise ValueError(
          "Argument `name` must be given for 'human', and only there. "
          f'Received: kind={self.kind!r}, name={self.name!r}.')
    if self.rate is not None:
      checks.between('rate', self.rate, 0, 1)
    if self.rate == 0:
      for name, value in (('kind', 'none'), ('rate', None)):
        object.__setattr__(self, name, value)  # the dataclass is frozen

  def __str__(self):
    if self.kind in ('sym', 'asym'):
      return f'{self.kind}:{float(self.rate)!r}'
    return f'human:{self.name}' if self.kind == 'human' else self.kind


def parse_noise(text: str) -> Noise:
  """Returns the noise that a string such as 'sym:0.4' describes."""
  kind, _, value = text.partition(':')
  try:
    if kind in ('none', 'matrix') and text == kind:
      return Noise(kind)
    if kind in ('sym', 'asym') and _RATE.fullmatch(value):
      return Noise(kind, rate=float(value))
    if kind == 'human' and value:
      return Noise(kind, name=value)
  except ValueError as error:
    raise ValueError(
        f'Argument `noise` must be {_FORMS} with RATE in [0, 1]. '
        f'Received: noise={text!r}.') from error
  raise ValueError(
      f'Argument `noise` must be {_FORMS}. Received: noise={text!r}.')


def _to_noise(noise):
  if isinstance(noise, str):
    return parse_noise(noise)
  if not isinstance(noise, Noise):
    raise ValueError(f'Argument `noise` must be {_FORMS}, or a `Noise`. '
                     f'Received: noise={noise!r}.')
  return noise


def corrupt(
    labels,
    noise: str | Noise,
    seed: int = 0,
    ids=None,
    *,
    num_classes: int | None = None,
    mapping=None,
    mode: str = 'coin',
    human_labels: Mapping[str, np.ndarray] | None = None,
) -> np.ndarray:
  """Returns noisy labels, int32 `[N]`.

  Args:
    labels: clean labels `[N]` in 0..num_classes-1.
    noise: a `Noise`, or a string for `parse_noise`.
    seed: integer; human noise, which is given, does not depend on it.
    ids: example ids `[N]`, unique; by default the positions.
    num_classes: K; by default the largest label plus one.
    mapping: for 'asym', a dict clean class -> noisy class, in which classes
      that keep their labels need not be; for 'matrix', the row-stochastic
      matrix `[K, K]` whose row i is the distribution of the labels that class
      i gets.
    mode: 'coin' decides on each example independently, and its label is a
      function of (label, id, seed) alone. 'exact' corrupts an exact share,
      rounded to whole examples: of the whole set for 'sym', of each class
      otherwise; it depends on which examples there are, not on their order.
    human_labels: for 'human', arrays `[N]` by name.
  """
  noise = _to_noise(noise)
  seed = checks.whole('seed', seed)
  labels = _whole('labels', labels)
  ids = np.arange(len(labels)) if ids is None else _whole('ids', ids)
  if labels.shape != ids.shape:
    raise ValueError(
        'Arguments `labels` and `ids` must have the same length. '
        f'Received: {len(labels)} and {len(ids)}.')
  if len(np.unique(ids)) != len(ids):
    raise ValueError('Argument `ids` must be unique.')
  if num_classes is None:
    num_classes = int(labels.max(initial=0)) + 1
  num_classes = checks.whole('num_classes', num_classes, 1)
  _check_range('labels', labels, num_classes)
  checks.one_of('mode', mode, ('coin', 'exact'))
  if noise.kind == 'none':
    noisy = labels
  elif noise.kind == 'human':
    noisy = _human(noise.name, human_labels, labels.shape, num_classes)
  elif noise.kind == 'sym':
    coins = _coins(seed, ids, np.zeros_like(labels), mode)
    redrawn = random.integers(num_classes, 'redrawn label', seed, ids)
    noisy = np.where(coins < noise.rate, redrawn, labels)
  else:
    matrix = transition_matrix(noise, num_classes, mapping)
    noisy = _move(labels, matrix, _coins(seed, ids, labels, mode))
  return noisy.astype(np.int32)


def transition_matrix(
    noise: str | Noise, num_classes: int, mapping=None) -> np.ndarray:
  """Returns the matrix `[K, K]` of P(noisy | clean) that a noise asks for."""
  noise = _to_noise(noise)
  identity = np.eye(num_classes)
  if noise.kind == 'none':
    return identity
  if noise.kind == 'sym':
    return (1. - noise.rate) * identity + noise.rate / num_classes
  if noise.kind == 'asym':
    targets = _check_mapping(mapping, num_classes)
    return (1. - noise.rate) * identity + noise.rate * identity[targets]
  if noise.kind == 'matrix':
    return _check_matrix(mapping, num_classes)
  raise ValueError(
      "Argument `noise` must not be 'human': human noise has no requested "
      f'matrix. Received: noise={str(noise)!r}.')


def _coins(seed, ids, strata, mode):
  """Returns a number in [0, 1) for each example; small ones are corrupted.

  Exact mode replaces the uniform numbers of each stratum of n examples by
  their ranks, (rank + 1/2) / n: of these exactly round(rate * n) lie below the
  rate.
  """
  coins = random.uniform('label noise', seed, ids)
  if mode == 'coin':
    return coins
  by_stratum = np.lexsort((ids, coins, strata))
  counts = np.bincount(strata)
  starts = np.cumsum(counts) - counts
  ranks = np.empty(len(ids))
  ranks[by_stratum] = np.arange(len(ids)) - starts[strata[by_stratum]]
  return (ranks + 0.5) / counts[strata]


def _move(labels, matrix, coins):
  """Samples from the rows of `matrix`; the smallest coins leave their class."""
  leaving = matrix.copy()
  np.fill_diagonal(leaving, 0.)
  noisy = labels.copy()
  for label in np.unique(labels):
    members = np.flatnonzero(labels == label)
    targets = np.flatnonzero(leaving[label])
    chosen = np.searchsorted(
        np.cumsum(leaving[label, targets]), coins[members], side='right')
    moved = chosen < len(targets)
    noisy[members[moved]] = targets[chosen[moved]]
  return noisy


def _human(name, human_labels, shape, num_classes):
  names = sorted(human_labels or {})
  if name not in names:
    known = ', '.join(names) or 'none, the data set has no human labels'
    raise ValueError(
        f'Argument `noise` names human labels that do not exist (there are: '
        f'{known}). Received: name={name!r}.')
  noisy = _whole('human_labels', human_labels[name])
  if noisy.shape != shape:
    raise ValueError(
        f'Argument `human_labels` must have the shape {shape} of the labels. '
        f'Received: shape={noisy.shape}.')
  _check_range('human_labels', noisy, num_classes)
  return noisy


def _whole(argument, values):
  values = np.asarray(values)
  if values.ndim != 1 or not np.issubdtype(values.dtype, np.integer):
    raise ValueError(
        f'Argument `{argument}` must be integers of shape [N]. '
        f'Received: shape={values.shape}, dtype={values.dtype}.')
  return values.astype(np.int64)


def _check_range(argument, labels, num_classes):
  if labels.size and not 0 <= labels.min() <= labels.max() < num_classes:
    raise ValueError(
        f'Argument `{argument}` must be in 0..{num_classes - 1}. '
        f'Received: {labels.min()}..{labels.max()}.')


def _check_mapping(mapping, num_classes):
  """Returns the target class of each class."""
  if not isinstance(mapping, Mapping):
    raise ValueError(
        "Argument `mapping` must be a dict of classes for 'asym' noise (for a "
        f"matrix there is 'matrix'). Received: mapping={mapping!r}.")
  targets = np.arange(num_classes)
  for source, target in mapping.items():
    if not all(isinstance(label, (int, np.integer))
               and 0 <= label < num_classes for label in (source, target)):
      raise ValueError(
          'Argument `mapping` must map classes that exist, '
          f'0..{num_classes - 1}. Received: {source!r} -> {target!r}.')
    targets[source] = target
  return targets


def _check_matrix(matrix, num_classes):
  try:
    matrix = np.asarray(matrix, np.float64)
  except (TypeError, ValueError) as error:
    raise ValueError(
        "Argument `mapping` must be a matrix of numbers for 'matrix' noise. "
        f'Received: mapping={matrix!r}.') from error
  if matrix.shape != (num_classes, num_classes):
    raise ValueError(
        'Argument `mapping` must be a matrix of shape '
        f"{(num_classes, num_classes)} for 'matrix' noise. "
        f'Received: shape={matrix.shape}.')
  sums = matrix.sum(axis=1)
  if not (np.all(matrix >= 0.) and np.allclose(sums, 1., rtol=0., atol=1e-6)):
    raise ValueError(
        'Argument `mapping` must have non-negative rows that sum to one. '
        f'Received: least entry {matrix.min()}, row sums from {sums.min()} to '
        f'{sums.max()}.')
  return matrix / sums[:, np.newaxis]

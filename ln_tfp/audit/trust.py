"""How far an audit can be trusted: what to read before its findings."""

import dataclasses
import hashlib
from typing import Any

import numpy as np

# A class with fewer examples cannot be told from noise.
_FEW = 10
# A model that beats chance by less than this share of the room has not learnt.
_LEARNT = .2
_ERRORS = 3.  # standard errors that are no chance any more
_MOST = .5  # of a class flagged: rather the model's fault than the labels'
_NAMED = 5  # classes that a warning lists
_PRINTED = 10  # classes that are printed if there are no more, else the worst
_WORST = 5


@dataclasses.dataclass(frozen=True, eq=False)
class Trust:
  """What a model knows of the data, for K classes.

  Attributes:
    class_names: the K names.
    class_sizes: `[K]`, number of labels of each class.
    class_accuracy: `[K]`, share of them that the model predicts; NaN for a
      class without labels.
    class_flagged: `[K]`, share of them that are flagged; NaN likewise.
    never_predicted: names of classes with labels that the model never says.
    conflicts: number of examples that are equal to another one with another
      label.
    kind: 'leave-one-out', 'out-of-sample' or 'in-sample': whether predictions
      are blind to the label of their example. In-sample ones flatter.
    class_predicted: `[K]`, how often the model says each class, right or wrong.
    own: what a network's own outputs know, where labels were judged by the
      closed form on its inputs or features; else None.
  """
  class_names: tuple[str, ...]
  class_sizes: np.ndarray
  class_accuracy: np.ndarray
  class_flagged: np.ndarray
  never_predicted: tuple[str, ...]
  conflicts: int
  kind: str
  class_predicted: np.ndarray
  own: 'Trust | None' = None

  @property
  def accuracy(self) -> float:
    """The share of all labels that the model predicts."""
    return _weighted(self.class_accuracy, self.class_sizes)

  @property
  def chance(self) -> float:
    """The accuracy of always saying the commonest class."""
    return float(self.class_sizes.max() / max(1, self.class_sizes.sum()))

  @property
  def class_chance(self) -> np.ndarray:
    """`[K]`, the share of each class among all predictions.

    That is the accuracy on the labels of a class to be had without a look at
    the examples.
    """
    return self.class_predicted / max(1, self.class_predicted.sum())

  @property
  def class_is_known(self) -> np.ndarray:
    """bool `[K]`, classes that the model predicts more often than by chance."""
    chance = self.class_chance
    error = np.sqrt(chance * (1. - chance) / np.maximum(1, self.class_sizes))
    with np.errstate(invalid='ignore'):
      return self.class_accuracy > chance + _ERRORS * error

  @property
  def has_learnt(self) -> bool:
    """Whether the model is clearly better than chance."""
    # Cohen's kappa. Beside always saying the commonest class, a model that
    # knows a rare one of 1:50 under noise would seem to have learnt nothing.
    sizes = self.class_sizes / max(1, self.class_sizes.sum())
    chance = float(sizes @ self.class_chance)
    return self.accuracy >= chance + _LEARNT * (1. - chance)

  @property
  def worst_first(self) -> np.ndarray:
    """`[K]`, numbers of the classes, those of which most is flagged first."""
    return np.argsort(-np.nan_to_num(self.class_flagged, nan=-1.),
                      kind='stable')

  @property
  def warnings(self) -> list[str]:
    """Plain sentences on what makes the findings doubtful; may be empty."""
    found = [] if self.has_learnt else [self._verdict]
    if self.own is not None and not self.own.has_learnt:
      found.append(
          "The network's own outputs are hardly better than chance: it is not "
          'trained, or not on these labels. The audit rests on what goes into '
          'it.')
    few = self.class_sizes < _FEW
    few &= self.class_sizes > 0
    if few.any():
      found.append(f'Fewer than {_FEW} examples: {self._list(few)}. What is '
                   'said of these classes means little.')
    if self.never_predicted:
      names = set(self.never_predicted)
      never = np.array([name in names for name in self.class_names])
      found.append(f'Never predicted: {self._list(never)}. The model does not '
                   'know them, so that all their labels may look wrong.')
    with np.errstate(invalid='ignore'):
      many = self.class_flagged > _MOST
    if many.any():
      found.append(f'More than half of the labels are flagged: '
                   f'{self._list(many)}. Either the model does not know them, '
                   'or most of these labels are wrong (a rare class beside '
                   'large noisy ones).')
    if self.conflicts:
      found.append(f'{self.conflicts:,} examples are equal to another one that '
                   'has another label; at most one of the two is right.')
    return found

  @property
  def _verdict(self):
    return (
        'Not to be acted on: the model has not learnt this task. It predicts '
        f'{100 * self.accuracy:.1f} % of the labels, and always saying the '
        f'commonest class would predict {100 * self.chance:.1f} %. The audit '
        'needs better features, or more training.')

  def __str__(self):
    blind = '' if self.kind == 'in-sample' else ', without having seen them'
    own = '' if self.own is None else (
        f" The network's own outputs: {100 * self.own.accuracy:.1f} % "
        f'({self.own.kind}).')
    lines = [f'The model predicts {100 * self.accuracy:.1f} % of the labels '
             f'({self.kind}{blind}); chance is {100 * self.chance:.1f} %.{own}']
    warnings = self.warnings
    if not self.has_learnt:
      lines.insert(0, warnings.pop(0))
    lines += [f'Warning: {warning}' for warning in warnings]
    return '\n'.join([*lines, '', *self._table()])

  def _table(self):
    """Returns the lines of a table of all classes, or of the worst ones."""
    order = self.worst_first
    if len(order) <= _PRINTED:
      order, what = np.arange(len(order)), 'Class'
    else:
      order, what = order[:_WORST], 'Most flagged'
    lines = [f'  {what:<20}  labels   predicted    chance   flagged']
    for k in order:
      shares = (_percent(share[k]) for share in (
          self.class_accuracy, self.class_chance, self.class_flagged))
      lines.append(f'  {self.class_names[k][:20]:<20}  '
                   f'{self.class_sizes[k]:>6,}     '
                   + '   '.join(f'{share:>7}' for share in shares))
    return lines

  def _list(self, mask):
    names = [self.class_names[k] for k in np.flatnonzero(mask)]
    text = ', '.join(names[:_NAMED])
    left = len(names) - _NAMED
    return text if left <= 0 else f'{text} and {left} more'


def assess(
    given: np.ndarray, predicted: np.ndarray, is_issue: np.ndarray,
    class_names: tuple[str, ...], *, kind: str, conflicts: int = 0) -> Trust:
  """Returns how far predictions of N labels can be trusted.

  Args:
    given: integers `[N]`, the labels.
    predicted: integers `[N]`, what the model says.
    is_issue: bool `[N]`.
    class_names: the K names.
    kind: see `Trust`.
    conflicts: see `num_conflicts`.
  """
  num_classes = len(class_names)
  sizes = np.bincount(given, minlength=num_classes)
  said = np.bincount(predicted, minlength=num_classes)
  return Trust(
      class_names=tuple(class_names), class_sizes=sizes,
      class_accuracy=share_by_class(given == predicted, given, num_classes),
      class_flagged=share_by_class(is_issue, given, num_classes),
      never_predicted=tuple(
          class_names[k] for k in np.flatnonzero((sizes > 0) & (said == 0))),
      conflicts=int(conflicts), kind=kind, class_predicted=said)


def share_by_class(
    mask: np.ndarray, given: np.ndarray, num_classes: int) -> np.ndarray:
  """Returns the share `[K]` of the labels of each class that a mask has."""
  sizes = np.bincount(given, minlength=num_classes)
  counts = np.bincount(given, weights=mask, minlength=num_classes)
  return np.where(sizes > 0, counts / np.maximum(sizes, 1), np.nan)


def fingerprints(inputs: Any) -> np.ndarray:
  """Returns a hash, uint64 `[B]`, of each row of an array `[B, ...]`."""
  rows = np.ascontiguousarray(inputs).reshape(len(inputs), -1)
  return np.array(
      [int.from_bytes(hashlib.blake2b(row.tobytes(), digest_size=8).digest(),
                      'little') for row in rows], np.uint64)


def num_conflicts(prints: np.ndarray, given: np.ndarray) -> int:
  """Returns how many examples equal another one that has another label.

  Args:
    prints: `fingerprints` of the N inputs.
    given: integers `[N]`, the labels.
  """
  _, group = np.unique(prints, return_inverse=True)
  pairs = np.unique(np.stack([group, given]), axis=1)
  labels_of_group = np.bincount(pairs[0], minlength=group.max(initial=0) + 1)
  return int(np.count_nonzero(labels_of_group[group] > 1))


def _percent(share):
  return '-' if np.isnan(share) else f'{100 * share:.1f} %'


def _weighted(values, sizes):
  return float(np.nansum(values * sizes) / max(1, sizes.sum()))

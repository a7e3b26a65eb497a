"""What people have decided about labels, and labels after that.

The page writes `decisions.csv` with the columns id, position, given, suggested,
decision and label. `keep`, `accept` (the suggestion) and `class` (another one)
make a label certain, `remove` takes the example out, `unsure` changes nothing.
"""

from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
import os
import pathlib
import re
from typing import Any
from typing import NamedTuple

import numpy as np

from ln_tfp import files
from ln_tfp.audit.review import spreadsheet

KINDS = ('keep', 'accept', 'class', 'unsure', 'remove')
_COLUMNS = ('id', 'given', 'decision', 'label')
_POSITION = re.compile('[0-9]{1,18}')


class Decision(NamedTuple):
  """What was decided about one example.

  Attributes:
    id: what the example is called.
    given: the label that it had.
    kind: one of `KINDS`.
    label: the label that it should have; empty for `unsure` and `remove`.
    position: of the example, or None; it tells examples of one id apart.
  """
  id: str
  given: str
  kind: str
  label: str
  position: int | None = None


class Change(NamedTuple):
  """A label that was changed, or an example that was removed (after = '')."""
  id: str
  before: str
  after: str
  decision: str


@dataclasses.dataclass(frozen=True, eq=False)
class Corrected:
  """N labels after decisions.

  Attributes:
    labels: `[N]`, as they are now; those of removed examples are unchanged.
    certain: bool `[N]`, labels that somebody has confirmed or corrected.
    kept: bool `[N]`, False for removed examples.
    changes: a list of `Change`, in the order of the examples.
  """
  labels: np.ndarray
  certain: np.ndarray
  kept: np.ndarray
  changes: list[Change]

  def write_log(self, path: str | os.PathLike) -> None:
    """Writes the changes as a CSV file."""
    spreadsheet.write(path, Change._fields, self.changes)


def read(path: str | os.PathLike) -> list[Decision]:
  """Reads the page's `decisions.csv`, or what Label Studio exports as JSON."""
  try:
    if pathlib.Path(path).suffix.lower() == '.json':
      return _from_label_studio(path)
    rows = spreadsheet.read(path)
  except (OSError, UnicodeDecodeError, ValueError) as error:
    reason = getattr(error, 'strerror', None) or error
    raise ValueError(f'{path}: no file of decisions ({reason}).') from error
  if rows and not set(_COLUMNS) <= set(rows[0]):
    raise ValueError(
        f'{path}: no file of decisions; it must have the columns '
        f'{", ".join(_COLUMNS)}.')
  found = []
  for row in rows:
    position = row.get('position', '')
    decision = Decision(row['id'], row['given'], row['decision'], row['label'],
                        int(position) if _POSITION.fullmatch(position) else
                        None)
    _check(decision, path)
    found.append(decision)
  return found


def apply(decisions: str | os.PathLike | Iterable[Decision],
          ids: Sequence[Any], labels: Sequence[str]) -> Corrected:
  """Returns labels after decisions.

  Decisions about other labels than these are refused: a label must be the one
  that was looked at, or already the one that was decided.

  Args:
    decisions: a file for `read`, or what it returns.
    ids: `[N]`, what the examples are called.
    labels: `[N]`, names of their classes.
  """
  if isinstance(decisions, (str, os.PathLike)):
    decisions = read(decisions)
  else:
    decisions = _checked(decisions)
  corrected = np.array(labels, object)
  certain, kept = np.zeros(len(ids), bool), np.ones(len(ids), bool)
  changes = {}
  for i, decision in _match(decisions, ids):
    before = corrected[i]
    if before not in (decision.given, decision.label):
      raise ValueError(
          f'The decision about {decision.id} is about the label '
          f'{decision.given!r}, but its label is {before!r}.')
    if decision.kind == 'remove':
      kept[i] = False
      changes[i] = Change(decision.id, before, '', decision.kind)
    elif decision.kind != 'unsure':
      certain[i] = True
      corrected[i] = decision.label
      if before != decision.label:
        changes[i] = Change(
            decision.id, before, decision.label, decision.kind)
  return Corrected(corrected, certain, kept, [changes[i] for i in
                                              sorted(changes)])


def _checked(decisions):
  if not isinstance(decisions, Iterable):
    raise ValueError('Argument `decisions` must be a file, or several '
                     f'`Decision`. Received: decisions={decisions!r}.')
  decisions = list(decisions)
  for decision in decisions:
    if not isinstance(decision, Decision):
      raise ValueError('Argument `decisions` must hold nothing but `Decision`. '
                       f'Received: {decision!r}.')
    _check(decision, 'Argument `decisions`')
  return decisions


def _match(decisions, ids):
  """Yields positions with their decisions."""
  places = {}
  for i, name in enumerate(ids):
    places.setdefault(str(name), []).append(i)
  seen = set()
  for decision in decisions:
    found = places.get(decision.id, ())
    if len(found) > 1:
      found = [i for i in found if i == decision.position]
    if not found:
      raise ValueError(f'There is no example {decision.id!r} for the decision '
                       f'{decision.kind}.')
    if found[0] in seen:
      raise ValueError(f'Example {decision.id!r} was decided twice.')
    seen.add(found[0])
    yield found[0], decision


def _check(decision, path):
  if decision.kind not in KINDS:
    raise ValueError(
        f'{path}: the decision about {decision.id!r} must be one of '
        f'{", ".join(KINDS)}, not {decision.kind!r}.')
  needs_label = decision.kind in ('keep', 'accept', 'class')
  if needs_label != bool(decision.label):
    raise ValueError(
        f'{path}: the decision {decision.kind} about {decision.id!r} must '
        f'{"have a" if needs_label else "not have a"} label.')


def _from_label_studio(path):
  """Reads tasks of `LabelReport.to_label_studio` that came back annotated."""
  tasks = files.read_json(path, spreadsheet.LARGEST)
  if not isinstance(tasks, list):
    raise ValueError('it must be a list of tasks')
  found = []
  for task in tasks:
    try:
      values = [result['value']['choices'][0]
                for annotation in task.get('annotations', ())
                if not annotation.get('was_cancelled')
                for result in annotation['result'] if 'choices' in
                result['value']]
      name, given = str(task['data']['id']), str(task['data']['given'])
      position = int(task['data']['position'])
    except (KeyError, TypeError, IndexError, ValueError,
            AttributeError) as error:
      raise ValueError(f'a task is not understood: {error!r}') from error
    if values:
      label = values[-1]  # the last word counts
      found.append(Decision(
          name, given, 'keep' if label == given else 'class', label, position))
  return found

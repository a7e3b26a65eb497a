"""`consensus`: several annotators' votes and features to one label each."""

from collections.abc import Sequence
import dataclasses
import functools
from typing import Any

import numpy as np

from ln_tfp import process as process_lib
from ln_tfp.audit import closed_form
from ln_tfp.audit.inputs import given as given_lib
from ln_tfp.audit.inputs import passes

_PRINTED = 5


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Consensus:
  """What M annotators and the features together say of N examples.

  Attributes:
    ids: `[N]`, what the examples are called.
    class_names: the K names.
    annotators: the M names.
    votes: int32 `[N, M]`, -1 where there is none.
    probabilities: `[N, K]`, of the true class, given votes and features.
    annotator_accuracy: `[M]`, the expected share of right votes; NaN for one
      who has not voted.
    annotator_confusion: `[M, K, K]`, P(vote | true class), rows are true
      classes.
  """
  ids: np.ndarray
  class_names: tuple[str, ...]
  annotators: tuple[str, ...]
  votes: np.ndarray
  probabilities: np.ndarray
  annotator_accuracy: np.ndarray
  annotator_confusion: np.ndarray

  def __len__(self):
    return len(self.votes)

  @functools.cached_property
  def labels(self) -> np.ndarray:
    """int32 `[N]`, the likeliest classes."""
    return self.probabilities.argmax(axis=1).astype(np.int32)

  @functools.cached_property
  def confidence(self) -> np.ndarray:
    """`[N]`, the probability that the label is right."""
    return self.probabilities.max(axis=1)

  @functools.cached_property
  def worth_another_vote(self) -> np.ndarray:
    """Positions of all examples, those whose label is least certain first."""
    return np.argsort(self.confidence, kind='stable')

  @property
  def num_votes(self) -> np.ndarray:
    """`[M]`, how many votes each annotator has given."""
    return np.count_nonzero(self.votes != given_lib.MISSING, axis=0)

  def to_pandas(self):
    """Returns a pandas data frame with a row for each example."""
    try:
      import pandas as pd
    except ImportError as error:
      raise ImportError(
          'Consensus.to_pandas needs pandas: pip install pandas.') from error
    names = np.array(self.class_names, object)
    return pd.DataFrame({
        'id': self.ids, 'label': names[self.labels],
        'confidence': self.confidence,
        'num_votes': np.count_nonzero(
            self.votes != given_lib.MISSING, axis=1)}).set_index('id')

  def __str__(self):
    doubtful = np.count_nonzero(self.confidence < .5)
    lines = [
        f'{len(self):,} examples of {len(self.class_names)} classes, '
        f'{self.num_votes.sum():,} votes of {len(self.annotators)} annotators. '
        f'Expected share of right labels: {100 * self.confidence.mean():.1f} '
        f'%; {doubtful:,} are less than even.', '', 'Least accurate:']
    order = np.argsort(self.annotator_accuracy)[:_PRINTED]
    lines += [f'  {self.annotators[m]}: {100 * self.annotator_accuracy[m]:.1f} '
              f'% of {self.num_votes[m]:,} votes' for m in order]
    return '\n'.join(lines)

  def __repr__(self):
    return (f'<Consensus: {len(self)} examples, {len(self.annotators)} '
            'annotators>')


def consensus(
    features: Any,
    votes: Any,
    *,
    ids: Sequence[Any] | None = None,
    class_names: Sequence[str] | None = None,
    annotators: Sequence[str] | None = None,
    process: process_lib.LogisticNormalProcess | None = None,
) -> Consensus:
  """Makes one label of several annotators' votes, with the features' help.

      agreed = ln_tfp.consensus(embeddings, votes)
      agreed.labels, agreed.confidence
      agreed.worth_another_vote[:100]
      agreed.annotator_accuracy, agreed.annotator_confusion

  The true class has a prior from the features, a `LogisticNormalProcess` that
  has not seen the votes on that example, and each annotator a transition matrix
  of his or her own; all are estimated together. An example that nobody has
  voted on gets a label, too.

  Args:
    features: `[N, F]`, as for `audit_features`.
    votes: `[N, M]`, an array or data frame, a column for each annotator:
      numbers (-1 where there is none) or names (None or NaN).
    ids: what the examples are called; by default the index of a data frame.
    class_names: of all classes, for numbers from 0 to K - 1; by default those
      of the votes that there are.
    annotators: names of the annotators; by default the columns of a data
      frame, else 0, 1, ...
    process: what to fit, by default `LogisticNormalProcess()`. It is left
      fitted, and is a classifier.
  """
  columns = getattr(votes, 'columns', None)
  table = np.asarray(votes)
  if table.ndim != 2 or table.shape[1] < 2:
    raise ValueError(
        'Argument `votes` must have the shape [N, M], M > 1; `audit_features` '
        f'is for one annotator. Received: shape={table.shape}.')
  given = given_lib.read(
      table.ravel(), class_names, -1 if table.dtype.kind in 'if' else None,
      argument='votes')
  encoded = given.classes.reshape(table.shape)
  if annotators is None:
    annotators = range(table.shape[1]) if columns is None else columns
  annotators = tuple(map(str, annotators))
  if len(annotators) != table.shape[1]:
    raise ValueError(
        f'Argument `annotators` must have {table.shape[1]} names. Received: '
        f'{len(annotators)}.')
  source = passes.open_features(features, encoded)
  process = closed_form.check_process(
      process) or process_lib.LogisticNormalProcess()
  process.fit(source.x, encoded)
  present = np.asarray(process.classes_)
  num_classes = len(given.class_names)
  probabilities = np.zeros([len(encoded), num_classes], np.float32)
  for chunk in closed_form.leave_one_out(process, source.x, encoded):
    probabilities[chunk.rows.start:chunk.rows.stop, present] = chunk.posterior
  confusion = np.tile(np.eye(num_classes), [len(annotators), 1, 1])
  confusion[:, present[:, np.newaxis], present] = np.reshape(
      process.transition_matrix_, [-1, len(present), len(present)])
  return Consensus(
      ids=closed_form.to_ids(ids, len(encoded), features, votes),
      class_names=given.class_names, annotators=annotators, votes=encoded,
      probabilities=probabilities,
      annotator_accuracy=_accuracy(encoded, probabilities),
      annotator_confusion=confusion)


def _accuracy(votes, probabilities):
  """Returns the expected share of right votes, `[M]`."""
  result = np.full(votes.shape[1], np.nan)
  for m, column in enumerate(votes.T):
    rows = np.flatnonzero(column != given_lib.MISSING)
    if len(rows):
      result[m] = probabilities[rows, column[rows]].mean()
  return result

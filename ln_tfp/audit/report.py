"""The result of an audit."""

import csv
import dataclasses
import functools
import io
import os
from typing import NamedTuple

import numpy as np

from ln_tfp import files
from ln_tfp.audit import audit_page

_COLUMNS = ('quality', 'is_issue', 'given', 'suggested', 'log_likelihood_ratio',
            'residual_norm', 'label_term', 'noise_scale')
_PRINTED_PAIRS = 5
_PRINTED_ISSUES = 10


class ConfusedPair(NamedTuple):
  """How often class `true` was labelled as `given`."""
  true: str
  given: str
  count: int
  share: float  # of the examples of class `true`


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LabelReport:
  """What an audit has found, for N examples of K classes.

  Attributes:
    ids: `[N]`, what the examples are called.
    given: int32 `[N]`, the labels.
    suggested: int32 `[N]`, the likeliest other class where the label is an
      issue, and the given one elsewhere.
    quality: `[N]`, in [0, 1]; the lower, the likelier is the label wrong.
    is_issue: bool `[N]`, whether the quality is below `threshold`.
    log_likelihood_ratio: `[N]`, log density of the given label minus that of
      the likeliest other class, which is the suggested one of an issue.
      Negative where the model prefers the other.
    residual_norm: `[N]`, distance of the label from the model's mean, in logit
      space and in the head's units.
    label_term: `[N]`, r^T Sigma^-1 r, the part of the loss that depends on the
      label: the squared residual in units of the noise that the model expects.
    noise_scale: `[N]`, sqrt(trace(Sigma) / D) in the head's units, the noise
      that the model expects of labels of such an example.
    pred_probs: `[N, K]`, the model's probabilities, as cleanlab wants them.
    threshold: of the quality; it comes from the data.
    transition_matrix: `[K, K]`, P(given | true), rows are true classes.
    transition_stderr: `[K, K]`, its standard errors.
    class_names: the K names.
    examples: the inputs of those that fit their labels worst, by position.
  """
  ids: np.ndarray
  given: np.ndarray
  suggested: np.ndarray
  quality: np.ndarray
  is_issue: np.ndarray
  log_likelihood_ratio: np.ndarray
  residual_norm: np.ndarray
  label_term: np.ndarray
  noise_scale: np.ndarray
  pred_probs: np.ndarray
  threshold: float
  transition_matrix: np.ndarray
  transition_stderr: np.ndarray
  class_names: tuple[str, ...]
  examples: dict[int, np.ndarray]

  def __len__(self):
    return len(self.given)

  @property
  def noise_rate(self) -> float:
    """The estimated share of wrong labels."""
    return float(np.mean(self.is_issue))

  @functools.cached_property
  def ranked_issues(self) -> np.ndarray:
    """The positions of the issues, the worst first."""
    order = np.argsort(self.quality, kind='stable')
    return order[self.is_issue[order]]

  @functools.cached_property
  def confused_pairs(self) -> list[ConfusedPair]:
    """Pairs of classes (true, given) among the issues, frequent ones first."""
    names = self.class_names
    pairs, counts = np.unique(
        np.stack([self.suggested, self.given], axis=1)[self.is_issue],
        axis=0, return_counts=True)
    return [
        ConfusedPair(names[true], names[given], int(count),
                     float(self.transition_matrix[true, given]))
        for count, (true, given) in sorted(
            zip(counts, pairs.tolist()), key=lambda item: (-item[0], item[1]))]

  def to_csv(self, path: str | os.PathLike) -> None:
    """Writes a line for each example, in the order of the data."""
    columns = self._columns()
    file = io.StringIO()
    writer = csv.writer(file, lineterminator='\n')
    writer.writerow(columns)
    writer.writerows(zip(*(values.tolist() for values in columns.values())))
    files.write_atomically(path, file.getvalue().encode())

  def to_pandas(self):
    """Returns a pandas data frame with a row for each example."""
    try:
      import pandas as pd
    except ImportError as error:
      raise ImportError(
          'LabelReport.to_pandas needs pandas: pip install pandas.') from error
    return pd.DataFrame(self._columns()).set_index('id')

  def save(self, path: str | os.PathLike, title: str = 'Label audit') -> None:
    """Writes a page that shows the report; it needs nothing beside it."""
    audit_page.make(self, title).save(path)

  def __str__(self):
    lines = [
        f'{len(self):,} labels of {len(self.class_names)} classes: '
        f'{len(self.ranked_issues):,} look wrong '
        f'({100 * self.noise_rate:.1f} %).']
    if not len(self.ranked_issues):
      return lines[0]
    lines += ['', 'Confused most often (true -> given):']
    for pair in self.confused_pairs[:_PRINTED_PAIRS]:
      lines.append(f'  {pair.true} -> {pair.given}: {pair.count:,} times, '
                   f'{100 * pair.share:.1f} % of {pair.true}')
    lines += ['', 'The worst labels:',
              f'  {"id":<20}  {"given":<12}  {"suggested":<12}  quality']
    for i in self.ranked_issues[:_PRINTED_ISSUES]:
      given, suggested = (
          self.class_names[labels[i]] for labels in (
              self.given, self.suggested))
      lines.append(f'  {self.ids[i]!s:<20}  {given:<12}  {suggested:<12}  '
                   f'{self.quality[i]:.4f}')
    return '\n'.join(lines)

  def __repr__(self):
    return (f'<LabelReport: {len(self)} labels, '
            f'{len(self.ranked_issues)} issues>')

  def _columns(self):
    names = np.array(self.class_names, dtype=object)
    columns = {'id': self.ids}
    for name in _COLUMNS:
      values = getattr(self, name)
      if name in ('given', 'suggested'):
        values = names[values]
      columns[name] = values
    return columns

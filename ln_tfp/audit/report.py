"""The result of an audit."""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import functools
import hashlib
import os
from typing import Any
from typing import NamedTuple

import numpy as np

from ln_tfp import random
from ln_tfp.audit import trust as trust_lib
from ln_tfp.audit.judging import flagging
from ln_tfp.audit.review import attached
from ln_tfp.audit.review import audit_page
from ln_tfp.audit.review import decisions as decisions_lib
from ln_tfp.audit.review import label_studio
from ln_tfp.audit.review import neighbours as neighbours_lib
from ln_tfp.audit.review import spreadsheet

_COLUMNS = ('quality', 'is_issue', 'given', 'suggested', 'wrong_probability',
            'log_likelihood_ratio', 'residual_norm', 'label_term',
            'noise_scale')
_PRINTED_PAIRS = 5
_PRINTED_ISSUES = 10
_CONTROL_SAMPLE = 50


class ConfusedPair(NamedTuple):
  """How often class `true` was labelled as `given`."""
  true: str
  given: str
  count: int
  share: float  # of the examples of class `true`


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LabelReport:
  """What an audit has found, for N examples of K classes.

  Attributes:
    ids: `[N]`, what the examples are called.
    class_names: the K names.
    given: int32 `[N]`, the labels.
    alternative: int32 `[N]`, the likeliest class but for the given one.
    quality: `[N]`, in [0, 1]; the lower, the likelier is the label wrong.
    wrong_probability: `[N]`, that the label is wrong, 1 - P(given label).
    is_issue: bool `[N]`, whether the label is flagged.
    threshold: flagged labels have a lower quality.
    nearest_classes: int `[N, M]`, the M <= 5 likeliest classes of each example.
    nearest_probabilities: `[N, M]`, theirs.
    transition_matrix: `[K, K]`, P(given | true), rows are true classes.
    noise_rate: the estimated share of wrong labels.
    noise_rate_kind: what kind of number that is, such as 'lower bound'.
    trust: how far all this can be trusted, a `Trust`.
    certain: bool `[N]` or None: labels that somebody has decided already, which
      are never flagged.
    pred_probs: `[N, K]`, the model's probabilities, as cleanlab wants them;
      None of `audit_features` beyond N x K = 5 x 10^7, which would be 0.2 GB
      (`LogisticNormalProcess.leave_one_out_chunks` has them part by part).
    transition_stderr: `[K, K]`, standard errors of the matrix, or None.
    log_likelihood_ratio: `[N]`, log density of the given label minus that of
      the alternative. This and what follows are None without a trained
      `LogisticNormalHead`.
    residual_norm: `[N]`, distance of the label from the model's mean, in logit
      space and in the head's units.
    label_term: `[N]`, r^T Sigma^-1 r, the part of the loss that depends on the
      label: the squared residual in units of the noise that the model expects.
    noise_scale: `[N]`, sqrt(trace(Sigma) / D) in the head's units, the noise
      that the model expects of labels of such an example.
    shown: how many issues the page shows.
    examples: inputs of examples that the page shows, by position.
    rows: of a table, the cells of issues and of what the page shows beside
      them, by position.
    neighbours: of examples that the page shows, by position.
  """
  ids: np.ndarray
  class_names: tuple[str, ...]
  given: np.ndarray
  alternative: np.ndarray
  quality: np.ndarray
  wrong_probability: np.ndarray
  is_issue: np.ndarray
  threshold: float
  nearest_classes: np.ndarray
  nearest_probabilities: np.ndarray
  transition_matrix: np.ndarray
  noise_rate: float
  noise_rate_kind: str
  trust: trust_lib.Trust
  certain: np.ndarray | None = None
  pred_probs: np.ndarray | None = None
  transition_stderr: np.ndarray | None = None
  log_likelihood_ratio: np.ndarray | None = None
  residual_norm: np.ndarray | None = None
  label_term: np.ndarray | None = None
  noise_scale: np.ndarray | None = None
  shown: int = 300
  examples: Mapping[int, np.ndarray] = dataclasses.field(default_factory=dict)
  rows: Mapping[int, Mapping[str, str]] = dataclasses.field(
      default_factory=dict)
  neighbours: Mapping[int, neighbours_lib.Neighbours] = dataclasses.field(
      default_factory=dict)

  def __len__(self):
    return len(self.given)

  @functools.cached_property
  def suggested(self) -> np.ndarray:
    """int32 `[N]`, the alternative where the label is an issue, else given."""
    return np.where(self.is_issue, self.alternative, self.given)

  @functools.cached_property
  def ranked_issues(self) -> np.ndarray:
    """The positions of the issues, the worst first."""
    order = np.argsort(self.quality, kind='stable')
    return order[self.is_issue[order]]

  @functools.cached_property
  def control_sample(self) -> np.ndarray:
    """Positions of some random issues: who checks them knows the precision."""
    issues = np.sort(self.ranked_issues)
    return issues[random.order('control sample', issues)[:_CONTROL_SAMPLE]]

  @functools.cached_property
  def shown_positions(self) -> np.ndarray:
    """What the page shows: the worst issues, then the rest of the sample."""
    worst = self.ranked_issues[:self.shown]
    return np.concatenate([worst, np.setdiff1d(self.control_sample, worst)])

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

  @functools.cached_property
  def fingerprint(self) -> str:
    """A name for this data and these labels, the same in another process."""
    digest = hashlib.sha256('\0'.join(self.class_names).encode())
    digest.update(np.asarray(self.given, '<i4').tobytes())
    for name in self.ids.tolist():
      digest.update(f'\0{name}'.encode())
    return digest.hexdigest()[:16]

  def flag(self, budget: int | None = None,
           precision: float | None = None) -> 'LabelReport':
    """Returns a report that flags other labels; all estimates stay.

        report.flag(budget=500)      # the 500 likeliest
        report.flag(precision=.9)    # nine in ten of the flagged are wrong
        report.flag()                # the best F1 to be expected

    Where the model has not learnt the task (`trust.has_learnt`), the last one
    flags labels that are rather wrong than right, of classes of which it knows
    anything at all.

    Args:
      budget: how many to flag.
      precision: flag as many as keep this expected share of wrong ones.
    """
    quality = self.quality
    if self.certain is not None:
      quality = np.where(self.certain, np.inf, quality)
    order = np.argsort(quality, kind='stable')
    order = order[:np.count_nonzero(np.isfinite(quality))]
    if budget is None and precision is None and not self.trust.has_learnt:
      # If nothing can be known, flagging everything has the best expected F1.
      order = order[(self.wrong_probability[order] > .5) &
                    self.trust.class_is_known[self.given[order]]]
    num = flagging.num_flagged(
        self.wrong_probability[order], budget, precision)
    is_issue = np.zeros(len(self), bool)
    is_issue[order[:num]] = True
    threshold = float(quality[order[num]]) if num < len(order) else 1.
    flagged = trust_lib.share_by_class(
        is_issue, self.given, len(self.class_names))
    return dataclasses.replace(
        self, is_issue=is_issue, threshold=threshold,
        trust=dataclasses.replace(self.trust, class_flagged=flagged))

  def with_examples(
      self, inputs: Any, *, features: np.ndarray | None = None,
      rows: Any = None, shown: int | None = None) -> 'LabelReport':
    """Returns a report whose page shows examples, and reasons beside them.

    Args:
      inputs: array or data frame `[N, ...]`, what is shown of the examples; or
        None. N is the length of the report: examples without a label are not
        in it.
      features: array, data frame or sparse matrix `[N, ...]` in which similar
        examples are near each other, by default `inputs`. Without both there
        are no similar examples on the page.
      rows: a data frame, or a sequence of N rows, each from column to cell.
      shown: how many issues the page shows, by default as before.
    """
    inputs, features, rows = (
        attached.open_attached(values, name, len(self)) for name, values in (
            ('inputs', inputs), ('features', features), ('rows', rows)))
    report = self if shown is None else dataclasses.replace(self, shown=shown)
    positions = report.shown_positions
    features = inputs if features is None else features
    near = {} if features is None else neighbours_lib.find(
        features, report.given, report.suggested, report.is_issue, positions)
    needed = {*positions.tolist(), *(
        i for pair in near.values() for part in pair for i in part)}
    pick = lambda values, chosen: {} if values is None else {
        i: values[i] for i in sorted(chosen)}
    return dataclasses.replace(
        report, neighbours=near, examples=pick(inputs, needed),
        # Other tools are given the rows of all issues.
        rows=pick(rows, needed.union(report.ranked_issues.tolist())))

  def apply(
      self, decisions: str | os.PathLike | Iterable[decisions_lib.Decision]
  ) -> decisions_lib.Corrected:
    """Returns the labels after what was decided on the page.

        after = report.apply('decisions.csv')
        ln_tfp.audit_labels(model, x[after.kept], after.labels[after.kept],
                            certain=after.certain[after.kept])

    Args:
      decisions: the file, or a list of `Decision`.

    Returns:
      A `Corrected` whose labels are int32 `[N]`; the report stays as it is.
    """
    names = np.array(self.class_names, object)
    after = decisions_lib.apply(decisions, self.ids, names[self.given])
    classes = {name: k for k, name in enumerate(self.class_names)}
    for name in after.labels:
      if name not in classes:
        raise ValueError(f'Argument `decisions` has a label {name!r}, which is '
                         'no class of this report.')
    return dataclasses.replace(after, labels=np.array(
        [classes[name] for name in after.labels], np.int32))

  def to_label_studio(
      self, path: str | os.PathLike, prefix: str = '') -> None:
    """Writes the issues as tasks for Label Studio, suggestions as predictions.

    What comes back, exported as JSON, is understood by `apply`.
    `ln_tfp.audit.label_studio.config` makes the configuration for it.

    Args:
      path: the JSON file.
      prefix: what makes an id the address of an image for Label Studio, such as
        '/data/local-files/?d=images/'; needed if the examples are pictures.
    """
    label_studio.write(self, path, prefix)

  def to_csv(self, path: str | os.PathLike) -> None:
    """Writes a line for each example, in the order of the data.

    Cells that a spreadsheet would execute get an apostrophe in front;
    `ln_tfp.audit.spreadsheet.read` takes it away again.
    """
    columns = self._columns()
    spreadsheet.write(
        path, columns, zip(*(values.tolist() for values in columns.values())))

  def to_pandas(self):
    """Returns a pandas data frame with a row for each example."""
    try:
      import pandas as pd
    except ImportError as error:
      raise ImportError(
          'LabelReport.to_pandas needs pandas: pip install pandas.') from error
    return pd.DataFrame(self._columns()).set_index('id')

  def save(self, path: str | os.PathLike, title: str = 'Label audit') -> None:
    """Writes a page to look at the issues and to decide about them.

    It needs nothing beside it, and no network.
    """
    audit_page.make(self, title).save(path)

  def __str__(self):
    share = 100 * len(self.ranked_issues) / max(1, len(self))
    found = (
        f'look wrong ({share:.1f} %). Noise rate {100 * self.noise_rate:.1f} % '
        f'({self.noise_rate_kind}).')
    if not self.trust.has_learnt:
      found = f'are flagged ({share:.1f} %), by a model that knows little.'
    lines = [
        str(self.trust), '',
        f'{len(self):,} labels of {len(self.class_names)} classes: '
        f'{len(self.ranked_issues):,} {found}']
    if not len(self.ranked_issues):
      return '\n'.join(lines)
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
      if values is None:
        continue
      columns[name] = names[values] if name in (
          'given', 'suggested') else values
    return columns

"""`audit_features`: from embeddings and labels to a report, nothing trained."""

from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ln_tfp import process as process_lib
from ln_tfp.audit import report as report_lib
from ln_tfp.audit import trust as trust_lib
from ln_tfp.audit.inputs import given as given_lib
from ln_tfp.audit.inputs import passes
from ln_tfp.audit.judging import odds
from ln_tfp.audit.judging import opinions
from ln_tfp.audit.judging import transitions

_NEAREST = 5
# The probabilities of more than so many N x K are not kept in a report.
_KEPT_SIZE = 50_000_000
# From so many classes on a process does not relabel; see docs/audit.md.
_MANY_CLASSES = 50


def audit_features(
    features: Any,
    labels: Any = None,
    *,
    ids: Sequence[Any] | None = None,
    class_names: Sequence[str] | None = None,
    certain: np.ndarray | None = None,
    ignore_class: Any = None,
    process: process_lib.LogisticNormalProcess | None = None,
) -> report_lib.LabelReport:
  """Says which labels look wrong, from features in which they can be learnt.

      report = ln_tfp.audit_features(embeddings, labels)
      print(report)
      report.ranked_issues    # positions of what looks wrong, the worst first

  Each label is judged by a `LogisticNormalProcess` that has seen all of them
  but that one, by its closed form. Nothing is trained, and there are no folds.
  Embeddings of a pretrained network are good features; columns of a table and
  pixels of small images will do.

  Args:
    features: `[N, F]`, an array, memory map, data frame or sparse matrix; or
      batches `x` or `(x, y)` from a function that returns an iterator, a
      `tf.data.Dataset`, a `keras.utils.PyDataset` or another iterable, such as
      a loader. Batches are read several times, and must come in the same order;
      that is checked.
    labels: `[N]` numbers or names, None or NaN where one is missing; or one-hot
      or soft rows `[N, K]`. None if the batches bring them.
    ids: what the examples are called in the report; by default the index of a
      data frame, else 0, 1, ...
    class_names: names of all classes, for numbers from 0 to K - 1. By default
      those of the labels that there are.
    certain: bool `[N]`, labels that are known to be right, such as those that
      somebody has decided. They are never flagged.
    ignore_class: the label that stands for none, such as -1.
    process: what to fit, by default `default_process(K)`. It is left fitted,
      and is a classifier.

  Returns:
    A `LabelReport`. Examples without a label are not in it: its `ids` say
    which ones are.
  """
  source = passes.open_features(features, labels)
  given = given_lib.read(source.labels, class_names, ignore_class)
  num = len(given)
  ids = to_ids(ids, num, features, labels)
  certain = to_mask(certain, num)
  process = check_process(process) or default_process(len(given.class_names))
  y, weight = given.classes, None
  if given.shares is not None:
    y = given.shares
  elif not given.is_labelled.all():  # a class that exists, of no weight
    y = np.where(given.is_labelled, y, y.max())
  if not given.is_labelled.all():
    weight = given.is_labelled.astype(np.float32)
  process.fit(source.x, y, weight, certain)
  findings = _Findings(given, process)
  for chunk in leave_one_out(process, source.x, y, weight, certain):
    findings.add(chunk)
  return _report(findings, given, ids, certain, source)


def default_process(
    num_classes: int, **settings: Any) -> process_lib.LogisticNormalProcess:
  """Returns a process for an audit of K classes.

  With many classes, each has few rows, and what the noise model believes of
  them is too uncertain to refit to.

  Args:
    num_classes: K.
    **settings: of `LogisticNormalProcess`.
  """
  if num_classes >= _MANY_CLASSES:
    settings.setdefault('relabel_rounds', 0)
  return process_lib.LogisticNormalProcess(**settings)


def leave_one_out(
    process: process_lib.LogisticNormalProcess,
    *data: Any) -> Iterable[process_lib.LeaveOneOut]:
  """Returns the predictions of a process fitted to `data`, in parts."""
  if hasattr(process, 'leave_one_out_'):
    return [process.leave_one_out_]
  return process.leave_one_out_chunks(*data)


def _report(findings, given, ids, certain, source):
  """Returns the report on the examples that have labels."""
  labelled = given.is_labelled
  classes, certain = given.classes[labelled], certain[labelled]
  nearest = findings.nearest[labelled]
  probabilities = findings.nearest_probabilities[labelled]
  expected, counted = _rates(
      findings.wrong[labelled], nearest, probabilities, findings.own[labelled],
      classes, ~certain)
  wrong = odds.wrong_probability(
      findings.wrong[labelled], findings.logit[labelled], certain,
      transitions.blend(expected, counted))
  if transitions.fits_without_noise(expected, counted):
    wrong = findings.reorder(wrong, certain, source.x)
  matrix, stderr = transitions.from_counts(findings.counts)
  report = report_lib.LabelReport(
      ids=ids[labelled], class_names=given.class_names, given=classes,
      alternative=findings.alternative[labelled], quality=1. - wrong,
      wrong_probability=wrong, is_issue=np.zeros(len(classes), bool),
      threshold=0., nearest_classes=nearest,
      nearest_probabilities=probabilities,
      transition_matrix=matrix, transition_stderr=stderr,
      noise_rate=float(wrong.mean()),
      noise_rate_kind=transitions.describe(expected, counted),
      trust=trust_lib.assess(
          classes, nearest[:, 0], np.zeros(len(classes)), given.class_names,
          kind='leave-one-out',
          conflicts=trust_lib.num_conflicts(
              source.prints[labelled], classes)),
      certain=certain,
      pred_probs=None if findings.probabilities is None else (
          findings.probabilities[labelled]))
  return report.flag()


def _rates(wrong, nearest, probabilities, own, classes, free):
  """Returns the shares of wrong labels, expected and counted."""
  if not free.any():
    return 0., 0.
  expected = float(np.clip(wrong[free], 0., 1.).mean())
  if np.mean(nearest[free, 0] == classes[free]) < .5:
    return expected, expected  # who contradicts most labels is no judge of them
  return expected, transitions.counted_rate(
      nearest[free], probabilities[free], own[free], classes[free])


class _Findings:
  """What a report keeps of leave-one-out predictions, chunk by chunk.

  Attributes:
    wrong: `[N]`, the posterior probability of all classes but the given one.
    logit: `[N]`, beta mu of the given class.
    own: `[N]`, the probability of the given class, the label unseen.
    alternative: int32 `[N]`, the likeliest other class.
    nearest: int32 `[N, M]`, the likeliest classes, the label unseen.
    nearest_probabilities: `[N, M]`.
    probabilities: `[N, K]`, or None where they are too many.
    counts: `[K, K]`, expected numbers of (true, given).
  """

  def __init__(self, given: given_lib.Given,
               process: process_lib.LogisticNormalProcess):
    size, num_classes = len(given), len(given.class_names)
    self._given = given
    self._process = process
    self._columns = columns = np.asarray(process.classes_, np.int64)
    self._beta = process.noise_model_.inverse_temperature
    self.wrong, self.logit, self.own = np.zeros([3, size])
    self.alternative = np.zeros(size, np.int32)
    self.nearest = np.zeros([size, min(_NEAREST, len(columns))], np.int32)
    self.nearest_probabilities = np.zeros(self.nearest.shape, np.float32)
    self.probabilities = None
    if size * num_classes <= _KEPT_SIZE:
      self.probabilities = np.zeros([size, num_classes], np.float32)
    self.counts = np.zeros([num_classes, num_classes])

  def add(self, chunk: process_lib.LeaveOneOut) -> None:
    """Looks at the predictions of some rows."""
    rows = np.arange(len(chunk))
    classes = self._given.classes[chunk.rows]
    column = np.searchsorted(self._columns, np.maximum(classes, 0))
    column = np.minimum(column, len(self._columns) - 1)
    posterior = chunk.posterior
    self.logit[chunk.rows] = self._beta * chunk.loc[rows, column]
    self.own[chunk.rows] = chunk.probabilities[rows, column]
    labelled = np.flatnonzero(classes != given_lib.MISSING)
    said = sparse.csr_array(
        (np.ones(len(labelled)), (labelled, classes[labelled])),
        shape=(len(chunk), len(self.counts)))
    self.counts[self._columns] += (said.T @ posterior).T
    others = posterior.copy()
    others[rows, column] = 0.
    self.wrong[chunk.rows] = others.sum(axis=1)  # small ones stay exact
    others[rows, column] = -1.
    self.alternative[chunk.rows] = self._columns[others.argmax(axis=1)]
    nearest = _largest(chunk.probabilities, self.nearest.shape[1])
    self.nearest[chunk.rows] = self._columns[nearest]
    self.nearest_probabilities[chunk.rows] = np.take_along_axis(
        chunk.probabilities, nearest, axis=1)
    if self.probabilities is not None:
      self.probabilities[chunk.rows, self._columns] = chunk.probabilities

  def reorder(
      self, wrong: np.ndarray, certain: np.ndarray, x: Any) -> np.ndarray:
    """Lets several models decide the order, see `opinions`.

    How many labels are wrong is left as it is.

    Args:
      wrong: `[n]`, probabilities that the labels that there are are wrong.
      certain: bool `[n]`.
      x: the features; of batches, and of many rows, the order stays.
    """
    labelled = self._given.is_labelled
    if (callable(x) or not 1 < len(wrong) <= opinions.MOST_ROWS
        or self.probabilities is None or self._given.shares is not None):
      return wrong
    classes, rows = self._given.classes[labelled], np.arange(len(wrong))
    others = opinions.average(
        x[labelled], classes, len(self.counts), self._process,
        self.probabilities[labelled])
    own = np.where(certain, np.inf, others[rows, classes])
    others[rows, classes] = -1.
    self.alternative[labelled] = others.argmax(axis=1)
    result = np.empty_like(wrong)
    result[np.argsort(own, kind='stable')] = -np.sort(-wrong)
    return result


def _largest(values, num):
  """Returns where the `num` largest of each row are, the largest first."""
  found = np.argpartition(-values, num - 1, axis=1)[:, :num]
  order = np.argsort(
      -np.take_along_axis(values, found, axis=1), axis=1, kind='stable')
  return np.take_along_axis(found, order, axis=1)


def check_process(process: Any) -> process_lib.LogisticNormalProcess | None:
  """Returns a process, or None, and refuses all else."""
  if process is not None and not isinstance(
      process, process_lib.LogisticNormalProcess):
    raise ValueError('Argument `process` must be a LogisticNormalProcess. '
                     f'Received: process={process!r}.')
  return process


def to_mask(certain: Any, num: int) -> np.ndarray:
  """Checks `certain`; no label is so by default."""
  if certain is None:
    return np.zeros(num, bool)
  certain = np.asarray(certain)
  if certain.dtype != bool or certain.shape != (num,):
    raise ValueError(
        f'Argument `certain` must be a bool array of shape [{num}]. Received: '
        f'shape={certain.shape}, dtype={certain.dtype}.')
  return certain


def to_ids(ids: Any, num: int, *frames: Any) -> np.ndarray:
  """Checks `ids`; by default the index of the first data frame, else numbers.

  Args:
    ids: of N examples, or None.
    num: N.
    *frames: what may be a data frame or a series.
  """
  if ids is None:
    ids = next((frame.index for frame in frames if hasattr(frame, 'iloc')),
               np.arange(num))
  if len(ids) != num:
    raise ValueError(f'Argument `ids` must have {num} entries, one for each '
                     f'example. Received: {len(ids)}.')
  return np.asarray(ids)

"""`audit_labels`: from a model and labelled examples to a report."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any

import keras
from keras import ops
import numpy as np
from scipy import stats

from ln_tfp import heads
from ln_tfp import losses
from ln_tfp import normal
from ln_tfp.audit import closed_form
from ln_tfp.audit import report as report_lib
from ln_tfp.audit import trust as trust_lib
from ln_tfp.audit.inputs import examples as examples_lib
from ln_tfp.audit.inputs import given as given_lib
from ln_tfp.audit.judging import embedding
from ln_tfp.audit.judging import evidence as evidence_lib
from ln_tfp.audit.judging import transitions

_NEAREST = 5
_EVIDENCE = ('auto', 'frozen', 'features', 'outputs')


def audit_labels(
    model: keras.Model,
    x: Any,
    y: Any = None,
    *,
    ids: Sequence[Any] | None = None,
    class_names: Sequence[str] | None = None,
    batch_size: int = 256,
    label_smoothing: float = 0.01,
    certain: np.ndarray | None = None,
    ignore_class: Any = None,
    output: str | int | None = None,
    evidence: str = 'auto',
) -> report_lib.LabelReport:
  """Says which of the labels that a model was trained on look wrong.

  There are three kinds of evidence:

  - 'frozen': the closed form of `audit_features` on what the model makes of its
    inputs before its first trainable layer, such as the embedding of a frozen
    backbone, or the inputs themselves. Training cannot have spoilt it.
  - 'features': the closed form on the inputs of the head. Better if the layers
    before it had to be learnt, worse if the model has learnt wrong labels by
    heart.
  - 'outputs': the head's own outputs, although it was trained on these very
    labels; see `ln_tfp.audit.judging.evidence`.

  'auto' chooses between the first two, and gives the model's own outputs a say
  in the order; docs/audit.md has the rule and the measurements.

  Args:
    model: Keras model whose output comes from a `LogisticNormalHead`, trained
      on `x` and `y`.
    x: examples as `model.fit` takes them: an array or data frame; a tuple, list
      or dict of arrays if the model has several inputs; or batches `(x, y)` or
      `(x, y, weight)` from a `tf.data.Dataset`, a `keras.utils.PyDataset`,
      another iterable such as a loader, a generator or a function that returns
      one. Batches must come in the same order each time, which is checked where
      they can be read twice.
    y: labels `[N]` or `[N, 1]`, numbers or names; or one-hot or soft rows
      `[N, K]`. None if `x` brings them.
    ids: what the examples are called in the report; by default the index of a
      data frame or series, else 0, 1, ...
    class_names: names of the K classes. By default the numbers, or the names
      of the labels in alphabetical order.
    batch_size: number of examples of an array that the model sees at a time.
    label_smoothing: that of the loss in training.
    certain: bool `[N]`, labels that are known to be right, such as those that
      somebody has decided; none by default.
    ignore_class: the label that stands for none, such as -1. Such examples, and
      those of weight zero, are not in the report.
    output: name or number of the output, if the model has several.
    evidence: 'auto', 'frozen', 'features' or 'outputs'.

  Returns:
    A `LabelReport`.
  """
  if not 0 < label_smoothing <= 1:
    raise ValueError('Argument `label_smoothing` must be in (0, 1]. Received: '
                     f'label_smoothing={label_smoothing}.')
  if evidence not in _EVIDENCE:
    raise ValueError(f'Argument `evidence` must be one of {_EVIDENCE}. '
                     f'Received: evidence={evidence!r}.')
  chosen = find_output(model, output)
  head = find_head(model, chosen)
  examples = examples_lib.open_examples(x, y, batch_size, chosen)
  examples.check_order()
  run = embedding.run(
      embedding.Embedder(model, chosen, evidence), head, examples)
  given = read_labels(run.labels, head.num_classes, class_names, ignore_class)
  given = dataclasses.replace(given, classes=np.where(
      run.ignored, given_lib.MISSING, given.classes).astype(np.int32))
  num = len(given)
  if ids is None:
    ids = examples.index
  ids = closed_form.to_ids(ids, num)
  certain = closed_form.to_mask(certain, num)
  kept = given.is_labelled
  outputs, classes = run.outputs[kept], given.classes[kept]
  reports = {
      kind: _judge_by_features(features, given, ids, certain)
      for kind, features in run.features.items()}
  reports['outputs'] = _judge_by_outputs(
      outputs, head, label_smoothing, given, ids, certain, run.prints)
  report = decide(reports) if evidence == 'auto' else reports[evidence]
  if report is not reports['outputs']:
    report = dataclasses.replace(report, trust=dataclasses.replace(
        report.trust, own=reports['outputs'].trust))
  report = dataclasses.replace(report, **_likelihoods(
      outputs, classes, report.alternative, head, label_smoothing))
  positions = np.flatnonzero(kept)
  shown = examples.pick(positions[report.shown_positions])
  number = {int(i): k for k, i in enumerate(positions)}
  return dataclasses.replace(
      report, examples={number[i]: example for i, example in shown.items()})


def find_head(
    model: keras.Model, output: examples_lib.Output = examples_lib.ONLY
) -> heads.LogisticNormalHead:
  """Returns the head of a model, or of one output, wherever it is nested."""
  layers = (
      model._flatten_layers() if isinstance(model, keras.Model) else ())
  found = [layer for layer in layers
           if isinstance(layer, heads.LogisticNormalHead)]
  if output.index is not None:
    maker = model.outputs[output.index]._keras_history.operation
    found = [layer for layer in found if layer is maker]
  if len(found) != 1:
    raise ValueError(
        'Argument `model` must be a Keras model with one LogisticNormalHead, '
        'whose output is that of the model; of several outputs, argument '
        f'`output` says which. Received: {type(model).__name__} with '
        f'{len(found)} of them.')
  return found[0]


def find_output(
    model: keras.Model, output: str | int | None) -> examples_lib.Output:
  """Returns the `Output` that is meant."""
  if output is None:
    return examples_lib.ONLY
  names = list(getattr(model, 'output_names', ()))
  if output in names:
    return examples_lib.Output(names.index(output), output)
  if isinstance(output, int) and 0 <= output < len(names):
    return examples_lib.Output(output, names[output])
  raise ValueError(f'Argument `output` must be one of {names}, or its number. '
                   f'Received: output={output!r}.')


def read_labels(
    labels: np.ndarray, num_classes: int, class_names: Sequence[str] | None,
    ignore_class: Any) -> given_lib.Given:
  """Returns the labels of a model of so many classes."""
  if class_names is None and labels.dtype.kind in 'iuf':
    class_names = range(num_classes)
  given = given_lib.read(labels, class_names, ignore_class, argument='y')
  if len(given.class_names) != num_classes:
    raise ValueError(
        f'Argument `class_names` must have {num_classes} different names, one '
        f'for each class. Received: {given.class_names}.')
  return given


def _judge_by_features(features, given, ids, certain):
  """Returns the report of the closed form."""
  labels = given.classes
  if given.shares is not None:
    labels = np.where(given.is_labelled[:, np.newaxis], given.shares, 0.)
  return closed_form.audit_features(
      features, labels, ids=ids, certain=certain,
      class_names=given.class_names, ignore_class=given_lib.MISSING)


def decide(
    reports: Mapping[str, report_lib.LabelReport]) -> report_lib.LabelReport:
  """Returns the report of 'auto' from those of each kind of evidence."""
  kind = _choose(reports)
  if kind != 'frozen':
    return reports[kind]
  return _reorder(reports['frozen'], reports['outputs'])


def _reorder(
    frozen: report_lib.LabelReport,
    outputs: report_lib.LabelReport) -> report_lib.LabelReport:
  """Lets a model have a say in the order of labels, by ranks.

  Its say is the squared share of the wrong labels that it has not learnt by
  heart, by the estimate of `frozen`; none if it agrees with fewer labels than
  `frozen` predicts unseen. How many labels are wrong is left to `frozen`.
  """
  agreed, rate = outputs.trust.accuracy, frozen.noise_rate
  if agreed < frozen.trust.accuracy or rate <= 0.:
    return frozen
  say = min(1., (1. - agreed) / rate)**2
  ranks = stats.rankdata(frozen.quality) + say * stats.rankdata(outputs.quality)
  wrong = np.empty_like(frozen.wrong_probability)
  wrong[np.argsort(-ranks, kind='stable')] = np.sort(frozen.wrong_probability)
  wrong = np.where(frozen.certain, 0., wrong)
  return dataclasses.replace(
      frozen, quality=1. - wrong, wrong_probability=wrong).flag()


def _choose(reports):
  """Returns the kind of evidence to take.

  A model that agrees with more labels than are right, by the estimate from
  what training could not spoil, has learnt wrong ones by heart: neither its
  features nor its outputs can be trusted. Otherwise its features are taken if
  they predict more than twice as many labels beyond chance without having seen
  them: a little of what is learnt by heart is in them, too.
  """
  frozen, features, outputs = (
      reports.get(kind) for kind in ('frozen', 'features', 'outputs'))
  if features is None:
    return 'outputs' if frozen is None else 'frozen'
  if frozen is None:
    by_heart = features.is_issue.sum() < outputs.is_issue.sum()
    return 'outputs' if by_heart else 'features'
  by_heart = outputs.trust.accuracy > 1. - frozen.noise_rate
  known, learnt = (report.trust.accuracy - report.trust.chance
                   for report in (frozen, features))
  better = learnt > 2. * max(known, 0.)
  return 'features' if better and not by_heart else 'frozen'


def _judge_by_outputs(
    outputs, head, label_smoothing, given, ids, certain, prints):
  """Returns the report of what the model itself thinks of its labels."""
  kept = given.is_labelled
  classes, certain = given.classes[kept], certain[kept]
  evidence = evidence_lib.weigh(evidence_lib.squared_distances(
      outputs, head.num_classes, label_smoothing), classes)
  quality = np.where(certain, 1., evidence.quality)
  is_issue = evidence.is_issue & ~certain
  probabilities = ops.convert_to_numpy(
      heads.probabilities(outputs, head.num_classes))
  nearest = np.argsort(-probabilities, axis=1, kind='stable')[:, :_NEAREST]
  matrix, stderr = transitions.estimate(
      np.where(is_issue, evidence.alternative, classes), classes,
      head.num_classes)
  return report_lib.LabelReport(
      ids=ids[kept],
      class_names=given.class_names,
      given=classes,
      alternative=evidence.alternative,
      quality=quality,
      wrong_probability=1. - quality,
      is_issue=is_issue,
      threshold=evidence.threshold,
      nearest_classes=nearest,
      nearest_probabilities=np.take_along_axis(probabilities, nearest, axis=1),
      transition_matrix=matrix,
      transition_stderr=stderr,
      noise_rate=float(np.mean(is_issue)),
      noise_rate_kind='the share of flagged labels',
      trust=trust_lib.assess(
          classes, nearest[:, 0], is_issue, given.class_names,
          kind='in-sample',
          conflicts=trust_lib.num_conflicts(prints[kept], classes)),
      certain=certain,
      pred_probs=probabilities)


def _likelihoods(outputs, given, alternative, head, label_smoothing):
  """Returns what the distribution of each example says about its label."""
  num_classes = head.num_classes
  outputs = ops.convert_to_tensor(outputs)
  loc, diag, *columns = heads.rows(outputs)
  log_target = ops.log(heads.read_labels(
      given, outputs, num_classes).smoothed(label_smoothing, outputs.dtype))
  residual = log_target[..., :-1] - log_target[..., -1:] - loc
  given_nll, other_nll = (
      losses.nll(labels, outputs, label_smoothing, num_classes)
      for labels in (given, alternative))
  white = normal.whiten(
      residual, diag, ops.stack(columns, axis=-2) if columns else None)
  values = {
      'log_likelihood_ratio': other_nll - given_nll,
      'residual_norm': ops.sqrt(
          normal.squared_norm(head.temperature * residual)),
      'label_term': normal.squared_norm(white),
      'noise_scale': head.temperature * _root_mean_square_scale(diag, columns),
  }
  return {name: ops.convert_to_numpy(value) for name, value in values.items()}


def _root_mean_square_scale(diag, columns):
  """Returns sqrt(trace(S S^T) / D), S = diag(d) + V V^T, for each example."""
  trace = ops.sum(diag**2, axis=-1)
  if columns:
    factor = ops.stack(columns, axis=-1)
    gram = ops.matmul(ops.swapaxes(factor, -1, -2), factor)
    trace += 2. * ops.sum(diag[..., None] * factor**2, [-2, -1])
    trace += ops.sum(gram**2, [-2, -1])
  return ops.sqrt(trace / diag.shape[-1])

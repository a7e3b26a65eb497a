"""`audit_labels`: from a model and labelled examples to a report."""

from collections.abc import Sequence
import functools
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from ln_tfp import heads
from ln_tfp import losses
from ln_tfp.audit import evidence as evidence_lib
from ln_tfp.audit import examples as examples_lib
from ln_tfp.audit import report as report_lib
from ln_tfp.audit import transitions
from ln_tfp.audit import trust as trust_lib

_NEAREST = 5


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
) -> report_lib.LabelReport:
  """Says which of the labels that a model was trained on look wrong.

  The model disbelieves labels that do not fit the rest of the data, also those
  that it was trained on: one training with `ln_tfp.nll` on all examples is
  enough, without folds. How the quality of a label and the threshold for
  issues are derived is written in `ln_tfp.audit.evidence` and docs/audit.md.

  Args:
    model: Keras model whose output comes from a `LogisticNormalHead`, trained
      on `x` and `y`.
    x: array of examples, or a structure of arrays if the model has several
      inputs; or a `tf.data.Dataset` of batches `(x, y)`, which is read once.
      The report has the order of that reading: a dataset that shuffles cannot
      be told apart afterwards.
    y: labels: integers `[N]` or `[N, 1]`, or one-hot rows `[N, K]`. None for a
      dataset.
    ids: what the examples are called in the report, by default 0, 1, ...
    class_names: names of the K classes, by default '0', '1', ...
    batch_size: number of examples of an array that the model sees at a time.
    label_smoothing: that of the loss in training.
    certain: bool `[N]`, labels that are known to be right, such as those that
      somebody has decided; none by default.

  Returns:
    A `LabelReport`.
  """
  head = find_head(model)
  if not 0 < label_smoothing <= 1:
    raise ValueError('Argument `label_smoothing` must be in (0, 1]. Received: '
                     f'label_smoothing={label_smoothing}.')
  num_classes = head.num_classes
  if class_names is None:
    class_names = [str(k) for k in range(num_classes)]
  if len(set(class_names)) != num_classes or len(class_names) != num_classes:
    raise ValueError(
        f'Argument `class_names` must have {num_classes} different names, one '
        f'for each class. Received: class_names={class_names}.')
  outputs, given, prints, kept = _run(
      model, head, examples_lib.batches(x, y, batch_size), label_smoothing)
  if ids is None:
    ids = np.arange(len(given))
  if len(ids) != len(given):
    raise ValueError(f'Argument `ids` must have {len(given)} entries, one for '
                     f'each example. Received: {len(ids)}.')
  certain = _check_certain(certain, len(given))
  evidence = evidence_lib.weigh(
      evidence_lib.squared_distances(outputs, num_classes, label_smoothing),
      given)
  class_names = tuple(str(name) for name in class_names)
  quality = np.where(certain, 1., evidence.quality)
  is_issue = evidence.is_issue & ~certain
  probabilities = heads.probabilities(outputs, num_classes).numpy()
  nearest = np.argsort(-probabilities, axis=1, kind='stable')[:, :_NEAREST]
  matrix, stderr = transitions.estimate(
      np.where(is_issue, evidence.alternative, given), given, num_classes)
  return report_lib.LabelReport(
      ids=np.asarray(ids),
      class_names=class_names,
      given=given,
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
          given, nearest[:, 0], is_issue, class_names, kind='in-sample',
          conflicts=trust_lib.num_conflicts(prints, given)),
      certain=certain,
      pred_probs=probabilities,
      examples=kept,
      **_likelihoods(
          outputs, given, evidence.alternative, head, label_smoothing))


def _check_certain(certain, num):
  """Returns a mask of the right shape."""
  if certain is None:
    return np.zeros(num, bool)
  certain = np.asarray(certain)
  if certain.dtype != bool or certain.shape != (num,):
    raise ValueError(
        f'Argument `certain` must be a bool array of shape [{num}]. Received: '
        f'shape={certain.shape}, dtype={certain.dtype}.')
  return certain


def find_head(model: keras.Model) -> heads.LogisticNormalHead:
  """Returns the head of a model, wherever it is nested."""
  layers = (
      model._flatten_layers() if isinstance(model, keras.Model) else ())
  found = [layer for layer in layers
           if isinstance(layer, heads.LogisticNormalHead)]
  if len(found) != 1:
    raise ValueError(
        'Argument `model` must be a Keras model with one LogisticNormalHead, '
        'whose output is that of the model. Received: '
        f'{type(model).__name__} with {len(found)} of them.')
  return found[0]


def _run(model, head, batches, label_smoothing):
  """Returns outputs, labels, fingerprints, and the worst examples."""
  keeper = examples_lib.Keeper()
  outputs, given, prints, start = [], [], [], 0
  for inputs, labels in batches:
    packed = _outputs(model, head, inputs, start)
    labels = examples_lib.to_classes(labels, head.num_classes, start)
    if len(labels) != len(packed):
      raise ValueError(
          'Argument `x` must have one label for each example. Received: '
          f'{len(labels)} labels for {len(packed)} examples.')
    distances = evidence_lib.squared_distances(
        packed, head.num_classes, label_smoothing)
    keeper.add(
        inputs, start, evidence_lib.plain_ratio(distances, labels))
    outputs.append(packed)
    given.append(labels)
    prints.append(_fingerprints(inputs))
    start += len(labels)
  if not given:
    raise ValueError('Argument `x` must have at least one example.')
  return *map(np.concatenate, (outputs, given, prints)), keeper.examples


def _fingerprints(inputs):
  """Returns the fingerprints of a batch of one or several inputs."""
  return functools.reduce(
      lambda whole, part: whole * np.uint64(31) + part,
      map(trust_lib.fingerprints, keras.tree.flatten(inputs)))


def _outputs(model, head, inputs, start):
  """Returns the packed outputs of a batch whose first example is `start`."""
  packed = np.asarray(model(inputs, training=False))
  if packed.ndim != 3 or packed.shape[1] < 2 or packed.shape[2] != head.dims:
    raise ValueError(
        'Argument `model` must return the output of its LogisticNormalHead, of '
        f'shape [N, 2 + R, {head.dims}]. Received: an output of shape '
        f'{packed.shape}.')
  if not np.all(np.isfinite(packed)):
    raise ValueError(
        'Argument `model` must have finite outputs. Received: NaN or infinity '
        f'among those for examples {start} to {start + len(packed) - 1}.')
  return packed


def _likelihoods(outputs, given, alternative, head, label_smoothing):
  """Returns what the distribution of each example says about its label."""
  num_classes = head.num_classes
  outputs = tf.constant(outputs)
  distribution = heads.to_distribution(outputs)
  target = heads.read_labels(
      tf.constant(given), outputs, num_classes).smoothed(
          label_smoothing, outputs.dtype)
  given_nll, other_nll = (
      losses.nll(tf.constant(labels), outputs, label_smoothing, num_classes)
      for labels in (given, alternative))
  residual = head.temperature * distribution.residual(target)
  return {
      'log_likelihood_ratio': (other_nll - given_nll).numpy(),
      'residual_norm': tf.linalg.norm(residual, axis=-1).numpy(),
      'label_term': distribution.label_term(target).numpy(),
      'noise_scale': head.temperature * _root_mean_square_scale(distribution),
  }


def _root_mean_square_scale(distribution):
  """Returns sqrt(trace(S S^T) / D), S = diag(d) + V V^T, for each example."""
  diag = distribution.scale_diag
  trace = tf.reduce_sum(diag**2, axis=-1)
  factor = distribution.scale_factor
  if factor is not None:
    gram = tf.matmul(factor, factor, transpose_a=True)
    trace += 2. * tf.reduce_sum(diag[..., tf.newaxis] * factor**2, [-2, -1])
    trace += tf.reduce_sum(gram**2, [-2, -1])
  return tf.sqrt(trace / diag.shape[-1]).numpy()

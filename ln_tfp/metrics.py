"""Keras metrics that read the packed output of a `LogisticNormalHead`.

They know which direction is better, so that `EarlyStopping('val_accuracy')` and
its like need no `mode`. Keras gives the sample weights of `fit` to
`compile(weighted_metrics=...)` alone: labels that only a weight of zero excuses
belong there, or get an `ignore_class`.
"""

from typing import Any

import keras
from keras import ops

from ln_tfp import checks
from ln_tfp import heads
from ln_tfp import labels as labels_lib

Tensor = labels_lib.Tensor


class _Packed(keras.metrics.Metric):
  """What the metrics share: their arguments, and how they read a batch.

  Args:
    num_classes: As in `ln_tfp.nll`.
    dummy_class: Whether the dummy class is predicted, too.
    ignore_class: Labels that are this number neither count nor fail.
    name: Name of the metric.
    dtype: Dtype of the metric.
  """

  _direction = 'down'  # where Keras looks for it

  def __init__(self, num_classes: int | None, dummy_class: bool,
               ignore_class: int | None, name: str, dtype: Any):
    super().__init__(name=name, dtype=dtype)
    self.num_classes = heads.check_num_classes(num_classes)
    self.dummy_class = dummy_class
    self.ignore_class = labels_lib.check_ignore_class(ignore_class)

  def _read(self, y_true, y_pred, sample_weight):
    """Returns labels, logits and weights, the last `[...]` or `None`."""
    y_pred = heads.check_packed(y_pred)
    num_dims = len(y_pred.shape) - 2
    mask = labels_lib.mask_of(y_pred)
    if sample_weight is not None:
      sample_weight = ops.cast(
          labels_lib.align_weights(sample_weight, num_dims), self.dtype)
    y_true = labels_lib.without_uncounted(
        y_true, num_dims, sample_weight, mask)
    labels = heads.read_labels(
        y_true, y_pred, self.num_classes, self.ignore_class,
        classes_only=not self.dummy_class)
    logits = heads.predictive_logits(
        y_pred, self.num_classes, self.dummy_class)
    weights = None
    for part in (sample_weight, mask, labels.counted):
      if part is not None:
        part = ops.cast(part, self.dtype)
        weights = part if weights is None else weights * part
    return labels, logits, weights

  def get_config(self):
    return {
        'name': self.name,
        'dtype': self.dtype,
        'num_classes': self.num_classes,
        'dummy_class': self.dummy_class,
        'ignore_class': self.ignore_class,
    }


class _PackedMean(_Packed):
  """The mean of `_values` over examples."""

  def __init__(self, *args):
    super().__init__(*args)
    self.total, self.count = (
        self.add_variable((), 'zeros', name=name)
        for name in ('total', 'count'))

  def update_state(self, y_true: Tensor, y_pred: Tensor,
                   sample_weight: Tensor | None = None):
    labels, logits, weights = self._read(y_true, y_pred, sample_weight)
    values = ops.cast(self._values(labels, logits), self.dtype)
    weights = _fill(weights, values)
    self.total.assign_add(ops.sum(weights * values))
    self.count.assign_add(ops.sum(weights))

  def _values(self, labels, logits):
    raise NotImplementedError

  def result(self):
    return ops.divide_no_nan(self.total, self.count)


@keras.saving.register_keras_serializable(package='ln_tfp')
class Accuracy(_PackedMean):
  """Share of examples whose likeliest class is the label.

  A label of no class, a row of zeros, is never met.

  Args:
    num_classes: As in `ln_tfp.nll`.
    dummy_class: Whether to let the dummy class compete, too (predicting it is
      an error), as the paper's authors did.
    name: Name of the metric.
    dtype: Dtype of the metric.
    ignore_class: Labels that are this number neither count nor fail.
  """

  _direction = 'up'

  def __init__(self, num_classes: int | None = None, dummy_class: bool = False,
               name: str = 'accuracy', dtype: Any = None,
               ignore_class: int | None = None):
    super().__init__(num_classes, dummy_class, ignore_class, name, dtype)

  def _values(self, labels, logits):
    return _hits(labels, logits)


@keras.saving.register_keras_serializable(package='ln_tfp')
class PredictiveNLL(_PackedMean):
  """Mean of `-log p(label)` under the prediction `S_C(mu / tau)`.

  It is comparable with the cross entropy of a softmax classifier, unlike the
  loss, which is a density.

  Args:
    num_classes: As in `ln_tfp.nll`.
    dummy_class: Whether to normalise over all `D + 1` classes, as in the
      paper's calibration table, instead of over K.
    name: Name of the metric.
    dtype: Dtype of the metric.
    ignore_class: Labels that are this number neither count nor fail.
  """

  def __init__(self, num_classes: int | None = None, dummy_class: bool = False,
               name: str = 'predictive_nll', dtype: Any = None,
               ignore_class: int | None = None):
    super().__init__(num_classes, dummy_class, ignore_class, name, dtype)

  def _values(self, labels, logits):
    log_p = ops.log_softmax(logits)
    target = labels.distribution(log_p.dtype)[..., :log_p.shape[-1]]
    return labels.finish(-ops.sum(target * log_p, axis=-1))


@keras.saving.register_keras_serializable(package='ln_tfp')
class ExpectedCalibrationError(_Packed):
  """Mean gap between confidence and accuracy over bins of confidence.

  Args:
    num_bins: Number of bins of equal width in [0, 1].
    num_classes: As in `ln_tfp.nll`.
    dummy_class: Whether to predict over all `D + 1` classes instead of K.
    name: Name of the metric.
    dtype: Dtype of the metric.
    ignore_class: Labels that are this number neither count nor fail.
  """

  def __init__(self, num_bins: int = 15, num_classes: int | None = None,
               dummy_class: bool = False,
               name: str = 'expected_calibration_error', dtype: Any = None,
               ignore_class: int | None = None):
    super().__init__(num_classes, dummy_class, ignore_class, name, dtype)
    self.num_bins = checks.whole('num_bins', num_bins, 1)
    # Per bin: the sum of weights, and of weights times (accuracy - confidence).
    self.weights_sum, self.gaps_sum = (
        self.add_variable((self.num_bins,), 'zeros', name=name)
        for name in ('weights_sum', 'gaps_sum'))

  def update_state(self, y_true: Tensor, y_pred: Tensor,
                   sample_weight: Tensor | None = None):
    labels, logits, weights = self._read(y_true, y_pred, sample_weight)
    hits = ops.cast(_hits(labels, logits), self.dtype)
    confidence = ops.cast(ops.max(ops.softmax(logits), axis=-1), self.dtype)
    weights, gaps = calibration_gaps(
        hits, confidence, _fill(weights, hits), self.num_bins)
    self.weights_sum.assign_add(weights)
    self.gaps_sum.assign_add(gaps)

  def result(self):
    return ops.divide_no_nan(
        ops.sum(ops.abs(self.gaps_sum)), ops.sum(self.weights_sum))

  def get_config(self):
    return {**super().get_config(), 'num_bins': self.num_bins}


def calibration_gaps(
    hits: Tensor, confidence: Tensor, weights: Tensor,
    num_bins: int) -> tuple[Tensor, Tensor]:
  """Returns the sums of weights and of weighted gaps per bin of confidence.

  Bin b holds the confidences in (b / num_bins, (b + 1) / num_bins], and a gap
  is `hit - confidence`. Over the bins, `sum(|gaps|) / sum(weights)` is the
  expected calibration error.

  Args:
    hits: `[...]`, 1. where the prediction is right and 0. elsewhere.
    confidence: `[...]`, the largest probability.
    weights: `[...]`.
    num_bins: Number of bins of equal width in [0, 1].

  Returns:
    Two tensors `[num_bins]` of the dtype of `confidence`.
  """
  bins = ops.cast(ops.ceil(confidence * num_bins), 'int32') - 1
  membership = ops.one_hot(
      ops.clip(bins, 0, num_bins - 1), num_bins, dtype=confidence.dtype)
  axes = list(range(len(confidence.shape)))
  total = lambda values: ops.tensordot(values, membership, [axes, axes])
  return total(weights), total(weights * (hits - confidence))


def _hits(labels, logits):
  """Returns 1. where the likeliest class is the label and 0. elsewhere."""
  predicted = ops.cast(ops.argmax(logits, axis=-1), 'int32')
  return labels.finish(
      ops.cast(ops.equal(predicted, labels.classes()), logits.dtype))


def _fill(weights, values):
  """Returns weights, ones if there are none, of the shape of `values`."""
  if weights is None:
    return ops.ones_like(values)
  return ops.broadcast_to(weights, ops.shape(values))

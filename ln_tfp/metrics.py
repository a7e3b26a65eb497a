"""Keras metrics that read the packed output of a `LogisticNormalHead`."""

import keras
import tensorflow as tf

from ln_tfp import heads
from ln_tfp import losses


class _PackedMean(keras.metrics.MeanMetricWrapper):
  """A mean over examples of a function of labels and packed outputs."""

  def __init__(self, function, num_classes, dummy_class, name, dtype):
    super().__init__(function, name=name, dtype=dtype,
                     num_classes=num_classes, dummy_class=dummy_class)
    self.num_classes = num_classes
    self.dummy_class = dummy_class

  def get_config(self):
    return {
        'name': self.name,
        'dtype': self.dtype,
        'num_classes': self.num_classes,
        'dummy_class': self.dummy_class,
    }


@keras.saving.register_keras_serializable(package='ln_tfp')
class Accuracy(_PackedMean):
  """Share of examples whose likeliest class is the label.

  Args:
    num_classes: As in `ln_tfp.nll`.
    dummy_class: Whether to let the dummy class compete, too (predicting it is
      an error), as the paper's authors did.
    name: Name of the metric.
    dtype: Dtype of the metric.
  """

  def __init__(self, num_classes=None, dummy_class=False, name='accuracy',
               dtype=None):
    super().__init__(_hits, num_classes, dummy_class, name, dtype)


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
  """

  def __init__(self, num_classes=None, dummy_class=False, name='predictive_nll',
               dtype=None):
    super().__init__(_predictive_nll, num_classes, dummy_class, name, dtype)


@keras.saving.register_keras_serializable(package='ln_tfp')
class ExpectedCalibrationError(keras.metrics.Metric):
  """Mean gap between confidence and accuracy over bins of confidence.

  Args:
    num_bins: Number of bins of equal width in [0, 1].
    num_classes: As in `ln_tfp.nll`.
    dummy_class: Whether to predict over all `D + 1` classes instead of K.
    name: Name of the metric.
    dtype: Dtype of the metric.
  """

  def __init__(self, num_bins=15, num_classes=None, dummy_class=False,
               name='expected_calibration_error', dtype=None):
    super().__init__(name=name, dtype=dtype)
    if num_bins < 1:
      raise ValueError('Argument `num_bins` must be positive. Received: '
                       f'num_bins={num_bins}.')
    self.num_bins = num_bins
    self.num_classes = num_classes
    self.dummy_class = dummy_class
    # Per bin: the sum of weights, and of weights times (accuracy - confidence).
    self.weights_sum, self.gaps_sum = (
        self.add_variable((num_bins,), 'zeros', name=name)
        for name in ('weights_sum', 'gaps_sum'))

  def update_state(self, y_true, y_pred, sample_weight=None):
    # Keras keeps the mask of a masked sequence as an attribute of the tensor.
    mask = getattr(y_pred, '_keras_mask', None)
    hits = _hits(y_true, y_pred, self.num_classes, self.dummy_class)
    confidence = tf.reduce_max(heads.probabilities(
        y_pred, self.num_classes, self.dummy_class), axis=-1)
    weights = _weights(sample_weight, mask, confidence)
    bins = tf.cast(tf.math.ceil(confidence * self.num_bins), tf.int32) - 1
    bins = tf.clip_by_value(bins, 0, self.num_bins - 1)
    membership = tf.one_hot(bins, self.num_bins, dtype=weights.dtype)
    axes = list(range(weights.shape.rank))
    for variable, values in ((self.weights_sum, weights),
                             (self.gaps_sum, weights * (hits - confidence))):
      total = tf.tensordot(values, membership, [axes, axes])
      variable.assign_add(tf.cast(total, variable.dtype))

  def result(self):
    return tf.math.divide_no_nan(
        tf.reduce_sum(tf.abs(tf.convert_to_tensor(self.gaps_sum))),
        tf.reduce_sum(tf.convert_to_tensor(self.weights_sum)))

  def get_config(self):
    return {
        'name': self.name,
        'dtype': self.dtype,
        'num_bins': self.num_bins,
        'num_classes': self.num_classes,
        'dummy_class': self.dummy_class,
    }


def _labels(y_true, y_pred, num_classes):
  dims = y_pred.shape[-1]
  return losses.Labels(
      tf.convert_to_tensor(y_true), y_pred.shape[:-2], dims, num_classes)


def _hits(y_true, y_pred, num_classes, dummy_class):
  """Returns 1. where the likeliest class is the label and 0. elsewhere."""
  y_pred = heads.check_packed(y_pred)
  logits = heads.predictive_logits(y_pred, num_classes, dummy_class)
  predicted = tf.argmax(logits, axis=-1, output_type=tf.int32)
  labels = _labels(y_true, y_pred, num_classes)
  return labels.poison(
      tf.cast(tf.equal(predicted, labels.classes()), logits.dtype))


def _predictive_nll(y_true, y_pred, num_classes, dummy_class):
  """Returns `-log p(label)` of each example."""
  y_pred = heads.check_packed(y_pred)
  log_p = tf.nn.log_softmax(
      heads.predictive_logits(y_pred, num_classes, dummy_class))
  labels = _labels(y_true, y_pred, num_classes)
  target = labels.distribution(log_p.dtype)[..., :log_p.shape[-1]]
  return labels.poison(-tf.reduce_sum(target * log_p, axis=-1))


def _weights(sample_weight, mask, like):
  """Returns sample weights and mask as one tensor of the shape of `like`."""
  weights = tf.ones_like(like)
  if sample_weight is not None:
    sample_weight = tf.cast(sample_weight, like.dtype)
    if sample_weight.shape.rank == like.shape.rank + 1:
      sample_weight = tf.squeeze(sample_weight, axis=-1)
    while sample_weight.shape.rank < like.shape.rank:
      sample_weight = sample_weight[..., tf.newaxis]
    weights *= sample_weight
  if mask is not None:
    weights *= tf.cast(mask, like.dtype)
  return weights

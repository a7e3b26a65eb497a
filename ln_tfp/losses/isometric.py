"""The likelihood of symmetric targets, without a dummy class, and SGN's."""

from __future__ import annotations

import math
from typing import Any

import keras
from keras import ops

from ln_tfp import checks
from ln_tfp import heads
from ln_tfp import labels as labels_lib
from ln_tfp import normal
from ln_tfp.losses import base


def isometric_nll(
    y_true: base.Tensor, y_pred: base.Tensor, label_smoothing: float = .001,
    ignore_class: int | None = None, *, shift_to: base.Tensor | None = None,
    shift: base.Tensor | float = 0.) -> base.Tensor:
  """Returns minus the log density of the isometric log-ratio of the labels.

  A label y becomes `q = (1 - t) onehot(y) + t / K` and this the point
  `clr(q) = log q - mean(log q)` of the plane of K numbers that sum to zero: all
  classes have equal norms and distances, without a dummy class. The density is
  that of a normal distribution in the plane (the isometric log-ratio of q is
  `H clr(q)` with an orthonormal basis H of it, the Helmert matrix for instance;
  the density does not depend on which). Mean and factor are K outputs each,
  which are centred here; no K x K matrix is needed.

  With `shift` w it is the loss of SGN (Englesson and Azizpour, 2024, "Robust
  classification via regression for learning with noisy labels"): the target is
  `(1 - w) clr(q) + w m` with the mean m of another network's outputs, which
  gets no gradient.

  Args:
    y_true: Labels, see `ln_tfp.labels`.
    y_pred: Output of a `LogisticNormalHead(K)`, `[..., 2 + R, K]`, whose
      diagonal is the same for all classes ('full', 'isotropic', 'identity').
    label_smoothing: `t` in (0, 1].
    ignore_class: Labels that do not count.
    shift_to: Output of the other network's head; None for no shift.
    shift: w in [0, 1], a number or a scalar tensor.

  Returns:
    Float tensor `[...]`.
  """
  t = checks.between('label_smoothing', label_smoothing, 0, 1, open_below=True)
  loc, diag, *columns = heads.rows(y_pred)
  size = loc.shape[-1]
  labels = labels_lib.Labels(y_true, y_pred.shape[:-2], size, ignore_class)
  target = _targets(labels, t, loc.dtype)
  if shift_to is not None:
    shift = ops.convert_to_tensor(shift, loc.dtype)  # exact for a float
    other = ops.stop_gradient(centred(heads.rows(shift_to)[0]))
    target = (1. - shift) * target + shift * other
  energy = normal.energy(
      target - centred(loc), diag, *(centred(column) for column in columns))
  # The plane has a dimension less than the vectors.
  energy -= ops.log(diag[..., 0])
  return labels.finish(energy + .5 * (size - 1) * math.log(2. * math.pi))


def _targets(labels, t, dtype):
  if labels.is_soft:
    return centred(ops.log(labels.smoothed(t, dtype)))
  size = labels.num_classes
  high = math.log((1. - t + t / size) / (t / size))
  return high * (labels.distribution(dtype) - 1. / size)


def centred(x: base.Tensor) -> base.Tensor:
  """Returns vectors less their mean over the last axis."""
  return x - ops.mean(x, axis=-1, keepdims=True)


@keras.saving.register_keras_serializable(package='ln_tfp')
class IsometricNLL(base.LabelLoss):
  """`isometric_nll` as a Keras loss, for a `LogisticNormalHead`.

  The prediction is the softmax of the mean, as with `ln_tfp.nll`: the metrics,
  `ln_tfp.probabilities` and `ln_tfp.to_classifier` serve both.

  ```python
  model = keras.Sequential([backbone, ln_tfp.LogisticNormalHead(10)])
  model.compile('adam', loss=ln_tfp.losses.IsometricNLL())
  ```

  Args:
    label_smoothing: `t` in (0, 1].
    ignore_class: Labels that are this number neither count nor fail.
    reduction: As of every Keras loss.
    name: As of every Keras loss.
    dtype: As of every Keras loss.
  """

  num_event_dims = 2

  def __init__(self, label_smoothing: float = .001,
               ignore_class: int | None = None,
               reduction: str | None = 'sum_over_batch_size',
               name: str = 'isometric_nll', dtype=None):
    super().__init__(ignore_class, reduction, name, dtype)
    self.label_smoothing = checks.between(
        'label_smoothing', label_smoothing, 0, 1, open_below=True)

  def call(self, y_true, y_pred):
    return isometric_nll(
        y_true, y_pred, self.label_smoothing, self.ignore_class)

  def arguments(self) -> dict[str, Any]:
    return {'label_smoothing': self.label_smoothing}

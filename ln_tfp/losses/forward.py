"""Forward loss correction (Patrini et al., 2017)."""

from typing import Any

import keras
from keras import ops
import numpy as np

from ln_tfp import backend
from ln_tfp import checks
from ln_tfp.losses import base


def forward_correction(
    y_true: base.Tensor, y_pred: base.Tensor, transition: Any,
    ignore_class: int | None = None, from_logits: bool = True) -> base.Tensor:
  """Returns `-log (p T)_y`, `[...]`; see `ForwardCorrection`.

  Args:
    y_true: Labels, see `ln_tfp.labels`; for soft ones it is the mean over them.
    y_pred: Logits `[..., K]`.
    transition: T, `[K, K]`.
    ignore_class: Labels that do not count.
    from_logits: False if `y_pred` are probabilities.
  """
  matrix = check_transition(transition)
  labels, logits = base.read_logits(y_true, y_pred, from_logits, ignore_class)
  if len(matrix) != labels.num_classes:
    raise ValueError(
        'Argument `transition` must have a row and a column for each of '
        f'{labels.num_classes} classes. Received: shape {matrix.shape}.')
  log_p = ops.log_softmax(logits)
  if not labels.is_soft:
    with np.errstate(divide='ignore'):  # log 0 = -inf is meant
      log_columns = ops.convert_to_tensor(np.log(matrix.T), logits.dtype)
    log_joint = log_p + ops.take(log_columns, labels.classes(), axis=0)
    return labels.finish(-ops.logsumexp(log_joint, axis=-1))
  target = labels.distribution(logits.dtype)
  log_noisy = backend.log_of_product(log_p, matrix)
  return labels.finish(-ops.sum(target * log_noisy, axis=-1))


@keras.saving.register_keras_serializable(package='ln_tfp')
class ForwardCorrection(base.LabelLoss):
  """`-log (p T)_y` with a given noise transition matrix T.

  The matrix may come from a model trained with cross entropy. The prediction
  is the softmax itself, without T.

  ```python
  transition = ln_tfp.losses.estimate_transition(
      keras.ops.softmax(first.predict(images)))
  model.compile('adam', loss=ln_tfp.losses.ForwardCorrection(transition))
  ```

  Args:
    transition: T, `[K, K]`, `T[i][j] = P(label j | class i)`.
    ignore_class: Labels that are this number neither count nor fail.
    from_logits: False if the model ends in a softmax.
    reduction: As of every Keras loss.
    name: As of every Keras loss.
    dtype: As of every Keras loss.
  """

  def __init__(self, transition: Any, ignore_class: int | None = None,
               from_logits: bool = True,
               reduction: str | None = 'sum_over_batch_size',
               name: str = 'forward_correction', dtype=None):
    super().__init__(ignore_class, reduction, name, dtype)
    self.transition = check_transition(transition)
    self.from_logits = from_logits

  def call(self, y_true, y_pred):
    return forward_correction(
        y_true, y_pred, self.transition, self.ignore_class, self.from_logits)

  def arguments(self):
    return {'transition': self.transition.tolist(),
            'from_logits': self.from_logits}


def estimate_transition(
    probabilities: Any, percentile: float | None = 97) -> np.ndarray:
  """Estimates T from a classifier's probabilities on noisily labelled data.

  For each class i the anchor is the example whose probability of i is at the
  percentile (or the highest, where `percentile` is None); its probabilities
  are row i.

  Args:
    probabilities: Array `[N, K]`.
    percentile: In [0, 100], or None.

  Returns:
    A float64 array `[K, K]` whose rows sum to one.
  """
  if percentile is not None:
    checks.between('percentile', percentile, 0, 100)
  probabilities = np.asarray(probabilities, np.float64)
  if probabilities.ndim != 2 or not len(probabilities):
    raise ValueError(
        'Argument `probabilities` must be [N, K] with N >= 1. '
        f'Received: shape {probabilities.shape}.')
  sums = probabilities.sum(axis=1)
  if not (np.all(probabilities >= 0) and np.all((sums > 0) & (sums < np.inf))):
    raise ValueError(
        'Argument `probabilities` must be finite and not negative, nor all '
        f'zero in a row. Received: rows that sum to {sums.min()} to '
        f'{sums.max()}, smallest entry {probabilities.min()}.')
  if percentile is None:
    anchors = np.argmax(probabilities, axis=0)
  else:
    levels = np.percentile(
        probabilities, percentile, axis=0, method='higher')
    anchors = np.argmax(probabilities == levels, axis=0)
  rows = probabilities[anchors]
  return rows / rows.sum(axis=1, keepdims=True)


def check_transition(transition: Any) -> np.ndarray:
  """Returns T as a float64 array, or raises if it is none."""
  try:
    matrix = np.asarray(transition, np.float64)
  except (TypeError, ValueError) as error:
    raise ValueError('Argument `transition` must be a square matrix of numbers.'
                     f' Received: transition={transition!r}.') from error
  if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
    raise ValueError(
        'Argument `transition` must be a square matrix. '
        f'Received: shape {matrix.shape}.')
  if not (matrix >= 0).all() or np.abs(matrix.sum(axis=1) - 1).max() > 1e-4:
    raise ValueError(
        'Argument `transition` must have rows of probabilities that sum to '
        f'one. Received: rows that sum to {matrix.sum(axis=1)}, smallest '
        f'entry {matrix.min()}.')
  return matrix

"""Forward loss correction (Patrini et al., 2017)."""

import dataclasses
from typing import ClassVar

import numpy as np
import tensorflow as tf

from experiments.methods import base
from experiments.methods import ce


@dataclasses.dataclass(frozen=True)
class Forward(base.LogitsMethod):
  """`-log (p T)_y` with a given noise transition matrix T.

  The matrix comes from a model trained with cross entropy:

      transition = estimate_transition(probabilities)
      method = Forward().with_transition(transition)

  Attributes:
    estimate_from: Which weights of that model give T, 'last' or 'best' (by
      noisy validation accuracy).
    transition: T, K rows of K probabilities, `T[i][j] = P(label j | class i)`.
      It is an estimate, not a hyperparameter, and not in `hyperparameters()`.
  """

  name: ClassVar[str] = 'Forward'
  estimate_from: str = 'last'
  transition: tuple[tuple[float, ...], ...] | None = None

  def __post_init__(self):
    if self.estimate_from not in ('last', 'best'):
      raise ValueError(
          "Argument `estimate_from` must be 'last' or 'best'. "
          f'Received: estimate_from={self.estimate_from!r}.')
    if self.transition is not None:
      matrix = _checked(self.transition)
      object.__setattr__(  # the dataclass is frozen
          self, 'transition', tuple(map(tuple, matrix.tolist())))

  def hyperparameters(self):
    return {'estimate_from': self.estimate_from}

  def requires(self):
    return ce.CE()

  @classmethod
  def estimate(cls, probabilities, dataset):
    return estimate_transition(probabilities, dataset.anchor_percentile)

  def use(self, result):
    return self.with_transition(
        result.transition_estimates[self.estimate_from])

  def taken(self):
    return self.transition

  def with_transition(self, transition) -> 'Forward':
    """Returns the same method with this matrix, `[K, K]`."""
    return dataclasses.replace(self, transition=transition)

  def loss(self, labels, outputs, *, num_classes, seed, step, ids):
    del seed, step, ids  # nothing random
    if self.transition is None:
      raise ValueError(
          'Forward needs a transition matrix for its loss; see '
          '`with_transition` and `estimate_transition`.')
    matrix = np.asarray(self.transition)
    if len(matrix) != num_classes:
      raise ValueError(
          f'Argument `transition` must be [{num_classes}, {num_classes}]. '
          f'Received: shape {matrix.shape}.')
    with np.errstate(divide='ignore'):  # log 0 = -inf is meant
      log_column = tf.constant(np.log(matrix.T), outputs.dtype)
    log_joint = tf.nn.log_softmax(outputs) + tf.gather(log_column, labels)
    return base.nan_outside(
        -tf.reduce_logsumexp(log_joint, axis=-1), labels, num_classes)

  @classmethod
  def grid(cls, dataset):
    del dataset  # nothing to search
    yield cls()


def estimate_transition(probabilities, percentile: float | None = 97):
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
    base.check_range('percentile', percentile, 0, 100)
  probabilities = np.asarray(probabilities, np.float64)
  if probabilities.ndim != 2 or not len(probabilities):
    raise ValueError(
        'Argument `probabilities` must be [N, K] with N >= 1. '
        f'Received: shape {probabilities.shape}.')
  if percentile is None:
    anchors = np.argmax(probabilities, axis=0)
  else:
    levels = np.percentile(
        probabilities, percentile, axis=0, method='higher')
    anchors = np.argmax(probabilities == levels, axis=0)
  rows = probabilities[anchors]
  return rows / rows.sum(axis=1, keepdims=True)


def _checked(transition):
  matrix = np.asarray(transition, np.float64)
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

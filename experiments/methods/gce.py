"""Generalised cross entropy (Zhang and Sabuncu, 2018)."""

import dataclasses
import math
from typing import ClassVar

import tensorflow as tf

from experiments.methods import base

_LOG_MIN_PROBABILITY = math.log(1e-7)


@dataclasses.dataclass(frozen=True)
class GCE(base.LogitsMethod):
  """`(1 - p_y^q) / q`, without truncation; p_y is clipped to [1e-7, 1].

  From cross entropy (q -> 0) to the mean absolute error (q = 1). The clipping
  means that an example with p_y < 1e-7 has no gradient.

  Attributes:
    q: In (0, 1].
  """

  name: ClassVar[str] = 'GCE'
  q: float = 0.7

  def __post_init__(self):
    if not 0 < self.q <= 1:
      raise ValueError(
          f'Argument `q` must be in (0, 1]. Received: q={self.q}.')

  def loss(self, labels, outputs, *, num_classes, seed, step, ids):
    del num_classes, seed, step, ids  # nothing random
    log_p = -base.cross_entropy(labels, outputs)
    log_p = tf.maximum(log_p, _LOG_MIN_PROBABILITY)
    # expm1 keeps the digits that 1 - p^q loses for small q.
    return -tf.math.expm1(self.q * log_p) / self.q

  @classmethod
  def grid(cls, dataset):
    del dataset  # the same everywhere
    for q in (.1, .3, .5, .7, .9):
      yield cls(q=q)

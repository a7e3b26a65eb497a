"""`ln_tfp.nll` beside cross entropy and beside TFP's own composition.

Loss and gradient in the network's outputs: packed tensors `[B, 2 + R, K]` for
LN and for TFP's composition, logits `[B, K]` for Keras's sparse categorical
cross entropy. TFP's composition is not compiled: XLA cannot. Takes about five
minutes on two idle cores.
"""

import itertools

import keras
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from benchmarks import timing
import ln_tfp

_ROUNDS, _ROUNDS_OF_LARGE = 40, 7
_LARGE = 2_000_000  # numbers in one tensor
_SMOOTHING = .01
tfb, tfd = tfp.bijectors, tfp.distributions


def cross_entropy(labels, logits):
  return keras.losses.sparse_categorical_crossentropy(
      labels, logits, from_logits=True)


def composition(labels, packed):
  """The loss through TFP's generic transformed distribution."""
  classes = packed.shape[-1] + 1
  normal = tfd.MultivariateNormalDiagPlusLowRank(
      loc=packed[:, 0], scale_diag=packed[:, 1],
      scale_perturb_factor=tf.linalg.matrix_transpose(packed[:, 2:]))
  distribution = tfd.TransformedDistribution(normal, tfb.SoftmaxCentered())
  targets = (1. - _SMOOTHING) * tf.one_hot(labels, classes)
  return -distribution.log_prob(targets + _SMOOTHING / classes)


def value_and_gradient(loss, labels, outputs, jit_compile):
  """A compiled function of nothing: the mean loss and its gradient."""
  @tf.function(jit_compile=jit_compile)
  def function(labels, outputs):
    with tf.GradientTape() as tape:
      tape.watch(outputs)
      value = tf.reduce_mean(loss(labels, outputs))
    return value, tape.gradient(value, outputs)

  def call():
    value, gradient = function(labels, outputs)
    value.numpy()  # waits for it
    return gradient

  return call


def make_outputs(batch_size: int, num_classes: int, rank: int):
  """Labels, logits and packed tensors of the size of a network's first."""
  rng = np.random.default_rng(0)
  labels = tf.constant(rng.integers(num_classes, size=batch_size), tf.int32)
  logits = tf.constant(rng.normal(size=[batch_size, num_classes]), tf.float32)
  factor = rng.normal(size=[batch_size, rank, num_classes])
  packed = np.concatenate(
      [logits.numpy()[:, None], np.full([batch_size, 1, num_classes], .5),
       factor], axis=1)
  return labels, logits, tf.constant(packed, tf.float32)


def goal(batch_size: int, num_classes: int, rank: int, jit: bool) -> str:
  """The most that LN may take, in units of cross entropy."""
  if rank > 1:
    return ''
  if num_classes == 10_000:
    return '<= 4' if jit else ''
  if num_classes == 1000:
    return '<= 3.5' if jit else '<= 2.2'
  if batch_size > 128:
    return ''
  return '<= 1.1' if jit else '<= 1.3'


def measure_case(batch_size: int, num_classes: int, rank: int):
  """The rows of one size."""
  labels, logits, packed = make_outputs(batch_size, num_classes, rank)
  size = f'B={batch_size}, K={num_classes:,}, rank {rank}'
  large = batch_size * num_classes * (2 + rank) > _LARGE
  rows = []
  for jit in (False, True):
    contestants = {
        'LN': value_and_gradient(ln_tfp.nll, labels, packed, jit),
        'CE': value_and_gradient(cross_entropy, labels, logits, jit)}
    if not jit:
      contestants['TFP'] = value_and_gradient(
          composition, labels, packed, False)
    times = timing.take_turns(
        {name: timing.repeat(call, .02) for name, call in contestants.items()},
        _ROUNDS_OF_LARGE if large else _ROUNDS)
    kind = 'compiled' if jit else 'not compiled'
    rows.append(timing.ratio(
        f'LN / CE, {size}, {kind}', times, 'LN', 'CE',
        goal(batch_size, num_classes, rank, jit)))
    if not jit:
      required = (batch_size, num_classes, rank) == (1024, 1000, 1)
      rows.append(timing.ratio(
          f'TFP / LN, {size}, {kind}', times, 'TFP', 'LN',
          '>= 2' if required else ''))
  return rows


def measure() -> list[timing.Row]:
  """All rows."""
  rows = []
  for case in itertools.product(
      (128, 1024), (10, 100, 1000, 10_000), (1, 4)):
    rows += measure_case(*case)
  return rows

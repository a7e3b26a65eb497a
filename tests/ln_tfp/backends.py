"""The losses on fixed inputs, under whatever backend Keras has."""

import functools

import keras
from keras import ops
import numpy as np

import ln_tfp
from ln_tfp import losses

B, K = 12, 5
MATRIX = .7 * np.eye(K) + .3 * np.roll(np.eye(K), 1, axis=1)


def value_and_gradient(loss, y_true, y_pred):
  """Returns `loss(y_true, y_pred)`, `[B]`, and the gradient of its sum."""
  y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
  if keras.backend.backend() == 'jax':
    import jax

    @jax.jit
    def both(y_true, y_pred):
      value, pull = jax.vjp(lambda outputs: loss(y_true, outputs), y_pred)
      return value, pull(ops.ones_like(value))[0]

    value, gradient = both(y_true, y_pred)
  elif keras.backend.backend() == 'torch':
    import torch
    y_pred.requires_grad_()
    value = loss(y_true, y_pred)
    gradient, = torch.autograd.grad(value.sum(), [y_pred])
  else:
    import tensorflow as tf
    with tf.GradientTape() as tape:
      tape.watch(y_pred)
      value = loss(y_true, y_pred)
    gradient = tape.gradient(value, y_pred)
  return ops.convert_to_numpy(value), ops.convert_to_numpy(gradient)


def cases():
  """Yields names, losses and outputs of the head that the loss is for."""
  rng = np.random.default_rng(0)

  def packed(rank, dims=K):
    return np.stack([
        rng.normal(size=[B, dims]), rng.uniform(.5, 2., [B, dims]),
        *rng.normal(size=[rank, B, dims])], axis=1).astype('float32')

  for rank in range(4):
    yield f'LN of rank {rank}', ln_tfp.nll, packed(rank)
  yield 'isometric', losses.isometric_nll, packed(1)[:, [0, 2]] ** 2 + .1
  yield 'LN without dummy class', functools.partial(
      losses.nll, num_classes=K), packed(1, K - 1)
  logits = rng.normal(0., 3., [B, K]).astype('float32')
  for loss in (
      losses.generalized_cross_entropy, losses.symmetric_cross_entropy,
      losses.normalized_reverse_cross_entropy,
      losses.active_negative_cross_entropy, losses.asymmetric_gce,
      losses.taylor_cross_entropy, losses.bootstrapping,
      losses.epsilon_softmax):
    yield loss.__name__, loss, logits
  yield 'forward', functools.partial(
      losses.forward_correction, transition=MATRIX), logits
  for gradient in ('fused', 'log_softmax'):
    yield f'NAN {gradient}', functools.partial(
        losses.noise_against_noise, sigma=.5, seed=3, step=7,
        gradient=gradient), logits
  for rank in (0, 2):
    outputs = rng.normal(size=[B, K, 2 + rank]).astype('float32')
    outputs[..., 1] = np.abs(outputs[..., 1])
    yield f'Het of rank {rank}', functools.partial(
        losses.heteroscedastic_nll, samples=50, temperature=.5, seed=3,
        step=7), outputs


def losses_and_gradients():
  """Returns arrays by the names of losses, for whole and for soft labels."""
  rng = np.random.default_rng(1)
  labels = {'whole': rng.integers(0, K, B).astype('int32'),
            'soft': rng.dirichlet(np.ones(K), B).astype('float32')}
  results = {}
  for name, loss, outputs in cases():
    for form, y_true in labels.items():
      results[f'{name}, {form}'], results[f'{name}, {form}, gradient'] = (
          value_and_gradient(loss, y_true, outputs))
  return results

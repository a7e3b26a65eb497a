"""`ln_tfp.losses.monte_carlo` in `keras.ops`, for backends that compile.

The samples come in chunks, and the gradient makes the logits of a chunk once
more, so that memory beyond the parameters and the noise is that of one chunk
and, for each chunk, of numbers `[batch, K]`.
"""

from typing import Any

import keras
from keras import ops
import numpy as np

from ln_tfp import backend

Tensor = Any

_CHUNK = 2**22  # numbers in one chunk of logits, [samples, batch, K]: 16 MB


def nll(labels: Tensor, packed: Tensor, noise: Tensor,
        temperature: float = 1.) -> Tensor:
  """Returns `-log mean_s softmax(z_s)[label]`, `[batch]`."""
  target = backend.one_hot(labels, packed.shape[1], dtype=packed.dtype)
  return cross_entropy(target, packed, noise, temperature)


def cross_entropy(target: Tensor, packed: Tensor, noise: Tensor,
                  temperature: float = 1.) -> Tensor:
  """Returns `-sum_k target_k log mean_s softmax(z_s)[k]`, `[batch]`."""
  return -ops.sum(target * _log_mean(packed, noise, temperature), axis=-1)


def probabilities(packed: Tensor, noise: Tensor,
                  temperature: float = 1.) -> Tensor:
  """Returns `mean_s softmax(z_s)`, `[batch, K]`."""
  return ops.exp(_log_mean(packed, noise, temperature))


def _log_mean(packed, noise, temperature):
  """Returns `log mean_s softmax(z_s)`, `[batch, K]`."""
  packed = ops.convert_to_tensor(packed) / temperature
  batch, num_classes, columns = packed.shape
  total = noise.shape[0]
  size = int(np.clip(_CHUNK // max(batch * num_classes, 1), 1, total))
  padding = -total % size
  noise = ops.pad(ops.cast(noise, packed.dtype), [[0, padding], [0, 0]])
  noise = ops.reshape(noise, [-1, size, num_classes + columns - 2])
  # What pads the last chunk has a probability of zero.
  offset = np.zeros([total + padding, 1, 1], np.float32)
  offset[total:] = -np.inf
  offset = ops.convert_to_tensor(
      offset.reshape([-1, size, 1, 1]), packed.dtype)

  def add(carry, chunk):
    peak, scaled_sum = carry
    e, f = chunk[0][:, None, :num_classes], chunk[0][:, num_classes:]
    logits = packed[..., 0] + packed[..., 1] * e + ops.tensordot(
        f, packed[..., 2:], [[1], [2]])
    log_p = ops.log_softmax(logits) + chunk[1]
    new_peak = ops.stop_gradient(
        ops.maximum(peak, ops.max(log_p, axis=0)))
    scaled_sum = scaled_sum * ops.exp(peak - new_peak) + ops.sum(
        ops.exp(log_p - new_peak), axis=0)
    return (new_peak, scaled_sum), None

  # Finite, since minus infinity less itself is none.
  start = ops.full([batch, num_classes], np.finfo(np.float32).min / 2)
  start = ops.cast(start, packed.dtype)
  (peak, scaled_sum), _ = ops.scan(
      keras.remat(add), (start, ops.zeros_like(start)), (noise, offset))
  return peak + ops.log(scaled_sum) - np.log(total)

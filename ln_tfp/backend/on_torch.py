"""PyTorch's part of `ln_tfp.backend`, where the functions are described."""

from typing import Any

import keras
from keras import ops
import numpy as np
import torch

from ln_tfp import random
from ln_tfp.backend.on_others import first_id as first_id
from ln_tfp.backend.on_others import log_of_product as log_of_product

_INT64 = np.iinfo(np.int64)


def read_labels(labels: Any) -> torch.Tensor:
  """Returns a tensor; integers are int64, its largest for those beyond."""
  if not ops.is_tensor(labels):
    labels = np.asarray(labels)
    if labels.dtype == np.uint64:
      labels = np.minimum(labels, np.uint64(_INT64.max))
    if labels.dtype.kind in 'bui':
      labels = labels.astype(np.int64)
    labels = ops.convert_to_tensor(labels)
  return labels if labels.is_floating_point() else labels.to(torch.int64)


def require(result: torch.Tensor, valid: torch.Tensor, values: torch.Tensor,
            message: str) -> torch.Tensor:
  """Returns `result`, or fails and shows one of the values that are invalid."""
  if valid.device.type == 'meta' or bool(valid.all()):
    return result
  position = int(valid.reshape(-1).to(torch.int32).argmin())
  rows = values.reshape(-1, *values.shape[valid.ndim:])
  raise ValueError(f'{message} {rows[position].tolist()}')


def normal(seed: Any, step: Any, ids: Any, num: int) -> torch.Tensor:
  """Returns standard normal numbers for each example of a training step.

  The twin of `random.normal(seed, step, ids[:, np.newaxis], np.arange(num))`,
  in float32. Integers of 64 bits wrap around, whatever their sign.

  Args:
    seed: Python integer or scalar integer tensor.
    step: Python integer or scalar integer tensor.
    ids: integers `[batch]`.
    num: how many numbers for each example.

  Returns:
    A float32 tensor `[batch, num]`.
  """
  counters = [_to_int64(counter) for counter in (
      seed, step, ids, np.arange(num))]
  counters[2] = counters[2][:, None]
  # Where only shapes matter some are on the device 'meta', the others are not.
  devices = {counter.device.type: counter.device for counter in counters}
  device = devices.get('meta', counters[2].device)
  state = _signed(random.bits(random.NORMAL_STREAM))
  for counter in counters:
    mixed = _mix(counter.to(device) + _signed(random.GOLDEN))
    state = _mix(mixed ^ state)
  radius = (_shifted(state, 40).to(torch.float32) + 0.5) * 2.**-24
  angle = (state & 0xFFFFFF).to(torch.float32) * 2.**-24
  return torch.sqrt(-2. * torch.log(radius)) * torch.cos(2. * np.pi * angle)


def next_seed(generator: keras.random.SeedGenerator,
              y_pred: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
  """Returns two integers, new at every call."""
  del y_pred  # the generator has a state
  seed, step = _to_int64(generator.next())
  return seed, step


def one_hot(x: torch.Tensor, num_classes: int,
            dtype: str = 'float32') -> torch.Tensor:
  """Returns `[..., num_classes]`."""
  return ops.cast(ops.equal(x[..., None], places(num_classes)), dtype)


def places(count: int) -> torch.Tensor:
  """Returns 0, 1, ..., count - 1."""
  return ops.arange(count, dtype='int64')


def _signed(value: Any) -> int:
  """Returns 64 bits as the integer that PyTorch has for them."""
  return int(np.uint64(value).astype(np.int64))


def _to_int64(counter: Any) -> torch.Tensor:
  if isinstance(counter, (int, np.ndarray, np.integer)):
    counter = ops.convert_to_tensor(
        random.to_uint64(counter).astype(np.int64))
  return counter.to(torch.int64)


def _mix(x: torch.Tensor) -> torch.Tensor:
  """The finaliser, see `ln_tfp.random`."""
  for shift, multiplier in zip(random.SHIFTS, random.MULTIPLIERS):
    x = (x ^ _shifted(x, shift)) * _signed(multiplier)
  return x ^ _shifted(x, random.SHIFTS[2])


def _shifted(x: torch.Tensor, shift: int) -> torch.Tensor:
  """x >> shift, zeros coming in."""
  return (x >> shift) & ((1 << (64 - shift)) - 1)

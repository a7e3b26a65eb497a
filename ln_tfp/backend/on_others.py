"""`ln_tfp.backend` in `keras.ops`, with integers of 32 bits and float32."""

from typing import Any

import keras
from keras import ops
import numpy as np

from ln_tfp import random

Tensor = Any
_INT32 = np.iinfo(np.int32)


def read_labels(labels: Any) -> Tensor:
  """Returns a tensor; integers are int32, and beyond it one that is no class.

  Else 2**32 would become 0: JAX cuts arrays when it makes tensors of them. When
  they are arguments of what it compiles, as in `fit`, it does so before
  anything of ours is called.
  """
  if ops.is_tensor(labels):
    library, dtype = ops, keras.backend.standardize_dtype(labels.dtype)
  else:
    labels = np.asarray(labels)
    library, dtype = np, labels.dtype.name
  if dtype in ('int64', 'uint32', 'uint64'):
    low = 0 if dtype.startswith('u') else _INT32.min
    labels = library.clip(labels, low, _INT32.max)
  labels = ops.convert_to_tensor(labels)
  if dtype.startswith(('int', 'uint', 'bool')):
    labels = ops.cast(labels, 'int32')
  return labels


def require(result: Tensor, valid: Tensor, values: Tensor,
            message: str) -> Tensor:
  """Returns `result`: what is compiled cannot fail.

  The losses and the metrics of labels that are not `valid` are NaN.
  """
  del valid, values, message
  return result


def normal(seed: Any, step: Any, ids: Any, num: int) -> Tensor:
  """Returns standard normal numbers for each example of a training step.

  The twin of `random.normal(seed, step, ids[:, np.newaxis], np.arange(num))`,
  in float32.

  Args:
    seed: Python integer or scalar integer tensor.
    step: Python integer or scalar integer tensor.
    ids: integers `[batch]`.
    num: how many numbers for each example.

  Returns:
    A float32 tensor `[batch, num]`.
  """
  state = _Halves.of(random.bits(random.NORMAL_STREAM))
  rows = tuple(half[:, None] for half in _Halves.of(ids).both)
  for counter in (_Halves.of(seed), _Halves.of(step), _Halves(*rows),
                  _Halves.of(np.arange(num))):
    mixed = counter.plus(random.GOLDEN).mixed()
    state = state.xor(mixed).mixed()
  high = ops.right_shift(state.high, _uint32(8))
  low = ops.bitwise_and(state.low, _uint32(0xFFFFFF))
  radius = (ops.cast(high, 'float32') + 0.5) * 2.**-24
  angle = ops.cast(low, 'float32') * 2.**-24
  return ops.sqrt(-2. * ops.log(radius)) * ops.cos(2. * np.pi * angle)


def next_seed(generator: keras.random.SeedGenerator,
              y_pred: Tensor) -> tuple[Tensor, Tensor]:
  """Returns two integers, others as soon as the predictions are others.

  A loss keeps no state while it is trained with, and so the second integer is
  a hash of the last digits of the predictions.
  """
  digits = ops.reshape(ops.abs(ops.stop_gradient(y_pred)), [-1]) * 2.**12
  digits = ops.cast((digits - ops.floor(digits)) * 2.**24, 'uint32')
  weights = ops.arange(1, 2 * digits.shape[0], 2, dtype='uint32')
  return ops.convert_to_tensor(generator.state)[0], ops.sum(digits * weights)


def first_id() -> int:
  """Returns a number for the first example of a batch, which is never split."""
  return 0


def places(count: int) -> Tensor:
  """Returns 0, 1, ..., count - 1."""
  return ops.arange(count, dtype='int32')


def log_of_product(log_p: Tensor, matrix: np.ndarray) -> Tensor:
  """Returns `log(exp(log_p) matrix)`, `[..., K]`."""
  log_matrix = np.log(np.maximum(matrix, np.finfo(np.float64).tiny))
  return ops.logsumexp(
      log_p[..., None] + ops.convert_to_tensor(log_matrix, log_p.dtype),
      axis=-2)


class _Halves:
  """Integers of 64 bits as two of 32."""

  def __init__(self, high: Tensor, low: Tensor):
    self.high, self.low = self.both = high, low

  @classmethod
  def of(cls, counter: Any) -> '_Halves':
    """Returns integers of Python, of NumPy, or of a tensor of 32 bits."""
    if isinstance(counter, (int, np.ndarray, np.integer)):
      counter = random.to_uint64(counter)
      return cls(_uint32(counter >> np.uint64(32)),
                 _uint32(counter & np.uint64(0xFFFFFFFF)))
    counter = ops.convert_to_tensor(counter)
    is_negative = counter < ops.cast(0, counter.dtype)
    return cls(ops.where(is_negative, _uint32(0xFFFFFFFF), _uint32(0)),
               ops.cast(counter, 'uint32'))

  def xor(self, other: '_Halves') -> '_Halves':
    return _Halves(ops.bitwise_xor(self.high, other.high),
                   ops.bitwise_xor(self.low, other.low))

  def plus(self, constant: int) -> '_Halves':
    high, low = _split(constant)
    total = self.low + low
    carry = ops.cast(total < low, 'uint32')
    return _Halves(self.high + high + carry, total)

  def times(self, constant: int) -> '_Halves':
    high, low = _split(constant)
    return _Halves(_high_product(self.low, constant & 0xFFFFFFFF) +
                   self.low * high + self.high * low, self.low * low)

  def xor_shifted(self, shift: int) -> '_Halves':
    """x ^ (x >> shift), for less than 32."""
    carried = ops.left_shift(self.high, _uint32(32 - shift))
    return self.xor(_Halves(
        ops.right_shift(self.high, _uint32(shift)),
        ops.bitwise_or(ops.right_shift(self.low, _uint32(shift)), carried)))

  def mixed(self) -> '_Halves':
    """The finaliser, see `ln_tfp.random`."""
    x = self
    for shift, multiplier in zip(random.SHIFTS, random.MULTIPLIERS):
      x = x.xor_shifted(shift).times(multiplier)
    return x.xor_shifted(random.SHIFTS[2])


def _high_product(a, b):
  """The upper half of the product of 32 bits by 32 bits, b a constant."""
  a_high = ops.right_shift(a, _uint32(16))
  a_low = ops.bitwise_and(a, _uint32(0xFFFF))
  b_high, b_low = _uint32(b >> 16), _uint32(b & 0xFFFF)
  middle = a_high * b_low + ops.right_shift(a_low * b_low, _uint32(16))
  cross = ops.bitwise_and(middle, _uint32(0xFFFF)) + a_low * b_high
  return (a_high * b_high + ops.right_shift(middle, _uint32(16)) +
          ops.right_shift(cross, _uint32(16)))


def _split(constant):
  return _uint32(constant >> 32), _uint32(constant & 0xFFFFFFFF)


def _uint32(value):
  return ops.convert_to_tensor(np.asarray(value, np.uint32))

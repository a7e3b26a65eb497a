"""A step of the last layer with thousands of classes.

A step is the last layer, its loss, the gradients in weights and features, and
Adam. B examples of D random features; the contestants are

- Gram: LN through Gram matrices, and tied, with one table for mean and factor;
- packed: LN through the tensor `[B, 3, K]`;
- CE: Keras's sparse categorical cross entropy of a dense layer;
- sampled: sampled softmax with 1,024 classes drawn uniformly. It cannot be
  compiled.

Where there is a goal each is run as it is and compiled, and counts with the
faster; elsewhere nothing is compiled. All B and D are measured with 1,000 and
10,000 classes, which gives the batch size where Gram and CE break even; with
20,000 and 100,000 only some. What would take too long or more memory than the
machine has to spare is left out. Takes some ten minutes on two idle cores.
"""

from collections.abc import Callable
import itertools
import pathlib
import re
import statistics

import keras
import numpy as np
import tensorflow as tf

from benchmarks import loss
from benchmarks import memory
from benchmarks import timing
import ln_tfp
from ln_tfp import gram
from ln_tfp import heads

_SMOOTHING = .01
_SAMPLED = 1024
_BATCHES, _WIDTHS = (256, 1024, 4096), (128, 256, 512)
_GRID = (1_000, 10_000)  # classes
_SIZES = [
    (20_000, 256, 256), (100_000, 256, 128), (100_000, 1024, 256),
    *itertools.product(_GRID, _BATCHES, _WIDTHS)]
_GOALS = {(20_000, 1024, 256): '<= 0.8', (20_000, 4096, 256): '<= 0.3'}
_ROUNDS, _ROUNDS_OF_GOALS, _ROUNDS_OF_LARGE = 4, 3, 2
_ROUNDS_OF_RANKS = 5
_LARGE, _TOO_LARGE = 2e10, 2e11  # multiplications
_SPARED = 6e9  # bytes that are left to others
_FLAT = '<= 0.4'  # a tenth of a tensor [B, K]


class Layer:
  """The last layer of a contestant: its weights and its loss."""

  def __init__(self, *shapes: tuple[int, ...]):
    rng = np.random.default_rng(0)
    self.weights = [
        keras.Variable(rng.normal(scale=.02, size=shape).astype('float32'))
        for shape in shapes]

  def loss(self, labels, features):
    raise NotImplementedError


class Gram(Layer):
  """LN through Gram matrices."""

  def __init__(self, num_classes: int, width: int):
    super().__init__(*[(num_classes, width + 1)] * 2)

  def loss(self, labels, features):
    return self._energy(labels, with_one(features), *self.weights)

  def _energy(self, labels, x, loc, factor, z=None):
    size = loc.shape[0] + 1
    targets = gram.target(
        labels[:, tf.newaxis], tf.ones_like(x[:, :1]), size, _SMOOTHING)
    factor = None if factor is None else factor.value
    return gram.energy(
        loc.value, factor, x, x if z is None else z, targets, 1., True)


class Tied(Gram):
  """The same with `c = F U x`."""

  def __init__(self, num_classes: int, width: int):
    Layer.__init__(self, (num_classes, width + 1), (width + 1, width + 1))

  def loss(self, labels, features):
    loc, kernel = self.weights
    x = with_one(features)
    return self._energy(labels, x, loc, None, tf.matmul(x, kernel))


class Packed(Layer):
  """LN through the packed tensor."""

  def __init__(self, num_classes: int, width: int):
    super().__init__(*[(width, num_classes), (num_classes,)] * 2)

  def loss(self, labels, features):
    kernel, bias, factor_kernel, factor_bias = self.weights
    loc = tf.matmul(features, kernel) + bias
    factor = tf.matmul(features, factor_kernel) + factor_bias
    return ln_tfp.nll(
        labels, heads.pack(loc, tf.ones_like(loc), factor), _SMOOTHING)


class CrossEntropy(Layer):
  """A dense layer and cross entropy."""

  def __init__(self, num_classes: int, width: int):
    super().__init__((width, num_classes), (num_classes,))

  def loss(self, labels, features):
    kernel, bias = self.weights
    return keras.losses.sparse_categorical_crossentropy(
        labels, tf.matmul(features, kernel) + bias, from_logits=True)


class Sampled(Layer):
  """Sampled softmax."""

  def __init__(self, num_classes: int, width: int):
    super().__init__((num_classes, width), (num_classes,))

  def loss(self, labels, features):
    kernel, bias = self.weights
    num_classes = kernel.shape[0]
    labels = tf.cast(labels, tf.int64)[:, tf.newaxis]
    drawn = tf.random.uniform_candidate_sampler(
        labels, 1, _SAMPLED, True, num_classes)
    return tf.nn.sampled_softmax_loss(
        kernel.value, bias.value, labels, features, _SAMPLED, num_classes,
        sampled_values=drawn)


LAYERS = {'Gram': Gram, 'tied': Tied, 'packed': Packed, 'CE': CrossEntropy,
          'sampled': Sampled}


def with_one(features):
  return tf.concat([features, tf.ones_like(features[:, :1])], axis=1)


def make_step(
    name: str, num_classes: int, batch_size: int, width: int,
    jit_compile: bool) -> Callable[[], None]:
  """A step on one batch; it returns when it is done."""
  rng = np.random.default_rng(1)
  labels = tf.constant(rng.integers(num_classes, size=batch_size), tf.int32)
  features = tf.constant(rng.normal(size=(batch_size, width)), tf.float32)
  layer = LAYERS[name](num_classes, width)
  optimizer = keras.optimizers.Adam(1e-3)
  optimizer.build(layer.weights)

  @tf.function(jit_compile=jit_compile, autograph=False)
  def step(labels, features):
    variables = [weight.value for weight in layer.weights]
    with tf.GradientTape() as tape:
      tape.watch(features)
      loss = tf.reduce_mean(layer.loss(labels, features))
    upstream, *gradients = tape.gradient(loss, [features, *variables])
    optimizer.apply(gradients, layer.weights)
    return loss, upstream

  def run():
    step(labels, features)[0].numpy()

  return run


def multiplications(
    name: str, num_classes: int, batch_size: int, width: int) -> float:
  """Those of the large matrices."""
  return {
      'Gram': 7. * num_classes * width**2,
      'tied': 2. * num_classes * width**2,
      'packed': 6. * num_classes * batch_size * width,
      'CE': 3. * num_classes * batch_size * width,
      'sampled': 3. * _SAMPLED * batch_size * width,
  }[name]


def is_measured(
    name: str, num_classes: int, batch_size: int, width: int) -> bool:
  """Whether a contestant takes part."""
  if name == 'sampled' and num_classes <= _SAMPLED:
    return False
  # Weights, gradient, moments and as much again in between; tensors [B, K].
  tables = 2 if name in ('Gram', 'packed') else 1
  logits = {'packed': 12, 'CE': 4}.get(name, 0)
  size = 4. * num_classes * (8 * tables * width + logits * batch_size)
  return (size <= _available() - _SPARED and multiplications(
      name, num_classes, batch_size, width) <= _TOO_LARGE)


def _available() -> float:
  """Bytes of memory that are free."""
  text = pathlib.Path('/proc/meminfo').read_text(encoding='ascii')
  return 1024. * int(re.search(r'MemAvailable:\s*(\d+) kB', text)[1])


def measure_time(
    num_classes: int, batch_size: int, width: int) -> dict[str, list[float]]:
  """Milliseconds a step of each contestant, round by round."""
  size = num_classes, batch_size, width
  modes = (False, True) if size in _GOALS else (False,)
  steps = {
      (name, jit): timing.repeat(make_step(name, *size, jit), .02)
      for name in LAYERS if is_measured(name, *size)
      for jit in modes if not (jit and name == 'sampled')}
  rounds = _ROUNDS
  if size in _GOALS:
    rounds = _ROUNDS_OF_GOALS
  elif multiplications('CE', *size) > _LARGE:
    rounds = _ROUNDS_OF_LARGE
  times = timing.take_turns(steps, rounds)
  best = {}
  for (name, _), taken in times.items():
    if name not in best or statistics.median(taken) < statistics.median(
        best[name]):
      best[name] = taken
  return best


def measure_case(size: tuple[int, int, int]) -> dict[str, timing.Row]:
  """Each contestant in units of cross entropy's time."""
  num_classes, batch_size, width = size
  times = measure_time(*size)
  if 'CE' not in times:
    return {}
  return {
      name: timing.ratio(
          f'{name} / CE, K={num_classes:,}, B={batch_size}, D={width}', times,
          name, 'CE', _GOALS.get(size, '') if name == 'Gram' else '')
      for name in times if name != 'CE'}


def break_even(name: str, num_classes: int, width: int, cases) -> timing.Row:
  """The batch size, in units of D, where a contestant is as fast as CE.

  A straight line through the logarithms of sizes and ratios tells; infinite
  where CE is the faster one with all of them.
  """
  found = [(b, cases[num_classes, b, width][name].value) for b in _BATCHES
           if name in cases.get((num_classes, b, width), {})]
  slope, start = np.polyfit(*np.log(found).T, 1)
  size = np.inf if found[-1][1] > 1. else np.exp(-start / slope)
  return timing.Row(
      f'B / D where {name} and CE break even, K={num_classes:,}, D={width}',
      float(size / width), n=len(found),
      detail=', '.join(f'B={b}: {ratio:.2f}' for b, ratio in found))


def two_steps(
    name: str, num_classes: int, batch_size: int, width: int) -> None:
  run = make_step(name, num_classes, batch_size, width, False)
  run()
  run()


def measure_memory(batch_size: int = 1024, width: int = 256):
  """Peak memory beyond weights, their gradients and Adam's moments."""
  sizes = 10_000, 20_000, 40_000
  rows = []
  for name in LAYERS:
    beyond = []
    for num_classes in sizes:
      peak = memory.rise(two_steps, name, num_classes, batch_size, width)
      tables = 2 if name in ('Gram', 'packed') else 1
      beyond.append(peak - 4e-6 * 4 * tables * num_classes * width)
    rows.append(timing.Row(
        f'MB a thousand classes beyond weights, gradients and Adam, {name}, '
        f'B={batch_size}, D={width}',
        1e3 * float(np.polyfit(sizes, beyond, 1)[0]), n=len(sizes),
        goal=_FLAT if name == 'Gram' else '',
        detail=', '.join(f'{k:,}: {v:.0f} MB' for k, v in zip(sizes, beyond))))
  return rows


def measure_growth(batch_size: int = 1024, width: int = 128):
  """The time over K."""
  rows = []
  for name in ('Gram', 'tied'):
    sizes = [k for k in (10_000, 100_000, 1_000_000)
             if is_measured(name, k, batch_size, width)]
    taken = [
        min(timing.take_turns(
            {name: timing.repeat(
                make_step(name, k, batch_size, width, False))}, 2)[name])
        for k in sizes]
    rows.append(timing.slope(
        f'time of {name} over K, B={batch_size}, D={width}', sizes, taken,
        'ms'))
  return rows


def measure_ranks(batch_size: int, num_classes: int) -> list[timing.Row]:
  """Rank 4 of the packed head beside rank 1: loss and gradient."""
  rows = []
  for jit in (False, True):
    contestants = {}
    for rank in (1, 4):
      labels, _, packed = loss.make_outputs(batch_size, num_classes, rank)
      contestants[f'rank {rank}'] = timing.repeat(
          loss.value_and_gradient(ln_tfp.nll, labels, packed, jit), .02)
    times = timing.take_turns(contestants, _ROUNDS_OF_RANKS)
    rows.append(timing.ratio(
        f'rank 4 / rank 1, B={batch_size}, K={num_classes:,}, '
        + ('compiled' if jit else 'not compiled'), times, 'rank 4', 'rank 1',
        '<= 3'))
  return rows


def measure() -> list[timing.Row]:
  """All rows."""
  cases = {size: measure_case(size) for size in [*_GOALS, *_SIZES]}
  rows = [row for found in cases.values() for row in found.values()]
  rows += [
      break_even(name, k, width, cases) for name in ('Gram', 'tied')
      for k, width in itertools.product(_GRID, _WIDTHS)]
  for case in itertools.product((128, 1024), (10, 100, 1000)):
    rows += measure_ranks(*case)
  return rows + measure_memory() + measure_growth()

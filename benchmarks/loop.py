"""What the training loop costs beside the bare step, and beside `fit`.

    python -m benchmarks.loop

Two comparisons, each with its contestants taking turns in one process:

- LeNet-5, batch 256, images of MNIST's size, CE and Adam: an epoch of the loop
  (order, batches, step, accuracies) against as many calls of a bare
  `tf.function` with the same step on one batch that is a tensor already.
  Expected: at most 1.05 times the time.
- MLP 64-256-256 on digits, batch 64, CE and Adam: epochs of the loop against
  `model.fit` on the same data. Expected: `fit` takes at least 3 times as long.

Takes about three minutes on two idle cores.
"""

from collections.abc import Callable
import statistics
import time

import keras
import numpy as np
import tensorflow as tf

from ln_tfp import data
from ln_tfp import training
from ln_tfp.training import loop as loop_lib
from ln_tfp.training import strategies

_ROUNDS = 15
_LENET_STEPS = 30
_DIGITS_EPOCHS = 10

Contestant = Callable[[], int]  # runs for a while, returns its steps


def make_loop(
    run: training.Run, splits: training.Splits, epochs: int) -> Contestant:
  """Epochs of the loop."""
  loop = loop_lib.Loop(
      run, run.resolve_method(), splits, strategies.create('one'))
  done = 0

  def contestant():
    nonlocal done
    for _ in range(epochs):
      loop.train_epoch(done)
      done += 1
    return epochs * loop.steps_per_epoch

  return contestant


def make_bare_step(
    run: training.Run, splits: training.Splits, steps: int) -> Contestant:
  """Calls of a bare compiled step on one batch."""
  batch = next(data.Batches(
      splits.train.images, splits.train.given, splits.train.ids,
      batch_size=run.batch_size, preprocessing=splits.preprocessing).epoch(0))
  inputs, labels = tf.constant(batch.inputs), tf.constant(batch.labels)
  model = _make_model(run, splits)
  optimizer = keras.optimizers.Adam(run.learning_rate)
  optimizer.build(model.trainable_variables)

  @tf.function
  def step(inputs, labels):
    with tf.GradientTape() as tape:
      logits = model(inputs, training=True)
      loss = tf.reduce_mean(
          tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss

  def contestant():
    for _ in range(steps):
      step(inputs, labels)
    return steps

  return contestant


def make_fit(
    run: training.Run, splits: training.Splits, epochs: int) -> Contestant:
  """Epochs of Keras's own loop."""
  inputs = splits.preprocessing.normalise(splits.train.images)
  labels = splits.train.given
  model = _make_model(run, splits)
  model.compile(
      keras.optimizers.Adam(run.learning_rate),
      keras.losses.SparseCategoricalCrossentropy(from_logits=True),
      metrics=['accuracy'])

  def contestant():
    model.fit(
        inputs, labels, batch_size=run.batch_size, epochs=epochs, verbose=0)
    return epochs * -(-len(labels) // run.batch_size)

  return contestant


def _make_model(
    run: training.Run, splits: training.Splits) -> keras.Model:
  return training.build_model(
      run, run.resolve_method(), splits.input_shape, splits.num_classes)


def lenet_splits(steps: int, batch_size: int) -> training.Splits:
  """Random images of MNIST's size that fill so many batches."""
  rng = np.random.default_rng(0)
  size = steps * batch_size
  images = rng.integers(256, size=[size, 28, 28, 1]).astype(np.uint8)
  labels = rng.integers(10, size=size).astype(np.int32)
  split = training.Split(images, labels, labels, np.arange(size))
  return training.Splits(split, split, split, 10, data.Preprocessing(), {})


def compare(
    first: Contestant, second: Contestant,
    rounds: int = _ROUNDS) -> list[list[float]]:
  """Milliseconds per step of both, round by round."""
  times = [[], []]
  for number in range(rounds + 1):  # the first round warms up
    for contestant, taken in zip((first, second), times):
      begin = time.perf_counter()
      steps = contestant()
      if number:
        taken.append(1e3 * (time.perf_counter() - begin) / steps)
  return times


def report(title: str, first: list[float], second: list[float]) -> None:
  """Prints the times of two contestants and the ratios first / second."""
  ratios = sorted(one / two for one, two in zip(first, second))
  print(
      f'{title}: {min(first):.3f} and {min(second):.3f} ms/step; ratio of the '
      f'minima {min(first) / min(second):.3f}, of the medians '
      f'{statistics.median(first) / statistics.median(second):.3f}, of single '
      f'rounds {ratios[0]:.3f} to {ratios[-1]:.3f} (n={len(first)})')


def main() -> None:
  run = training.Run(
      dataset='mnist', method='CE', model='lenet5', batch_size=256)
  splits = lenet_splits(_LENET_STEPS, run.batch_size)
  report('LeNet-5, loop and bare step', *compare(
      make_loop(run, splits, 1), make_bare_step(run, splits, _LENET_STEPS)))
  run = training.Run(method='CE')
  splits = training.load_splits(run)
  report('digits MLP, fit and loop', *compare(
      make_fit(run, splits, _DIGITS_EPOCHS),
      make_loop(run, splits, _DIGITS_EPOCHS)))


if __name__ == '__main__':
  main()

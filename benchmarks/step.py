"""Whole training steps: LN beside cross entropy, the loop beside others.

- LN / CE: epochs of the training loop with both methods: the MLP on digits,
  LeNet-5 on images of MNIST's size, WRN-16-2 on images of CIFAR's size.
- Loop / bare step: an epoch of the loop (order, batches, step, accuracies)
  against as many calls of a `tf.function` with the same step on one batch that
  is a tensor already; LeNet-5, CE, Adam.
- `fit` / loop: Keras's own loop on digits, with its default settings.

Takes about ten minutes on two idle cores.
"""

import keras
import numpy as np
import tensorflow as tf

from benchmarks import timing
from experiments import data
from experiments import training
from experiments.training import devices
from experiments.training import trainer as trainer_lib

_DIGITS_EPOCHS = 5


def make_loop(
    run: training.Run, splits: data.Source,
    epochs: int = 1) -> timing.Contestant:
  """Epochs of the loop."""
  loop = trainer_lib.Trainer(
      run, run.resolve_method(), splits, devices.create('one'))
  done = 0

  def contestant():
    nonlocal done
    for _ in range(epochs):
      loop.train_epoch(done)
      done += 1
    return epochs * loop.steps_per_epoch

  return contestant


def make_bare_step(
    run: training.Run, splits: data.Source,
    steps: int) -> timing.Contestant:
  """Calls of a bare compiled step on one batch."""
  batch = next(data.Batches(
      splits.train, batch_size=run.batch_size,
      preprocessing=splits.preprocessing).epoch(0))
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
    run: training.Run, splits: data.Source,
    epochs: int) -> timing.Contestant:
  """Epochs of Keras's own loop."""
  inputs = splits.preprocessing.normalise(splits.train.inputs)
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
    run: training.Run, splits: data.Source) -> keras.Model:
  return training.build_model(
      run, run.resolve_method(), splits.input_shape, splits.num_classes)


def random_splits(
    shape: tuple[int, ...], num_classes: int, size: int) -> data.Source:
  """Random images of a shape."""
  rng = np.random.default_rng(0)
  images = rng.integers(256, size=[size, *shape]).astype(np.uint8)
  labels = rng.integers(num_classes, size=size).astype(np.int32)
  examples = data.Examples(images, labels, labels, np.arange(size))
  return data.Source(
      'random', tuple(map(str, range(num_classes))), examples, examples,
      data.Preprocessing(), validation=examples)


def measure_methods(
    name: str, settings: dict, splits: data.Source, epochs: int,
    rounds: int, goal: str) -> timing.Row:
  """LN beside CE."""
  times = timing.take_turns({
      method: make_loop(
          training.Run(method=method, **settings), splits, epochs)
      for method in ('LN', 'CE')}, rounds)
  return timing.ratio(f'LN / CE, {name}', times, 'LN', 'CE', goal)


def measure() -> list[timing.Row]:
  """All rows."""
  digits = training.load_splits(training.Run(method='CE'))
  lenet = dict(dataset='mnist', model='lenet5', batch_size=256)
  wrn = dict(dataset='cifar10', model='wide_resnet', batch_size=128,
             model_arguments={'depth': 16, 'width': 2})
  steps = 30
  mnist = random_splits((28, 28, 1), 10, steps * 256)
  cifar = random_splits((32, 32, 3), 10, 2 * 128)
  rows = [
      measure_methods(
          'MLP on digits, B=64', {}, digits, _DIGITS_EPOCHS, 30, '<= 1.15'),
      measure_methods(
          'LeNet-5, B=256', lenet, mnist, 1, 12, '<= 1.02'),
      measure_methods('WRN-16-2, B=128', wrn, cifar, 1, 8, '<= 1.02'),
  ]
  run = training.Run(method='CE', **lenet)
  times = timing.take_turns(
      {'loop': make_loop(run, mnist), 'bare': make_bare_step(
          run, mnist, steps)}, 12)
  rows.append(timing.ratio(
      'loop / bare step, LeNet-5, B=256', times, 'loop', 'bare', '<= 1.05'))
  run = training.Run(method='CE')
  times = timing.take_turns(
      {'fit': make_fit(run, digits, _DIGITS_EPOCHS),
       'loop': make_loop(run, digits, _DIGITS_EPOCHS)}, 30)
  rows.append(timing.ratio(
      'fit / loop, MLP on digits, B=64', times, 'fit', 'loop', '>= 3'))
  return rows

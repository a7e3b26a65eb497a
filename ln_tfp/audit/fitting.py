"""Trains a Logistic-Normal model for an audit."""

import math
from typing import TextIO

import keras
import numpy as np
import tensorflow as tf

from experiments import data
from experiments import methods
from experiments import models
from experiments.training import progress as progress_lib
from experiments.training import steps

_BATCH_SIZE = 64
_LEARNING_RATE = 1e-3
# Fewer updates leave whole classes unlearnt, which then look mislabelled.
_MIN_UPDATES = 1_200
_MIN_EPOCHS = 15


def choose_backbone(shape: tuple[int, ...]) -> tuple[str, dict[str, int]]:
  """Returns a network of `ln_tfp.models` for inputs, and its arguments.

  Features and tiny images get an MLP, small or grey images LeNet-5, colour
  images from 32 x 32 on a small residual network.

  Args:
    shape: of one input, (F,) or (H, W, C).
  """
  if len(shape) == 1 or min(shape[:2]) < 12:
    return 'mlp', {}
  if min(shape[:2]) < 32 or shape[2] == 1:
    return 'lenet5', {}
  return 'wide_resnet', {'depth': 10, 'width': 1}


def default_epochs(num_examples: int) -> int:
  """Returns the number of epochs that gives a network enough updates."""
  updates = math.ceil(num_examples / _BATCH_SIZE)
  return max(_MIN_EPOCHS, math.ceil(_MIN_UPDATES / updates))


def fit(
    inputs: np.ndarray, labels: np.ndarray, num_classes: int, *,
    method: methods.Method | None = None, backbone: str | None = None,
    epochs: int | None = None, seed: int = 0,
    progress: TextIO | None = None) -> keras.Model:
  """Trains a network on examples as they are; it scales them itself.

  Args:
    inputs: `[N, F]`, or `[N, H, W, C]`.
    labels: integers `[N]`.
    num_classes: K.
    method: by default LN.
    backbone: one of `models.NAMES`, by default `choose_backbone`.
    epochs: by default `default_epochs`.
    seed: of the initial weights and of the order of the examples.
    progress: where to tell how far it is.

  Returns:
    A Keras model, inputs -> outputs of the method's head.
  """
  method = method or methods.get('LN')
  epochs = epochs or default_epochs(len(inputs))
  inputs = np.asarray(inputs, np.float32)
  model = _build(inputs, num_classes, method, backbone, seed)
  optimizer = keras.optimizers.Adam(_LEARNING_RATE)
  optimizer.build(model.trainable_variables)
  step = steps.Step(
      tf.distribute.get_strategy(), model, method, optimizer,
      num_classes=num_classes, seed=seed)
  batches = data.Batches(
      inputs, labels, np.arange(len(inputs)), batch_size=_BATCH_SIZE,
      seed=seed, preprocessing=data.Preprocessing(scale=1.))
  bar = progress_lib.Progress(
      progress, 'training', epochs) if progress else None
  for epoch in range(epochs):
    outcomes = []
    for i, batch in enumerate(batches.epoch(epoch)):
      outcomes.append(step(batch, len(batch.labels))[0])
      if bar:
        bar.step(epoch, i / batches.steps_per_epoch)
    if bar:
      bar.epoch(epoch + 1, float(tf.reduce_mean(outcomes)), None)
  if bar:
    bar.close()
  return model


def _build(inputs, num_classes, method, backbone, seed):
  """Returns scaling, backbone and head as one model."""
  shape = inputs.shape[1:]
  name, arguments = (backbone, {}) if backbone else choose_backbone(shape)
  network = models.build(
      name, shape, method.head(num_classes), seed=seed, **arguments)
  scale, offset = _scaling(inputs)
  raw = keras.Input(shape, name='raw')
  scaled = keras.layers.Rescaling(scale, offset, name='scaling')(raw)
  return keras.Model(raw, network(scaled), name='audited')


def _scaling(inputs):
  """Returns the factors and offsets that bring inputs to a size near one."""
  if inputs.ndim == 2:
    # Features have units of their own.
    std = np.std(inputs, axis=0, dtype=np.float64)
    scale = 1. / np.where(std > 0, std, 1.)
    offset = -np.mean(inputs, axis=0, dtype=np.float64) * scale
    return scale.tolist(), offset.tolist()
  return 1. / max(1e-12, float(np.abs(inputs).max())), 0.

"""Between the process and Keras: embeddings in, plain models and heads out."""

import math
from typing import Any

import keras
import numpy as np

from ln_tfp import heads
from ln_tfp.process import features as features_lib
from ln_tfp.process import fitting
from ln_tfp.process import sources

# Scales from the origin to the data beyond which float32 loses what is told
# apart.
_FAR = 100.


def embed(
    backbone: keras.Model, x: Any, y: Any = None, batch_size: int = 256
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
  """Returns outputs of a backbone `[N, F]`, labels, and weights if any.

  Args:
    backbone: Keras model whose output is `[batch, F]`.
    x: array of inputs, or batches as `LogisticNormalProcess.fit` takes them,
      read once.
    y: labels, where batches have none.
    batch_size: for an array.
  """
  if sources.is_stream(x):
    batches = sources.batches_of(x)()
  else:
    batches = (x[i:i + batch_size] for i in range(0, len(x), batch_size))
  features, labels, weights = [], [], []
  for batch in batches:
    parts = tuple(batch) if isinstance(batch, (tuple, list)) else (batch,)
    features.append(backbone.predict_on_batch(parts[0]))
    labels.extend(parts[1:2])
    weights.extend(parts[2:3])
    if features[-1].ndim != 2:
      raise ValueError(
          'Argument `backbone` must return features of shape [batch, F]. '
          f'Received: an output of shape {features[-1].shape}.')
  if not features:
    raise ValueError('Found array with 0 sample(s) while a minimum of 1 is '
                     'required.')
  if not labels and y is None:
    raise ValueError(
        'Argument `y` must be labels, or the batches must have them. '
        'Received: y=None.')
  return (np.concatenate(features), np.concatenate(labels) if labels else y,
          np.concatenate(weights) if weights else None)


def to_keras(solution: fitting.Solution) -> keras.Model:
  """Returns a model of Keras's own layers: features to probabilities."""
  noise = solution.last.noise
  beta = noise.inverse_temperature
  kernel, bias = _affine(solution)
  last = _dense(beta * kernel, beta * bias + noise.bias, 'softmax')
  features = solution.features
  if isinstance(features, features_lib.Linear):
    inputs = keras.Input([features.num_features])
    if np.all(np.abs(features.shift) <= _FAR * features.scale):
      return keras.Sequential([inputs, last])
    # Far from the origin a bias would cancel most of the product.
    shift = features.shift.astype(np.float32)
    bias = bias + shift.astype(np.float64) @ kernel
    return keras.Sequential([inputs, _normalization(shift), _dense(
        beta * kernel, beta * bias + noise.bias, 'softmax')])
  if not isinstance(features.kernel, features_lib.RBF):
    raise ValueError("`to_keras` knows the kernels 'linear' and 'rbf' alone. "
                     f'Received: {type(features.kernel).__name__}.')
  inputs = keras.Input([features.points.shape[1]])
  return keras.Model(inputs, last(_rbf(features, inputs)))


def initialize_head(
    solution: fitting.Solution, head: heads.LogisticNormalHead,
    label_smoothing: float) -> None:
  """Gives a head the mean of a linear process.

  A label's target is C e_g at temperature 1, C = log((1 - t + t / n) / (t / n))
  for n classes with the dummy class, the process predicts e_g, and the head
  divides its mean by the temperature tau: its mean is tau C mu. Without the
  dummy class logits are differences to those of the last class.
  """
  if not isinstance(solution.features, features_lib.Linear):
    raise ValueError("A head is linear in the features: use kernel='linear'.")
  kernel, bias = _affine(solution)
  if head.num_classes != kernel.shape[1]:
    raise ValueError(
        f'Argument `head` must have {kernel.shape[1]} classes. Received: '
        f'num_classes={head.num_classes}.')
  if not 0 < label_smoothing < 1:
    raise ValueError('Argument `label_smoothing` must be in (0, 1). Received: '
                     f'label_smoothing={label_smoothing}.')
  if not head.built:
    head.build([None, len(kernel)])
  other = label_smoothing / (head.dims + 1)
  scale = head.temperature * math.log((1. - label_smoothing + other) / other)
  if not head.dummy_class:
    kernel = kernel[:, :-1] - kernel[:, -1:]
    bias = bias[:-1] - bias[-1:]
  head.loc.set_weights([scale * kernel, scale * bias])
  head.end_warm_up()  # it knows the classes


def _affine(solution):
  """mu as a linear map of the inputs, or of the kernel's values."""
  last, features = solution.last, solution.features
  if isinstance(features, features_lib.Linear):
    kernel = last.coefficients / features.scale[:, np.newaxis]
    return kernel, last.intercept - features.shift @ kernel
  return features.whiten @ last.coefficients, last.intercept


def _rbf(features, inputs):
  """k(x, Z) by Keras's layers: -|x - z|^2 / (2 l^2) is linear in x and |x|^2.

  One dense layer has all of it. With |x|^2 added behind it, `predict` on
  TensorFlow was seen to be wrong where the same model, called, was right.
  """
  kernel = features.kernel
  shift = kernel.shift.astype(np.float32)  # as the layer has it
  x = _normalization(shift, kernel.scale)(inputs)
  z = (features.points.astype(np.float64) - shift) / kernel.scale
  half = .5 / kernel.length**2
  norms = keras.layers.Dot(axes=-1, dtype='float32')([x, x])
  x = keras.layers.Concatenate(dtype='float32')([x, norms])
  weights = half * np.vstack([2. * z.T, -np.ones([1, len(z)])])
  return _dense(weights, -half * np.sum(z**2, axis=1), 'exponential')(x)


def _normalization(shift, scale=1.):
  return keras.layers.Normalization(
      mean=shift, variance=np.broadcast_to(scale**2, shift.shape),
      dtype='float32')


def _dense(kernel, bias, activation=None):
  """A dense layer of these weights."""
  layer = keras.layers.Dense(
      kernel.shape[1], activation=activation, dtype='float32')
  layer.build([None, len(kernel)])
  layer.set_weights([kernel, bias])
  return layer

"""Trains a small network with a Logistic-Normal head, for an audit.

For inputs without features of their own: images, where there is no pretrained
backbone. Anything larger is for a model of the user's and `audit_labels`.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import math
import random as python_random
from typing import TextIO

import keras
import numpy as np

from ln_tfp import heads
from ln_tfp import losses
from ln_tfp import random
from ln_tfp.audit import progress as progress_lib

BATCH_SIZE = 64
_LEARNING_RATE = 1e-3
# Fewer updates leave whole classes unlearnt, which then look mislabelled.
_MIN_UPDATES = 1_200
_MIN_EPOCHS = 15


def mlp(x):
  """Two layers of 256 units."""
  x = keras.layers.Flatten()(x)
  for _ in range(2):
    x = keras.layers.Dense(256, activation='relu')(x)
  return x


def convolutional(x):
  """Three convolutions with pooling between them, then 84 units."""
  for filters in (6, 16):
    x = keras.layers.Conv2D(filters, 5, padding='same', activation='relu')(x)
    x = keras.layers.MaxPooling2D()(x)
  x = keras.layers.Conv2D(120, 5, padding='same', activation='relu')(x)
  x = keras.layers.Flatten()(x)
  return keras.layers.Dense(84, activation='relu')(x)


def residual(x):
  """Three pre-activated residual blocks of 16, 32 and 64 filters."""
  conv = lambda x, filters, size, stride: keras.layers.Conv2D(
      filters, size, stride, padding='same', use_bias=False,
      kernel_initializer='he_normal')(x)
  activate = lambda x: keras.layers.ReLU()(
      keras.layers.BatchNormalization(momentum=.9, epsilon=1e-5)(x))
  x = conv(x, 16, 3, 1)
  for filters, stride in ((16, 1), (32, 2), (64, 2)):
    y = conv(activate(x), filters, 3, stride)
    y = conv(activate(y), filters, 3, 1)
    if stride > 1:
      x = conv(x, filters, 1, stride)
    x = keras.layers.Add()([x, y])
  return keras.layers.GlobalAveragePooling2D()(activate(x))


NETWORKS = {network.__name__: network
            for network in (mlp, convolutional, residual)}


def choose_network(shape: tuple[int, ...]) -> str:
  """Returns the name of a network for inputs of a shape (F,) or (H, W, C).

  Features and tiny images get an MLP, small or grey images a convolutional
  network, colour images from 32 x 32 on a small residual network.
  """
  if len(shape) == 1 or min(shape[:2]) < 12:
    return 'mlp'
  if min(shape[:2]) < 32 or shape[2] == 1:
    return 'convolutional'
  return 'residual'


def default_epochs(num_examples: int) -> int:
  """Returns the number of epochs that gives a network enough updates."""
  updates = math.ceil(num_examples / BATCH_SIZE)
  return max(_MIN_EPOCHS, math.ceil(_MIN_UPDATES / updates))


def fit(
    inputs: np.ndarray, labels: np.ndarray, num_classes: int, *,
    network: str | None = None,
    head: Callable[[], keras.Layer] | None = None,
    loss: Callable | keras.losses.Loss = losses.nll,
    epochs: int | None = None, seed: int = 0,
    progress: TextIO | None = None,
    callbacks: Sequence[keras.callbacks.Callback] = ()) -> keras.Model:
  """Trains a network on examples as they are; it scales them itself.

      model = fit(images, labels, 10)
      report = ln_tfp.audit_labels(model, images, labels)

  Args:
    inputs: `[N, F]`, or `[N, H, W, C]`.
    labels: integers `[N]`.
    num_classes: K.
    network: one of `NETWORKS`, by default `choose_network`.
    head: makes the last layer, by default a `LogisticNormalHead` without a
      warm-up, after which outputs say less of wrong labels (docs/audit.md).
    loss: that belongs to the head.
    epochs: by default `default_epochs`.
    seed: of the initial weights and of the order of the examples.
    progress: where to tell how far it is.
    callbacks: of the training.

  Returns:
    A Keras model, inputs -> outputs of the head.
  """
  epochs = epochs or default_epochs(len(inputs))
  network = network or choose_network(inputs.shape[1:])
  head = head or (lambda: heads.LogisticNormalHead(num_classes, warm_up=0))
  scale, offset = _scaling(inputs)
  with _seeded(seed):
    raw = keras.Input(inputs.shape[1:], name='raw')
    x = keras.layers.Rescaling(scale, offset, name='scaling')(raw)
    model = keras.Model(raw, head()(NETWORKS[network](x)), name='audited')
  model.compile(keras.optimizers.Adam(_LEARNING_RATE), loss=loss)
  batches = _Batches(inputs, labels, seed)
  callbacks = [*callbacks]
  if progress:
    callbacks.append(_Report(progress, epochs, len(batches)))
  model.fit(batches, epochs=epochs, verbose=0, callbacks=callbacks)
  return model


class _Batches(keras.utils.PyDataset):
  """The examples in an order that follows from the seed and the epoch."""

  def __init__(self, inputs, labels, seed):
    super().__init__()
    self._inputs, self._labels, self._seed = inputs, labels, seed
    self._epoch = 0
    self._shuffle()

  def __len__(self):
    return math.ceil(len(self._labels) / BATCH_SIZE)

  def __getitem__(self, index):
    chosen = self._order[index * BATCH_SIZE:(index + 1) * BATCH_SIZE]
    return (np.asarray(self._inputs[chosen], np.float32),
            self._labels[chosen])

  def on_epoch_end(self):
    self._epoch += 1
    self._shuffle()

  def _shuffle(self):
    self._order = random.order(
        'order', self._seed, self._epoch, np.arange(len(self._labels)))


class _Report(keras.callbacks.Callback):
  """Shows how far the training is."""

  def __init__(self, stream, epochs, steps):
    super().__init__()
    self._bar = progress_lib.Progress(stream, 'training', epochs)
    self._epoch, self._steps, self._note = 0, steps, ''

  def on_train_batch_end(self, batch, logs=None):
    self._bar.update(self._epoch + min(.999, (batch + 1) / self._steps),
                     self._note)

  def on_epoch_end(self, epoch, logs=None):
    self._epoch = epoch + 1
    self._note = f'loss {logs["loss"]:.4g}'
    self._bar.update(self._epoch, self._note)

  def on_train_end(self, logs=None):
    self._bar.close()


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
  """Within it, Keras layers get initial weights that follow from `seed`.

  An initialiser without a seed takes one from Python's `random`, whose state
  is put back at the end.
  """
  state = python_random.getstate()
  python_random.seed(seed)
  try:
    yield
  finally:
    python_random.setstate(state)


def _scaling(inputs):
  """Returns the factors and offsets that bring inputs to a size near one."""
  if inputs.ndim == 2:
    # Features have units of their own.
    std = np.std(inputs, axis=0, dtype=np.float64)
    scale = 1. / np.where(std > 0, std, 1.)
    offset = -np.mean(inputs, axis=0, dtype=np.float64) * scale
    return scale.tolist(), offset.tolist()
  largest = max(abs(float(inputs.min())), abs(float(inputs.max())))
  return 1. / max(1e-12, largest), 0.

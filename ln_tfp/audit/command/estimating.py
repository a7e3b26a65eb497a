"""What an audit will need, told before it begins: seconds and memory.

Operations are counted, and divided by how many a second this machine does in a
small product of matrices. That is right to a factor of two or three, which is
what somebody wants to know who decides whether to wait.
"""

import math
import time

import keras
import numpy as np

from ln_tfp.audit import progress
from ln_tfp.audit.command import fitting
from ln_tfp.audit.command import pretrained

_SIDE = 512  # of the matrices that are multiplied
_INDUCING = 1_000  # features of a kernel, if the process takes one
_EM_SIZE = 10_000_000  # N x K that the noise model is fitted to
_HELD = 50_000_000  # N x K that the closed form holds at most
_TRIED = 8  # images that a backbone embeds to see how long it takes
# Of the speed of products of matrices, in training; and seconds for each batch.
_SHARE = .2
_OVERHEAD = .004


def describe(seconds: float, size: float) -> str:
  """Returns both in words.

  Args:
    seconds: of the work.
    size: bytes.
  """
  return (f'about {progress.duration(max(1., seconds))} and '
          f'{max(size / 2**30, .1):.1f} GB of memory beside TensorFlow')


def closed_form(num: int, width: int, num_classes: int) -> float:
  """Returns the seconds of `audit_features` on `[num, width]`."""
  features = max(width, min(num, _INDUCING))
  operations = (
      2. * num * features * (features + width)  # moments, kernel
      + 12. * features**3  # eigenvectors
      + 16. * num * features * num_classes  # rounds of relabelling
      # The EM, of a sample where there are many.
      + 4_000. * min(num * num_classes, _EM_SIZE))
  return operations / _speed()


def predictions(num: int, num_classes: int, trained: bool) -> int:
  """Returns the bytes of predictions and of matrices of classes.

  Args:
    num: of examples.
    num_classes: K.
    trained: whether a network makes them, all of whose outputs are held: mean,
      scale and a direction of each example.
  """
  held = num * num_classes
  if not trained:
    held = min(held, _HELD)
  return held * 3 * 4 + 3 * 8 * num_classes**2


def training(
    num: int, shape: tuple[int, ...], epochs: int | None) -> float:
  """Returns the seconds of `fitting.fit`."""
  inputs = keras.Input(shape)
  network = keras.Model(
      inputs, fitting.NETWORKS[fitting.choose_network(shape)](inputs))
  operations = 0.
  for layer in network.layers:
    if hasattr(layer, 'kernel'):
      places = math.prod(layer.output.shape[1:-1])
      operations += 2. * places * math.prod(layer.kernel.shape)
  epochs = epochs or fitting.default_epochs(num)
  return epochs * (3. * num * operations / (_SHARE * _speed())
                   + _OVERHEAD * num / fitting.BATCH_SIZE)


def embedding(num: int, embedder: pretrained.Embedder) -> float:
  """Returns the seconds of `pretrained.embed`."""
  images = np.zeros((_TRIED, embedder.size, embedder.size, 3), np.float32)
  embedder.backbone(images)  # the first call compiles
  begin = time.perf_counter()
  embedder.backbone(images)
  return num * (time.perf_counter() - begin) / _TRIED


def _speed():
  """Returns operations a second, the better of three tries."""
  matrix = np.ones((_SIDE, _SIDE), np.float32)
  seconds = []
  for _ in range(3):
    begin = time.perf_counter()
    matrix @ matrix
    seconds.append(time.perf_counter() - begin)
  return 2. * _SIDE**3 / max(min(seconds), 1e-9)

"""The network and the optimiser of a run."""

from collections.abc import Iterator
import contextlib

import keras

from experiments import methods
from experiments import models
from experiments.training import runs


def build_model(
    run: runs.Run, method: methods.Method, input_shape: tuple[int, ...],
    num_classes: int) -> keras.Model:
  """The network of a run with its initial weights, a function of the seed."""
  with _dtype_policy('mixed_bfloat16' if run.mixed_precision else 'float32'):
    return models.build(
        run.model, input_shape, method.head(num_classes), seed=run.seed,
        **dict(run.model_arguments))


def build_optimizer(
    run: runs.Run, model: keras.Model) -> keras.optimizers.Optimizer:
  """The optimiser of a run, with its variables."""
  if run.optimizer == 'adam':
    optimizer = keras.optimizers.Adam(run.learning_rate)
  elif run.optimizer == 'sgd':
    optimizer = keras.optimizers.SGD(
        run.learning_rate, momentum=.9, nesterov=True)
  else:
    optimizer = keras.optimizers.SGD(run.learning_rate)
  optimizer.build(model.trainable_variables)
  return optimizer


@contextlib.contextmanager
def _dtype_policy(name: str) -> Iterator[None]:
  """Layers made inside compute with this policy; the global one comes back.

  bfloat16 has the range of float32 and needs no scaling of the loss.
  """
  before = keras.config.dtype_policy()
  keras.config.set_dtype_policy(name)
  try:
    yield
  finally:
    keras.config.set_dtype_policy(before)

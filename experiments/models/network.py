"""Backbone + head, with initial weights that are a function of a seed."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import inspect
import random
from typing import Any

from etils import epy

from experiments import models

with epy.lazy_imports():  # flags are parsed before TensorFlow is imported
  import keras

NAMES = ('mlp', 'lenet5', 'wide_resnet', 'resnet50')


def arguments(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the arguments of a backbone with their defaults.

  Args:
    name: One of `NAMES`.
    given: Arguments, which must be among them.
  """
  if name not in NAMES:
    raise ValueError(
        f'Argument `model` must be one of {", ".join(NAMES)}. '
        f'Received: model={name!r}.')
  _, *parameters = inspect.signature(getattr(models, name)).parameters.values()
  defaults = {parameter.name: parameter.default for parameter in parameters}
  for key in given:
    if key not in defaults:
      raise ValueError(
          f'{name} has no argument `{key}`; it has '
          f'{", ".join(defaults) or "none"}.')
  return defaults


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
  """Within it, Keras layers get initial weights that follow from `seed`.

  A Keras initialiser without a seed takes one from Python's `random` when its
  layer is constructed. The state of `random` is put back at the end, so that
  neither the past of the process nor its future is touched.
  """
  state = random.getstate()
  random.seed(seed)
  try:
    yield
  finally:
    random.setstate(state)


def build(name: str, input_shape: tuple[int, ...], head: keras.Layer, *,
          seed: int, **backbone_arguments) -> keras.Model:
  """Builds a network: the backbone `name`, then `head`.

  The initial weights, the head's included, are a pure function of the
  arguments. To that end `head` is constructed anew from its configuration:
  the layer given here had already drawn its seeds when it was made.

  Args:
    name: One of `NAMES`.
    input_shape: The shape of one input, without the batch.
    head: A new Keras layer, features `[batch, F]` -> outputs.
    seed: An integer.
    **backbone_arguments: Passed on, e.g. `widths` (mlp), `depth` and `width`
      (wide_resnet), `weights` (resnet50).

  Returns:
    A Keras model that is not compiled.
  """
  arguments(name, backbone_arguments)
  if not isinstance(head, keras.Layer) or head.built:
    raise ValueError(
        'Argument `head` must be a Keras layer that is not built yet, since '
        f'its initial weights are to follow from `seed`. Received: {head!r}.')
  with seeded(seed):
    backbone = getattr(models, name)(tuple(input_shape), **backbone_arguments)
    head = type(head).from_config(head.get_config())
    return keras.Model(backbone.input, head(backbone.output), name=name)

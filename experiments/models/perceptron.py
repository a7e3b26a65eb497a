"""Multilayer perceptron."""

from __future__ import annotations

from collections.abc import Sequence

from etils import epy

with epy.lazy_imports():  # flags are parsed before TensorFlow is imported
  import keras


def mlp(input_shape: tuple[int, ...],
        widths: Sequence[int] = (256, 256)) -> keras.Model:
  """Fully connected ReLU layers on the flattened input.

  The paper's toy experiments use `widths=(2000, 2000)` (Appendix C).
  """
  if not widths or any(width < 1 for width in widths):
    raise ValueError(
        'Argument `widths` must hold at least one positive integer. '
        f'Received: widths={tuple(widths)}.')
  inputs = keras.Input(input_shape, name='inputs')
  x = keras.layers.Flatten(name='flatten')(inputs)
  for i, width in enumerate(widths, start=1):
    x = keras.layers.Dense(width, activation='relu', name=f'dense_{i}')(x)
  return keras.Model(inputs, x, name='mlp')

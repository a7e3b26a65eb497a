"""LeNet-5, the paper's network for MNIST."""

from __future__ import annotations

from etils import epy

with epy.lazy_imports():  # flags are parsed before TensorFlow is imported
  import keras


def lenet5(input_shape: tuple[int, int, int] = (28, 28, 1)) -> keras.Model:
  """Three 5x5 convolutions (6, 16, 120 filters) and a layer of 84 units."""
  conv = lambda filters, name: keras.layers.Conv2D(
      filters, 5, padding='same', activation='relu', name=name)
  inputs = keras.Input(input_shape, name='inputs')
  x = conv(6, 'conv_1')(inputs)
  x = keras.layers.MaxPooling2D(name='pool_1')(x)
  x = conv(16, 'conv_2')(x)
  x = keras.layers.MaxPooling2D(name='pool_2')(x)
  x = conv(120, 'conv_3')(x)
  x = keras.layers.Flatten(name='flatten')(x)
  x = keras.layers.Dense(84, activation='relu', name='dense')(x)
  return keras.Model(inputs, x, name='lenet5')

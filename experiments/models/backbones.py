"""Backbones: layers from inputs to features `[batch, F]`."""

from __future__ import annotations

from collections.abc import Sequence

from etils import epy

from experiments.models import fitting

with epy.lazy_imports():  # flags are parsed before TensorFlow is imported
  import keras


def mlp(input_shape: tuple[int, ...],
        widths: Sequence[int] = (256, 256)) -> keras.Model:
  """Fully connected ReLU layers on the flattened input.

  The paper's toy experiments use `widths=(2000, 2000)` (Appendix C).
  """
  fitting.check_widths(widths)
  inputs = keras.Input(input_shape, name='inputs')
  x = keras.layers.Flatten(name='flatten')(inputs)
  for i, width in enumerate(widths, start=1):
    x = keras.layers.Dense(width, activation='relu', name=f'dense_{i}')(x)
  return keras.Model(inputs, x, name='mlp')


def lenet5(input_shape: tuple[int, int, int] = (28, 28, 1)) -> keras.Model:
  """LeNet-5, the paper's network for MNIST.

  Three 5x5 convolutions (6, 16, 120 filters) and a layer of 84 units.
  """
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


def wide_resnet(input_shape: tuple[int, int, int] = (32, 32, 3),
                depth: int = 28,
                width: int = 2) -> keras.Model:
  """A pre-activation WRN-`depth`-`width`; the paper's CIFAR network is 28-2.

  Zagoruyko and Komodakis (2016): a 3x3 stem of 16 filters, then three groups of
  (depth - 4) / 6 blocks with 16, 32 and 64 times `width` filters and strides 1,
  2 and 2.
  """
  fitting.check_depth(depth)
  if width < 1:
    raise ValueError(
        f'Argument `width` must be positive. Received: width={width}.')
  inputs = keras.Input(input_shape, name='inputs')
  x = _conv(inputs, 16, 'stem')
  for group, (filters, stride) in enumerate([(16, 1), (32, 2), (64, 2)], 1):
    for block in range(1, (depth - 4) // 6 + 1):
      x = _block(x, filters * width, stride if block == 1 else 1,
                 f'group_{group}_block_{block}')
  x = _norm_relu(x, 'final')
  x = keras.layers.GlobalAveragePooling2D(name='pool')(x)
  return keras.Model(inputs, x, name='wide_resnet')


def _block(x, filters, stride, name):
  """x + conv(relu(norm(conv(relu(norm(x))))))."""
  y = _norm_relu(x, f'{name}_1')
  y = _conv(y, filters, f'{name}_conv_1', stride=stride)
  y = _norm_relu(y, f'{name}_2')
  y = _conv(y, filters, f'{name}_conv_2')
  if stride != 1 or x.shape[-1] != filters:
    # The raw input, not the activated one, goes through the projection.
    x = _conv(x, filters, f'{name}_shortcut', stride=stride, size=1)
  return keras.layers.Add(name=f'{name}_add')([x, y])


def _norm_relu(x, name):
  x = keras.layers.BatchNormalization(
      momentum=0.9, epsilon=1e-5, name=f'{name}_norm')(x)
  return keras.layers.ReLU(name=f'{name}_relu')(x)


def _conv(x, filters, name, stride=1, size=3):
  return keras.layers.Conv2D(
      filters, size, strides=stride, padding='same', use_bias=False,
      kernel_initializer='he_normal', name=name)(x)

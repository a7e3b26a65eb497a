"""What happens to pixels between the data set and the network.

Images are padded, cropped and flipped as uint8, a whole batch at a time in
NumPy, and become float32 at the very end.
"""

import dataclasses

from etils import epy
import numpy as np

with epy.lazy_imports():  # flags are parsed before TensorFlow is imported
  from ln_tfp import random


@dataclasses.dataclass(frozen=True)
class Preprocessing:
  """What happens to pixels in training and in evaluation.

  The network's input is (scale * pixels - mean) / std.

  Attributes:
    scale: factor that brings pixels to [0, 1].
    mean: of each channel, after scaling; () for none.
    std: of each channel, after scaling; () for none.
    pad: black pixels added to each side before a random crop of the original
      size, in augmentation only; 0 for no crop.
    flip: whether augmentation mirrors half of the images.
    resize: length that the shorter side of an image file gets; 0 for none.
    crop: side of the square cut out of an image file, in a random place in
      augmentation and in the centre otherwise; 0 for none.
  """
  scale: float = 1. / 255.
  mean: tuple[float, ...] = ()
  std: tuple[float, ...] = ()
  pad: int = 0
  flip: bool = False
  resize: int = 0
  crop: int = 0

  def __post_init__(self):
    if len(self.mean) != len(self.std):
      raise ValueError(
          'Arguments `mean` and `std` must have the same length. '
          f'Received: mean={self.mean}, std={self.std}.')
    if any(std <= 0. for std in self.std):
      raise ValueError(
          f'Argument `std` must be positive. Received: std={self.std}.')
    for name in ('pad', 'resize', 'crop'):
      if getattr(self, name) < 0:
        raise ValueError(
            f'Argument `{name}` must not be negative. '
            f'Received: {name}={getattr(self, name)}.')
    if self.resize < self.crop:
      raise ValueError(
          'Argument `resize` must be at least `crop`. '
          f'Received: resize={self.resize}, crop={self.crop}.')

  def normalise(self, pixels: np.ndarray) -> np.ndarray:
    """Returns float32 inputs of the shape of `pixels`."""
    if not self.mean:
      return np.multiply(pixels, np.float32(self.scale), dtype=np.float32)
    factor, offset = self.affine()
    # Whole rows instead of pixels of three numbers: NumPy's inner loop is then
    # long enough to be eight times as fast.
    *outer, width, channels = pixels.shape
    rows = pixels.reshape(*outer, width * channels)
    inputs = np.multiply(rows, np.tile(factor, width), dtype=np.float32)
    inputs += np.tile(offset, width)
    return inputs.reshape(pixels.shape)

  def augment(self, images: np.ndarray, seed: int, epoch: int, ids) -> (
      np.ndarray):
    """Returns the images `[B, H, W, C]`, flipped and cropped at random.

    The randomness of an image is a function of (seed, epoch, id).
    """
    batch, height, width, channels = images.shape
    # Merging width and channels makes the rows of a crop contiguous.
    rows = np.zeros(
        (batch, height + 2 * self.pad, (width + 2 * self.pad) * channels),
        images.dtype)
    inside = rows.reshape(batch, height + 2 * self.pad, -1, channels)[
        :, self.pad:self.pad + height, self.pad:self.pad + width]
    inside[:] = images
    if self.flip:
      mirrored = np.flatnonzero(self.flips(seed, epoch, ids))
      inside[mirrored] = images[mirrored, :, ::-1]
    windows = np.lib.stride_tricks.sliding_window_view(
        rows, (height, width * channels), axis=(1, 2))
    where = self.crops(seed, epoch, ids)
    top, left = (where.T * (2 * self.pad + 1)).astype(np.int64)
    crops = windows[np.arange(batch), top, channels * left]
    return crops.reshape(images.shape)

  def flips(self, seed: int, epoch: int, ids) -> np.ndarray:
    """Returns which images augmentation mirrors, a mask `[B]`."""
    return random.uniform('flip', seed, epoch, ids) < 0.5

  def crops(self, seed: int, epoch: int, ids) -> np.ndarray:
    """Returns top and left of random crops as shares of the space, `[B, 2]`."""
    axes = np.arange(2)
    return random.uniform('crop', seed, epoch, ids[:, np.newaxis], axes)

  def affine(self) -> tuple[np.ndarray, np.ndarray]:
    """Factor and offset of each channel."""
    if not self.mean:
      return np.float32(self.scale), np.float32(0.)
    mean, std = np.float64(self.mean), np.float64(self.std)
    return (self.scale / std).astype(np.float32), (-mean / std).astype(
        np.float32)

"""Images of a folder, read when they are asked for."""

from collections.abc import Sequence
import os
import pathlib
import typing
from typing import TextIO
import warnings

import numpy as np

from ln_tfp.audit import pillow
from ln_tfp.audit import progress as progress_lib
from ln_tfp.audit.files import dataset

if typing.TYPE_CHECKING:
  from PIL import Image

SUFFIXES = ('.bmp', '.gif', '.jpeg', '.jpg', '.pgm', '.png', '.ppm', '.tif',
            '.tiff', '.webp')
_SHOWN = 256  # side of the pictures of a page
# Larger images are refused: a small file can unpack to gigabytes.
_MAX_PIXELS = 150_000_000


class ImageFolder:
  """A sequence of images.

      folder = ImageFolder(root, ['cat/1.jpg', 'dog/2.jpg'])
      folder[1]             # uint8 [h, w, 3], small enough for a page
      folder.array(32)      # uint8 [N, 32, 32, C], in grey if all images are

  Args:
    root: the folder.
    names: paths of the images in it.
  """

  def __init__(self, root: str | os.PathLike, names: Sequence[str]):
    self._root = pathlib.Path(root)
    self._names = list(names)

  def __len__(self):
    return len(self._names)

  def __getitem__(self, i: int) -> np.ndarray:
    image = read(self._root / self._names[i])
    image.thumbnail((_SHOWN, _SHOWN))
    return np.asarray(image)

  def subset(self, positions: Sequence[int]) -> 'ImageFolder':
    """Returns some of the images."""
    return ImageFolder(self._root, [self._names[i] for i in positions])

  def batch(self, start: int, stop: int, size: int) -> np.ndarray:
    """Returns some images in colour, uint8 `[n, size, size, 3]`."""
    return np.stack([
        np.asarray(read(self._root / name).convert('RGB').resize((size, size)))
        for name in self._names[start:stop]])

  def array(self, size: int, progress: TextIO | None = None) -> np.ndarray:
    """Returns all images, uint8 `[N, size, size, C]`; grey ones have C = 1."""
    bar = progress_lib.Progress(progress, 'reading', len(self))
    images = []
    for i, name in enumerate(self._names):
      images.append(np.asarray(
          read(self._root / name).resize((size, size))))
      bar.update(i + 1)
    bar.close()
    if all(image.ndim == 2 for image in images):
      return np.stack(images)[..., np.newaxis]
    return np.stack([
        image if image.ndim == 3 else np.stack([image] * 3, axis=-1)
        for image in images])


def read(path: str | os.PathLike) -> 'Image.Image':
  """Returns an image in 8 bits, grey ('L') or colour ('RGB'), upright.

  Sixteen bits are scaled to eight, and so are numbers in [0, 1]; other numbers
  have no known black and white and are refused.
  """
  pil = pillow.load()
  path = dataset.regular_file(path)
  try:
    with warnings.catch_warnings():
      warnings.simplefilter('ignore')  # Pillow's, on odd metadata
      # Of a path Pillow maps the file, and scrambles TIFF that is rotated.
      with open(path, 'rb') as stream, pil.Image.open(stream) as image:
        if image.width * image.height > _MAX_PIXELS:
          raise dataset.InputError(
              f'{path}: an image of {image.width:,} x {image.height:,} pixels '
              'is too large.')
        # A PNG or PGM file of mode 'I' has sixteen bits, others have 32.
        is_wide = image.mode == 'I' and image.format not in ('PNG', 'PPM')
        return _to_eight_bits(
            pil.ImageOps.exif_transpose(image), path, is_wide)
  except dataset.InputError:
    raise
  except pil.UnidentifiedImageError as error:
    raise dataset.InputError(
        f'{path}: not a readable image (of no known format).') from error
  except Exception as error:  # Pillow's decoders raise almost anything
    raise dataset.InputError(
        f'{path}: not a readable image ({dataset.reason(error)}).') from error


def _to_eight_bits(image, path, is_wide):
  if image.mode in ('1', 'L'):
    return image.convert('L')
  if image.mode[0] not in 'IF':
    return image.convert('RGB')
  values = np.asarray(image, np.float64)
  low, high = values.min(), values.max()
  full = 65_535. if image.mode[0] == 'I' else 1.
  if is_wide or not (low >= 0. and high <= full):
    expected = 'sixteen bits' if is_wide else f'0 to {full:g}'
    raise dataset.InputError(
        f'{path}: not a readable image (values from {low:g} to {high:g}, where '
        f'{expected} are expected).')
  return pillow.load().Image.fromarray(
      np.round(values * (255. / full)).astype(np.uint8))


def list_classes(root: pathlib.Path) -> list[tuple[str, str]]:
  """Returns the images of a folder with a sub-folder for each class.

  Pairs of a path in the folder and the name of its class, both sorted.
  """
  found = []
  for folder in sorted(path for path in root.iterdir() if path.is_dir()):
    if folder.name.startswith('.'):
      continue
    for path in sorted(folder.rglob('*')):
      if path.suffix.lower() in SUFFIXES and not path.name.startswith('.'):
        found.append((path.relative_to(root).as_posix(), folder.name))
  return found


def check_names(root: pathlib.Path, names: Sequence[str], source: object,
                allow_outside: bool) -> None:
  """Refuses names that leave the folder, and names that occur twice."""
  seen, whole = {}, os.path.abspath(root)
  for i, name in enumerate(names):
    normal = os.path.normpath(name.replace('\\', '/'))
    if not allow_outside and (
        os.path.isabs(normal) or normal.split('/')[0] == '..'):
      raise dataset.InputError(
          f'{source}: {name} is not in the folder; --allow_outside reads it '
          'nevertheless.')
    first = seen.setdefault(os.path.normpath(os.path.join(whole, normal)), i)
    if first != i:
      raise dataset.InputError(
          f'{source}: {name} is listed twice, as examples {first} and {i}.')

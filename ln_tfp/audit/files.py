"""Reads what the command audits: images and labels, from files."""

import csv
import dataclasses
import os
import pathlib

import numpy as np
from PIL import Image

_IMAGE_KEYS = ('images', 'x')
_LABEL_KEYS = ('labels', 'y')


class InputError(ValueError):
  """The input cannot be audited; the message is one line for the user."""


@dataclasses.dataclass(frozen=True, eq=False)
class Dataset:
  """Examples to audit.

  Attributes:
    inputs: `[N, ...]`, numbers.
    labels: int32 `[N]`.
    ids: `[N]`, positions or names of files.
    class_names: the names of the classes.
    clean_labels: int32 `[N]` where they are known, else None.
  """
  inputs: np.ndarray
  labels: np.ndarray
  ids: np.ndarray
  class_names: tuple[str, ...]
  clean_labels: np.ndarray | None = None


def load(
    images: str | os.PathLike, labels: str | os.PathLike | None = None,
    class_names: tuple[str, ...] | None = None, size: int = 32) -> Dataset:
  """Returns examples and labels from files.

  Args:
    images: a `.npy` file, a `.npz` file with arrays `images` (or `x`) and
      perhaps `labels` (or `y`), or a folder of images.
    labels: a `.npy` file, or a CSV file with a column `label`, and a column
      `file` for a folder of images.
    class_names: the classes; by default the labels that occur, in order.
    size: side of the square to which the images of a folder are resized.
  """
  images = pathlib.Path(images)
  if not images.exists():
    raise InputError(f'{images}: there is no such file or folder.')
  if images.is_dir():
    names, values = _read_folder_labels(_required(labels))
    inputs, ids = _read_images(images, names, size), np.array(names)
  else:
    inputs, own_labels = _read_arrays(images)
    values = own_labels if labels is None else _read_labels(labels)
    if values is None:
      _required(labels)
    ids = np.arange(len(inputs))
  if len(inputs) != len(values):
    raise InputError(
        f'There are {len(inputs)} examples and {len(values)} labels; there '
        'must be one label for each example.')
  _check_inputs(inputs, images)
  codes, class_names = encode(values, class_names)
  return Dataset(inputs, codes, ids, class_names)


def encode(values, class_names=None) -> tuple[np.ndarray, tuple[str, ...]]:
  """Returns labels as int32 `[N]`, and the names of the classes.

  Args:
    values: names or whole numbers `[N]`. With `class_names` numbers count the
      classes from 0, unless the classes are called by numbers themselves.
    class_names: the classes, or None for those that occur.
  """
  values = np.asarray(values)
  if values.ndim == 2 and values.shape[1] == 1:
    values = values[:, 0]
  if values.ndim != 1:
    raise InputError('Labels must be a single column; there is an array of '
                     f'shape {values.shape}.')
  numbers = _whole_numbers(values)
  texts = [str(v).strip() for v in (
      values if numbers is None else numbers).tolist()]
  for i, text in enumerate(texts):
    if not text:
      raise InputError(f'Label {i} is empty.')
  if class_names is None:
    if numbers is not None:
      class_names = tuple(map(str, np.unique(numbers).tolist()))
    else:
      class_names = tuple(sorted(set(texts)))
  elif numbers is not None and not set(texts) & set(class_names):
    texts = [class_names[n] if 0 <= n < len(class_names) else str(n)
             for n in numbers.tolist()]
  positions = {name: i for i, name in enumerate(class_names)}
  if len(positions) < len(class_names):
    raise InputError('The names of the classes must be different.')
  for i, text in enumerate(texts):
    if text not in positions:
      raise InputError(f'Label {i} is {text!r}, which is no class.')
  codes = np.array([positions[text] for text in texts], np.int32)
  if len(np.unique(codes)) < 2:
    raise InputError('All labels are the same; an audit needs at least two '
                     'classes.')
  return codes, class_names


def _required(labels):
  if labels is None:
    raise InputError('Labels are missing: say --labels FILE.')
  return labels


def _whole_numbers(values):
  """Returns int64 labels, or None if they are names."""
  if values.dtype.kind in 'iub':
    numbers = values.astype(np.int64)
  elif values.dtype.kind == 'f':
    wrong = ~(values == np.floor(values))
    if wrong.any():
      i = int(np.argmax(wrong))
      raise InputError(f'Label {i} is {values[i]}, which is no class.')
    numbers = values.astype(np.int64)
  else:
    try:
      numbers = np.array([int(text) for text in values], np.int64)
    except ValueError:
      return None
  if (numbers < 0).any():
    i = int(np.argmax(numbers < 0))
    raise InputError(f'Label {i} is {numbers[i]}, which is no class.')
  return numbers


def _read_arrays(path):
  """Returns the inputs and the labels (or None) of a NumPy file."""
  try:
    content = np.load(path, allow_pickle=False)
  except (ValueError, OSError, EOFError) as error:
    raise InputError(f'{path}: no NumPy file ({error}).') from error
  if isinstance(content, np.ndarray):
    return content, None
  with content:
    found = [next((content[key] for key in keys if key in content), None)
             for keys in (_IMAGE_KEYS, _LABEL_KEYS)]
  if found[0] is None:
    raise InputError(f'{path}: there is no array called images or x.')
  return found[0], found[1]


def _read_labels(path):
  path = pathlib.Path(path)
  if path.suffix == '.npy':
    return _read_arrays(path)[0]
  return [row['label'] for row in _read_csv(path, ('label',))]


def _read_folder_labels(path):
  rows = _read_csv(path, ('file', 'label'))
  return [row['file'] for row in rows], [row['label'] for row in rows]


def _read_csv(path, columns):
  try:
    with open(path, newline='', encoding='utf-8-sig') as file:
      reader = csv.DictReader(file)
      rows = list(reader)
  except (OSError, UnicodeDecodeError, csv.Error) as error:
    raise InputError(f'{path}: not readable ({error}).') from error
  missing = [c for c in columns if c not in (reader.fieldnames or ())]
  if missing:
    raise InputError(
        f'{path}: the header must name the column {missing[0]}.')
  for i, row in enumerate(rows):
    if any(row[column] is None for column in columns):
      raise InputError(f'{path}: line {i + 2} is too short.')
  return rows


def _read_images(folder, names, size):
  """Returns uint8 `[N, size, size, C]`, in grey if all images are grey."""
  images = []
  for name in names:
    try:
      with Image.open(folder / name) as image:
        grey = image.mode in ('1', 'L')
        image = image.convert('L' if grey else 'RGB').resize((size, size))
        images.append(np.asarray(image))
    except (OSError, ValueError, SyntaxError) as error:
      raise InputError(
          f'{folder / name}: not a readable image ({error}).') from error
  if all(image.ndim == 2 for image in images):
    return np.stack(images)[..., np.newaxis] if images else np.zeros((0, 1))
  return np.stack([
      image if image.ndim == 3 else np.stack([image] * 3, axis=-1)
      for image in images])


def _check_inputs(inputs, path):
  if inputs.dtype.kind not in 'iufb':
    raise InputError(f'{path}: examples must be numbers, not {inputs.dtype}.')
  if inputs.ndim not in (2, 3, 4) or 0 in inputs.shape:
    raise InputError(
        f'{path}: examples must be features [N, F] or images [N, H, W] or '
        f'[N, H, W, C]; the array has the shape {inputs.shape}.')
  finite = np.isfinite(inputs).reshape(len(inputs), -1).all(axis=1)
  if not finite.all():
    raise InputError(
        f'{path}: example {int(np.argmin(finite))} has values that are NaN or '
        'infinite.')

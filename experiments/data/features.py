"""Features of images by a frozen backbone, as `experiments.embed` leaves them.

    DATA_DIR/features/IMAGES/train.npy         float16 [N, F], a row an image
    DATA_DIR/features/IMAGES/test.npy
    DATA_DIR/features/IMAGES/train-labels.npy  int64 [2, N]: labels and ids
    DATA_DIR/features/IMAGES/test-labels.npy
    DATA_DIR/features/IMAGES/provenance.json   what made them, written last

The data set of the features has the splits, ids and labels of the images.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import functools
from importlib import metadata
import json
import os
import pathlib
from typing import Any
import warnings

import numpy as np

from experiments.data import batches
from experiments.data import examples as examples_lib
from experiments.data import registry
from ln_tfp import backbones
from ln_tfp import files

_SPLITS = ('train', 'test')
_PROVENANCE = 'provenance.json'
_KEYS = {'images': str, 'backbone': str, 'digest': str, 'examples': dict,
         'num_features': int}


def load(name: str, data_dir: str | os.PathLike) -> examples_lib.Source:
  """Returns a data set of features, standardised by its training split."""
  images = registry.traits(name).images
  folder = _folder(images, data_dir)
  if not (folder / _PROVENANCE).is_file():
    raise _missing(name, images, data_dir)
  provenance = _read_provenance(folder)
  if provenance.get('images') != images:
    raise registry.BadDataError(
        f'{folder} has features of {provenance.get("images")}, not of '
        f'{images}.')
  train, test = (_read(folder, split, provenance) for split in _SPLITS)
  mean = np.mean(train.inputs, axis=0, dtype=np.float64)
  std = np.std(train.inputs, axis=0, dtype=np.float64)
  scale = 1. / np.where(std > 0, std, 1.)
  for split in (train, test):
    np.subtract(split.inputs, mean.astype(np.float32), out=split.inputs)
    np.multiply(split.inputs, scale.astype(np.float32), out=split.inputs)
  return examples_lib.registered(
      name, train=train, test=test,
      provenance={'backbone': provenance['backbone'],
                  'digest': provenance['digest']})


def prepare(name: str, data_dir: str | os.PathLike) -> None:
  """Features are not fetched: the error says which command makes them."""
  raise _missing(name, registry.traits(name).images, data_dir)


def embed(
    source: examples_lib.Source, backbone: backbones.Backbone,
    data_dir: str | os.PathLike | None = None,
    report: Callable[[str, int, int], None] = lambda *_: None,
    batch_size: int = 128) -> pathlib.Path:
  """Writes the features of all images of a data set.

  One pass, a batch in memory at a time. What an interrupted call has computed
  with the same backbone is not computed again.

  Args:
    source: the images.
    backbone: images -> features.
    data_dir: where `load` will look.
    report: called with (split, images in all, images done).
    batch_size: images that the backbone sees at a time.

  Returns:
    The folder of the features.
  """
  # CIFAR with human labels has the images of CIFAR.
  images = registry.traits(f'{source.name}_features').images or source.name
  splits = {split: getattr(source, split) for split in _SPLITS}
  # The backbone takes pixels as they are.
  raw = dataclasses.replace(source.preprocessing, scale=1., mean=(), std=())

  def read(examples, done):
    rest = examples.subset(np.arange(done, len(examples)))
    for batch in batches.Batches(
        rest, batch_size=batch_size, preprocessing=raw).epoch(0):
      yield batch.inputs

  def write_labels(folder):
    for split, examples in splits.items():
      np.save(folder / f'{split}-labels.npy',
              np.stack([examples.true.astype(np.int64), examples.ids]))

  parts = {split: (len(examples), functools.partial(read, examples))
           for split, examples in splits.items()}
  return embed_parts(
      images, images, parts, backbone, data_dir, report, write_labels)


def embed_parts(
    name: str, images: str,
    parts: Mapping[str, tuple[int, Callable[[int], Iterable[np.ndarray]]]],
    backbone: backbones.Backbone, data_dir: str | os.PathLike | None,
    report: Callable[[str, int, int], None],
    write_labels: Callable[[pathlib.Path], None]) -> pathlib.Path:
  """Writes features and labels, unless all is there; returns their folder.

  Args:
    name: of the folder.
    images: whose features they are, for the provenance.
    parts: by the name of a file, the number of its images, and a function from
      how many are done to batches of the others.
    backbone: images -> features.
    data_dir: where the folder is, in `features`.
    report: called with (part, images in all, images done).
    write_labels: writes the labels into the folder.
  """
  folder = _folder(name, registry.directory(data_dir))
  provenance = {
      'images': images, 'backbone': backbone.name,
      'digest': backbone.digest,
      'examples': {name: total for name, (total, _) in parts.items()},
      'versions': {name: metadata.version(name)
                   for name in ('keras', 'tensorflow', 'numpy')}}
  if _is_done(folder, provenance):
    return folder
  (folder / _PROVENANCE).unlink(missing_ok=True)
  made_of = {key: provenance[key] for key in ('images', 'digest')}
  for name, (total, read) in parts.items():
    width = _embed_part(
        folder / f'{name}.npy', total, read, backbone, made_of,
        functools.partial(report, name, total))
    provenance.setdefault('num_features', width)
  write_labels(folder)
  files.write_atomically(
      folder / _PROVENANCE, json.dumps(provenance, indent=2).encode())
  for name in parts:
    _progress(folder / f'{name}.npy').unlink()
  return folder


def _is_done(folder, provenance):
  try:
    found = _read_provenance(folder)
  except (FileNotFoundError, registry.BadDataError):
    return False
  return all(found.get(key) == provenance[key]
             for key in ('images', 'digest', 'examples'))


def _embed_part(path, total, read, backbone, made_of, report):
  """Writes the features of one part, and returns how many there are each."""
  progress = _progress(path)
  done = _done(progress, made_of)
  target = np.load(path, mmap_mode='r+') if done else None
  if done < total:
    for images in read(done):
      features = backbone(images)
      if target is None:
        path.parent.mkdir(parents=True, exist_ok=True)
        target = np.lib.format.open_memmap(
            path, 'w+', np.float16, (total, features.shape[1]))
      if not np.abs(features).max() <= np.finfo(np.float16).max:
        raise registry.BadDataError(
            f'{backbone.name} gives features that float16 cannot hold: they '
            f'reach {np.abs(features).max():.3g}.')
      target[done:done + len(features)] = features
      target.flush()
      done += len(features)
      state = json.dumps({**made_of, 'done': done})
      files.write_atomically(progress, state.encode())
      report(done)
  return target.shape[1]


def _progress(path: pathlib.Path) -> pathlib.Path:
  return path.with_suffix('.progress.json')


def _done(progress: pathlib.Path, made_of: Mapping[str, str]) -> int:
  """Returns how far an interrupted call of the same backbone came.

  A file that does not say so is as none: the part is embedded anew.
  """
  try:
    state = files.read_json(progress, 2**20)
  except (OSError, ValueError):
    return 0
  if isinstance(state, dict) and isinstance(state.get('done'), int) and (
      made_of == {key: state.get(key) for key in made_of}):
    return state['done']
  return 0


def _read_provenance(folder: pathlib.Path) -> dict[str, Any]:
  path = folder / _PROVENANCE
  try:
    found = files.read_json(path, 2**20)
  except FileNotFoundError:
    raise
  except (OSError, ValueError) as error:
    raise registry.BadDataError(f'{path} is damaged: {error}') from error
  missing = [key for key in _KEYS if not isinstance(found, dict) or
             not isinstance(found.get(key), _KEYS[key])]
  if missing:
    raise registry.BadDataError(
        f'{path} is damaged: it does not say {", ".join(missing)}.')
  return found


def _read(
    folder: pathlib.Path, split: str,
    provenance: Mapping[str, Any]) -> examples_lib.Examples:
  """Returns one split, as float32."""
  expected = (provenance['examples'].get(split), provenance['num_features'])
  features = _load_array(folder / f'{split}.npy')
  labels = _load_array(folder / f'{split}-labels.npy')
  if features.dtype.kind != 'f' or labels.dtype.kind != 'i' or (
      labels.ndim != 2 or len(labels) != 2):
    raise registry.BadDataError(
        f'{folder}: {split} must be numbers [N, F] and integers [2, N], not '
        f'{features.dtype} {features.shape} and {labels.dtype} {labels.shape}.')
  labels, ids = labels
  if features.shape != expected or labels.shape != expected[:1]:
    raise registry.BadDataError(
        f'{folder}: {split} has features of shape {features.shape} and '
        f'{len(labels)} labels, expected {expected}.')
  features = np.array(features, np.float32)
  if not np.all(np.isfinite(features)):
    row = int(np.argmin(np.isfinite(features).all(axis=1)))
    raise registry.BadDataError(
        f'{folder}: row {row} of {split} is not finite.')
  num_classes = len(registry.traits(provenance['images']).class_names)
  wrong = (labels < 0) | (labels >= num_classes)
  if wrong.any():
    raise registry.BadDataError(
        f'{folder}: row {int(np.argmax(wrong))} of {split} has the label '
        f'{labels[wrong][0]}, where there are {num_classes} classes.')
  try:
    return examples_lib.Examples(features, labels, labels, ids)
  except ValueError as error:
    raise registry.BadDataError(f'{folder}: {split}: {error}') from error


def _load_array(path):
  """Returns an array, mapped: what it claims to be costs nothing."""
  try:
    files.open_regular(path).close()
    with warnings.catch_warnings():
      warnings.simplefilter('ignore')  # NumPy's, on sizes that overflow
      return np.load(path, mmap_mode='r', allow_pickle=False)
  except Exception as error:  # NumPy's reader raises almost anything
    raise registry.BadDataError(
        f'{path.parent}: {path.stem} is damaged: {error}') from error


def _folder(images, data_dir):
  return pathlib.Path(data_dir) / 'features' / images


def _missing(name, images, data_dir):
  return registry.MissingDataError(
      f'Data set {name} needs {_folder(images, data_dir)}, which is missing: '
      f'run `python -m experiments.embed --dataset={images} '
      f'--data_dir={data_dir}`.')

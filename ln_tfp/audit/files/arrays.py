"""Arrays from NumPy files that somebody else may have written."""

import os
import pathlib
import warnings
import zipfile

import numpy as np

from ln_tfp.audit.files import dataset
from ln_tfp.process import sources

_INPUTS = ('images', 'x', 'features', 'embeddings')
_LABELS = ('labels', 'y')
_LARGEST = 1e30  # of a feature; beyond it squares overflow


def read(path: str | os.PathLike) -> tuple[np.ndarray, np.ndarray | None]:
  """Returns the inputs of a `.npy` or `.npz` file, and its labels or None."""
  return _read(path, _INPUTS, _LABELS)


def read_labels(path: str | os.PathLike) -> np.ndarray:
  """Returns the labels of a file that has nothing else to say."""
  return _read(path, _LABELS, ())[0]


def _read(path, *names):
  path = dataset.regular_file(path)
  try:
    with warnings.catch_warnings():
      warnings.simplefilter('ignore')  # NumPy's, on sizes that overflow
      if path.suffix.lower() != '.npz':
        # Mapped, a file that is shorter than its header says is an error, and
        # one that claims terabytes costs nothing.
        return np.load(path, mmap_mode='r', allow_pickle=False), None
      return _read_npz(path, *names)
  except dataset.InputError:
    raise
  except Exception as error:  # NumPy's readers raise almost anything
    raise dataset.InputError(
        f'{path}: no NumPy file ({dataset.reason(error)}).') from error


def _read_npz(path, *names):
  with zipfile.ZipFile(path) as archive:
    size = sum(entry.file_size for entry in archive.infolist())
  dataset.check_memory(f'{path}: its arrays', size)
  with np.load(path, allow_pickle=False) as content:
    found = [next((name for name in known if name in content), None)
             for known in names]
    if found[0] is None:
      raise dataset.InputError(
          f'{path}: there is no array called {" or ".join(names[0])}.')
    return tuple(None if name is None else content[name] for name in found)


def check(inputs: np.ndarray, path: pathlib.Path) -> np.ndarray:
  """Returns inputs that can be audited, or says why they cannot."""
  if inputs.dtype.kind not in 'iufb':
    raise dataset.InputError(
        f'{path}: examples must be numbers, not {inputs.dtype}.')
  if inputs.ndim not in (2, 3, 4) or 0 in inputs.shape:
    raise dataset.InputError(
        f'{path}: examples must be features [N, F] or images [N, H, W] or '
        f'[N, H, W, C]; the array has the shape {inputs.shape}.')
  for start in range(0, len(inputs), 4_096):
    part = np.asarray(inputs[start:start + 4_096])
    part = part.reshape(len(part), -1)
    bad = ~np.isfinite(part).all(axis=1)
    if bad.any():
      raise dataset.InputError(
          f'{path}: example {start + int(np.argmax(bad))} has values that are '
          'NaN or infinite.')
    if part.dtype.kind == 'f' and part.dtype.itemsize > 2:
      largest = min(_LARGEST, sources.largest(part.dtype))
      bad = (np.abs(part) > largest).any(axis=1)
      if bad.any():
        raise dataset.InputError(
            f'{path}: example {start + int(np.argmax(bad))} has values beyond '
            f'{largest:.3g}.')
  return inputs[..., np.newaxis] if inputs.ndim == 3 else inputs

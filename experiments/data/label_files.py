"""Reads the label files of CIFAR-N, which are pickles, without running them.

A pickle is a program. The one that is read here may build dicts, lists,
strings and numbers; what the published files further name (NumPy's arrays,
dtypes and scalars) is replaced by the stand-ins below, which only look at
their arguments. Everything else is refused. Not even NumPy's own constructors
are called: a forged dtype could make them read memory that is not theirs.
"""

import io
import os
import pathlib
import pickle
import zipfile

import numpy as np

_MAX_BYTES = 2**26
_DTYPES = {'i8': '<i8', 'i4': '<i4', 'u1': 'u1', 'O8': 'O'}


class LabelFileError(ValueError):
  """A label file is not what it should be; the message says how."""


def read(
    path: str | os.PathLike, keys, num_labels: int, num_classes: int
) -> dict[str, np.ndarray]:
  """Returns the label arrays of a published `.pt` or `.npy` file.

  Args:
    path: a `.pt` file, a zip archive as PyTorch writes it, or a `.npy` file
      with a pickled dict.
    keys: the label sets that must be there.
    num_labels: how many labels each of them must have.
    num_classes: labels must be in 0..num_classes-1.

  Returns:
    An int32 array `[num_labels]` for each key.
  """
  path = pathlib.Path(path)
  try:
    with path.open('rb') as file:
      content = _read_npy(file) if path.suffix == '.npy' else _read_pt(file)
  except LabelFileError as error:
    raise LabelFileError(f'{path} is refused: {error}') from error
  except OSError:
    raise
  # A malformed pickle can raise almost anything.
  except Exception as error:
    raise LabelFileError(
        f'{path} is damaged: {type(error).__name__}: {error}') from error
  if not isinstance(content, dict):
    raise LabelFileError(f'{path} is refused: it holds no dict of labels.')
  return {
      key: _check(path, key, content.get(key), num_labels, num_classes)
      for key in keys}


def _check(path, key, values, num_labels, num_classes):
  if values is None:
    raise LabelFileError(f'{path} is refused: it has no labels {key!r}.')
  try:
    labels = np.asarray(values)
  except (AttributeError, OverflowError, RecursionError, TypeError,
          ValueError) as error:
    raise LabelFileError(
        f'{path} is refused: {key!r} is no array: {error}') from error
  if labels.shape != (num_labels,) or labels.dtype.kind not in 'iu':
    raise LabelFileError(
        f'{path} is refused: {key!r} must be {num_labels} integers, it has '
        f'shape {labels.shape} and dtype {labels.dtype}.')
  if not 0 <= labels.min() <= labels.max() < num_classes:
    raise LabelFileError(
        f'{path} is refused: {key!r} must be in 0..{num_classes - 1}, it is in '
        f'{labels.min()}..{labels.max()}.')
  return labels.astype(np.int32)


def _read_pt(file):
  with zipfile.ZipFile(file) as archive:
    members = [
        member for member in archive.infolist()
        if pathlib.PurePosixPath(member.filename).name == 'data.pkl']
    if len(members) != 1:
      raise LabelFileError('it is no archive with one data.pkl.')
    if members[0].file_size > _MAX_BYTES:
      raise LabelFileError(f'it is larger than {_MAX_BYTES} bytes.')
    return _Unpickler(io.BytesIO(archive.read(members[0]))).load()


def _read_npy(file):
  version = np.lib.format.read_magic(file)
  if version != (1, 0):
    raise LabelFileError(f'its version is {version}, not (1, 0).')
  shape, _, dtype = np.lib.format.read_array_header_1_0(file)
  if shape or not dtype.hasobject:
    raise LabelFileError(
        f'it holds an array of shape {shape} and dtype {dtype}, not a dict.')
  content = file.read(_MAX_BYTES + 1)
  if len(content) > _MAX_BYTES:
    raise LabelFileError(f'it is larger than {_MAX_BYTES} bytes.')
  array = _Unpickler(io.BytesIO(content)).load()
  if not (isinstance(array, _Array) and isinstance(array.values, list)
          and len(array.values) == 1):
    raise LabelFileError('it holds no dict of labels.')
  return array.values[0]


class _Unpickler(pickle.Unpickler):
  """Builds plain objects and the stand-ins, nothing else."""

  def find_class(self, module, name):
    stand_in = _STAND_INS.get(f'{module}.{name}')
    if stand_in is None:
      raise LabelFileError(
          f'its pickle wants to use {module}.{name}, which labels do not need.')
    return stand_in


# The stand-ins are instances without a __dict__ so that no opcode can change
# them. Only those with __setstate__ accept a state.


class _Array:
  """What a `numpy.ndarray` stands for: labels, once it has got its state."""
  __slots__ = ('values',)

  def __setstate__(self, state):
    _, shape, dtype, is_fortran, content = state
    if is_fortran or len(shape) > 1:
      raise LabelFileError(f'it holds an array of shape {shape}.')
    if dtype.code == 'O':
      self.values = list(content)
      return
    self.values = np.frombuffer(content, dtype.code)
    if self.values.shape != tuple(shape):
      raise LabelFileError(
          f'it says that an array has shape {shape}, it has shape '
          f'{self.values.shape}.')

  def __array__(self, dtype=None, copy=None):
    return np.array(self.values, dtype)


class _Dtype:
  """What a `numpy.dtype` stands for: one of the few that labels have."""
  __slots__ = ('code',)

  def __setstate__(self, state):
    if state[1] not in '<|':
      raise LabelFileError(f'its byte order is {state[1]!r}.')


class _ArrayType:
  """What `numpy.ndarray` itself stands for: an argument, never called."""
  __slots__ = ()


class _NewDtype:
  """numpy.dtype(name, align, copy)."""
  __slots__ = ()

  def __call__(self, name, *unused):
    if name not in _DTYPES:
      raise LabelFileError(f'it holds an array of dtype {name!r}.')
    dtype = _Dtype()
    dtype.code = _DTYPES[name]
    return dtype


class _NewArray:
  """numpy.core.multiarray._reconstruct(numpy.ndarray, (0,), b'b')."""
  __slots__ = ()

  def __call__(self, *unused):
    return _Array()


class _NewScalar:
  """numpy.core.multiarray.scalar(dtype, content)."""
  __slots__ = ()

  def __call__(self, dtype, content):
    if dtype.code == 'O':
      raise LabelFileError('it holds an object where a number should be.')
    (value,) = np.frombuffer(content, dtype.code)
    return int(value)


class _Encode:
  """_codecs.encode(text, 'latin1'), how protocol 2 spells bytes."""
  __slots__ = ()

  def __call__(self, text, encoding):
    if encoding != 'latin1':
      raise LabelFileError(f'it encodes bytes as {encoding!r}.')
    return text.encode('latin1')


_STAND_INS = {
    'numpy.ndarray': _ArrayType(),
    'numpy.dtype': _NewDtype(),
    '_codecs.encode': _Encode(),
}
for _module in ('numpy.core.multiarray', 'numpy._core.multiarray'):
  _STAND_INS[f'{_module}._reconstruct'] = _NewArray()
  _STAND_INS[f'{_module}.scalar'] = _NewScalar()

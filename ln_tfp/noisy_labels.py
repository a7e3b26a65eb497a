"""Noisy labels beside the clean ones, with what the noise turned out to be."""

import dataclasses
import functools
import hashlib
import os
import zipfile

import numpy as np

_ARRAYS = ('labels', 'clean_labels', 'ids', 'num_classes')


@dataclasses.dataclass(frozen=True, eq=False)
class NoisyLabels:
  """The result of `data.corrupt`.

  Attributes:
    labels: int32 `[N]`, the noisy labels.
    clean_labels: int32 `[N]`.
    ids: int64 `[N]`.
    num_classes: K.
  """
  labels: np.ndarray
  clean_labels: np.ndarray
  ids: np.ndarray
  num_classes: int

  @property
  def is_noisy(self) -> np.ndarray:
    """bool `[N]`: whose label is wrong."""
    return self.labels != self.clean_labels

  @property
  def rate(self) -> float:
    """The share of wrong labels, 0 for no labels at all."""
    return float(np.mean(self.is_noisy)) if len(self.labels) else 0.

  @functools.cached_property
  def transition_matrix(self) -> np.ndarray:
    """The realised P(noisy | clean), `[K, K]`; rows are clean classes.

    The row of a class without examples is that of the identity, so that the
    matrix is row-stochastic whatever the data.
    """
    counts = np.zeros((self.num_classes, self.num_classes))
    np.add.at(counts, (self.clean_labels, self.labels), 1)
    totals = counts.sum(axis=1, keepdims=True)
    return np.where(
        totals > 0, counts / np.maximum(totals, 1), np.eye(self.num_classes))

  @property
  def content_hash(self) -> str:
    """SHA-256 of the arrays: equal exactly where the labels are."""
    digest = hashlib.sha256()
    for name, dtype in zip(_ARRAYS, ('<i4', '<i4', '<i8', '<i8')):
      values = np.asarray(getattr(self, name)).astype(dtype)
      digest.update(f'{name}{values.shape}'.encode())
      digest.update(values.tobytes())
    return digest.hexdigest()

  def save(self, path: str | os.PathLike) -> None:
    """Writes an npz file with the arrays and their content hash."""
    arrays = {name: getattr(self, name) for name in _ARRAYS}
    with open(path, 'wb') as file:
      np.savez_compressed(file, **arrays, content_hash=self.content_hash)

  @classmethod
  def load(cls, path: str | os.PathLike) -> 'NoisyLabels':
    """Reads what `save` wrote; a damaged or foreign file is a ValueError."""
    try:
      # NumPy leaves a file open that it cannot read, unless it is ours.
      with open(path, 'rb') as opened, np.load(
          opened, allow_pickle=False) as file:
        arrays = {name: file[name] for name in _ARRAYS}
        expected = str(file['content_hash'])
      loaded = cls(**{**arrays, 'num_classes': int(arrays['num_classes'])})
      actual = loaded.content_hash
    except (KeyError, EOFError, ValueError, TypeError,
            zipfile.BadZipFile) as error:
      raise ValueError(f'{path} is no file of noisy labels: {error}') from error
    if actual != expected:
      raise ValueError(
          f'{path} is damaged: its content hash is {actual}, it says '
          f'{expected}.')
    return loaded

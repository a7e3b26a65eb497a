"""The state of a run between epochs, kept so that a crash costs little.

A checkpoint is a SHA-256 digest followed by an npz archive. It is written
beside its name and renamed, and the one before it is kept: whatever moment a
process is killed at, the last or the last but one is whole.
"""

import dataclasses
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
from typing import Any
import zipfile

import numpy as np

from ln_tfp import files

_DIGEST_SIZE = hashlib.sha256().digest_size
_KEPT = 2


@dataclasses.dataclass(frozen=True)
class State:
  """All that a run needs to go on.

  Attributes:
    arrays: variables, by a name each.
    records: what is not an array, as JSON-able values: the history and times.
  """
  arrays: dict[str, np.ndarray]
  records: dict[str, Any]

  def to_bytes(self) -> bytes:
    """An npz archive, preceded by its digest."""
    payload = arrays_to_bytes({
        **self.arrays,
        'records': np.frombuffer(
            json.dumps(self.records).encode(), np.uint8)})
    return hashlib.sha256(payload).digest() + payload

  @classmethod
  def from_bytes(cls, content: bytes) -> 'State | None':
    """The state, or None where the content is damaged."""
    digest, payload = content[:_DIGEST_SIZE], content[_DIGEST_SIZE:]
    if hashlib.sha256(payload).digest() != digest:
      return None
    arrays = bytes_to_arrays(payload)
    records = json.loads(arrays.pop('records').tobytes())
    return cls(arrays, records)


def arrays_to_bytes(arrays: dict[str, np.ndarray]) -> bytes:
  """An uncompressed npz archive; equal arrays give equal bytes."""
  stream = io.BytesIO()
  # numpy.savez fills in a fixed time of its own, but only from numpy 2 on.
  with zipfile.ZipFile(stream, 'w') as archive:
    for name, array in arrays.items():
      member = io.BytesIO()
      np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
      archive.writestr(zipfile.ZipInfo(f'{name}.npy'), member.getbuffer())
  return stream.getvalue()


def bytes_to_arrays(content: bytes) -> dict[str, np.ndarray]:
  """The inverse of `arrays_to_bytes`."""
  with np.load(io.BytesIO(content), allow_pickle=False) as archive:
    return {name: archive[name] for name in archive.files}


class Checkpoints:
  """The checkpoints of one run in one directory."""

  def __init__(self, directory: str | os.PathLike):
    self._directory = pathlib.Path(directory)

  def save(self, epoch: int, state: State) -> None:
    """Writes a checkpoint and removes all but the last two."""
    file = self._directory / f'epoch-{epoch:06d}.ckpt'
    files.write_atomically(file, state.to_bytes())
    for old in self._files()[:-_KEPT]:
      old.unlink(missing_ok=True)

  def latest(self) -> bytes | None:
    """The bytes of the last undamaged checkpoint, or None."""
    for file in reversed(self._files()):
      content = _read(file)
      if content is not None and State.from_bytes(content) is not None:
        return content
    return None

  def remove(self) -> None:
    """Removes all checkpoints, once the result stands."""
    shutil.rmtree(self._directory, ignore_errors=True)

  def _files(self) -> list[pathlib.Path]:
    if not self._directory.is_dir():
      return []
    return sorted(
        file for file in self._directory.iterdir()
        if re.fullmatch(r'epoch-\d{6}\.ckpt', file.name))


def _read(file: pathlib.Path) -> bytes | None:
  try:
    return file.read_bytes()
  except FileNotFoundError:  # another process has finished the same run
    return None

"""The files of one run in an output directory; only the chief touches them.

A checkpoint is the state of a run between epochs, kept so that a crash costs
little: a SHA-256 digest followed by an npz archive. It is written beside its
name and renamed, and the one before it is kept: whatever moment a process is
killed at, the last or the last but one is whole.
"""

from collections.abc import Callable
import dataclasses
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import sys
from typing import Any
import zipfile

import numpy as np
import tensorflow as tf

from experiments.training import devices
from experiments.training import results
from ln_tfp import files

_DIGEST_SIZE = hashlib.sha256().digest_size
_KEPT = 2
_MAX_WEIGHTS = 2**34
# Below the output directory, for weights that a result has lost.
SECOND = 'weights'


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
    return results.read_bounded(file, _MAX_WEIGHTS)
  except OSError:  # finished by another process meanwhile, or no checkpoint
    return None


class Store:
  """Result, weights and checkpoints of one run.

      OUTPUT_DIR/KEY.json
      OUTPUT_DIR/KEY.npz
      OUTPUT_DIR/checkpoints/KEY/epoch-000012.ckpt
      OUTPUT_DIR/weights/KEY.json, KEY.npz

  A result is not replaced for the sake of weights that are gone: those of a
  second training stand in `weights`, with its own result.

  Args:
    key: of the run.
    output_dir: None keeps nothing and finds nothing.
    strategy: whose chief reads and writes for all workers.
    warn: called with what could not be kept, though nothing is lost by it.

  Attributes:
    key: of the run.
    keeps: whether anything is kept, by this worker or by the chief.
    saved: the last epoch, counted from 1, that was; 0 before there is one.
  """

  def __init__(
      self, key: str, output_dir: str | os.PathLike | None,
      strategy: tf.distribute.Strategy,
      warn: Callable[[str], None] = lambda text: print(text, file=sys.stderr)):
    self.key = key
    self.keeps = output_dir is not None
    self.saved = 0
    self._strategy = strategy
    self._warn = warn
    self._stored = None  # a result that stays, though its weights are gone
    self._directory = None
    if output_dir is not None and devices.worker(strategy)[0] == 0:
      self._directory = pathlib.Path(output_dir)
      self._directory.mkdir(parents=True, exist_ok=True)
      self._checkpoints = Checkpoints(
          self._directory / 'checkpoints' / key)

  def find(
      self, with_weights: bool = False,
      code: dict[str, str] | None = None) -> results.Result | None:
    """The result, if there is one.

    Args:
      with_weights: whether its weights have to be there, too.
      code: where given, the fingerprint that it must have.
    """
    content = None
    if self._directory is not None:
      file = results.path(self._directory, self.key)
      if file.exists():
        result = results.read(file)
        if code in (None, result.code):
          whole = not with_weights or _weights_stand(result, self._directory)
          content = b'01'[whole:whole + 1] + result.to_json().encode()
          if whole:
            self._checkpoints.remove()
    content = devices.share_from_chief(self._strategy, content)
    if content is None:
      return None
    result = results.Result.from_json(content[1:].decode())
    if content[:1] == b'1':
      return result
    self._stored = result
    return None

  def resume(self) -> State | None:
    """The state after the last epoch that was saved whole."""
    content = None
    if self._directory is not None:
      content = self._checkpoints.latest()
    content = devices.share_from_chief(self._strategy, content)
    return None if content is None else State.from_bytes(content)

  def save(self, epoch: int, state: State) -> None:
    """Keeps the state after an epoch, counted from 1, where that is possible.
    """
    if self._directory is not None:
      try:
        self._checkpoints.save(epoch, state)
      except OSError as error:
        self._warn(f'{self.key}: no checkpoint after epoch {epoch}: '
                   f'{error.strerror or error}: {error.filename or ""}')
        return
    self.saved = epoch

  def share_weights(
      self, result: results.Result) -> dict[str, np.ndarray] | None:
    """The weights kept with another result, on all workers."""
    content = None
    if self._directory is not None and result.weights is not None:
      content = arrays_to_bytes(read_weights(result, self._directory))
    content = devices.share_from_chief(self._strategy, content)
    return None if content is None else bytes_to_arrays(content)

  def how_to_resume(self) -> str:
    """What there is to do for a person when a worker was lost."""
    if not self.keeps:
      return 'Start all workers again.'
    where = f'after epoch {self.saved}' if self.saved else 'where it was'
    return f'Start all workers again: {self.key} goes on {where}.'

  def finish(
      self, result: results.Result,
      weights: dict[str, np.ndarray] | None) -> results.Result:
    """Keeps the result, and before it the weights; drops the checkpoints.

    Returns:
      The result that stands: an earlier one, where only its weights were gone.
    """
    directory = self._directory
    if directory is not None:
      _forget_second(self.key, directory)
      if self._stored is not None:
        directory = directory / SECOND
    if weights is not None:
      content = arrays_to_bytes(weights)
      name = f'{self.key}.npz'
      kept = {'file': name, 'sha256': results.sha256(content)}
      if directory is not None and not self._keep(directory / name, content):
        kept = None
      result = dataclasses.replace(result, weights=kept)
    if directory is not None:
      results.write(result, directory)
      self._checkpoints.remove()
    return self._stored or result


  def _keep(self, file: pathlib.Path, content: bytes) -> bool:
    """Writes weights; without them the result is still worth keeping."""
    try:
      files.write_atomically(file, content)
    except OSError as error:
      if self._stored is not None:  # they are all that was missing
        raise
      self._warn(f'{self.key}: its weights are not kept: '
                 f'{error.strerror}: {error.filename}')
      return False
    return True


def read_weights(
    result: results.Result,
    output_dir: str | os.PathLike) -> dict[str, np.ndarray]:
  """The weights of a result; raises where there are none, or others.

  They are those of a second training where the first has kept none.
  """
  directory = pathlib.Path(output_dir)
  second = second_result(result.key, directory)
  if second is not None and second.weights is not None:
    result, directory = second, directory / SECOND
  if result.weights is None:
    raise ValueError(
        f'The weights of {result.key} were not kept: train it with '
        '`keep_weights=True`.')
  file = directory / result.weights['file']
  content = results.read_bounded(file, _MAX_WEIGHTS)
  if results.sha256(content) != result.weights['sha256']:
    raise ValueError(f'{file} does not hold the weights of its result.')
  return bytes_to_arrays(content)


def second_result(
    key: str, output_dir: str | os.PathLike) -> results.Result | None:
  """The result of a training for the sake of weights, if there was one."""
  try:
    return results.read(
        results.path(pathlib.Path(output_dir) / SECOND, key))
  except FileNotFoundError:
    return None


def _forget_second(key: str, directory: pathlib.Path) -> None:
  """Removes what belongs to a result that is about to be made anew."""
  for suffix in ('json', 'npz'):
    (directory / SECOND / f'{key}.{suffix}').unlink(missing_ok=True)


def _weights_stand(result: results.Result, directory: pathlib.Path) -> bool:
  # Nothing but a new training would bring back what diverged or got lost.
  if result.status == 'diverged':
    return True
  try:
    read_weights(result, directory)
  except (OSError, ValueError):
    return False
  return True

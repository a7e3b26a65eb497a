"""The files of one run in an output directory; only the chief touches them."""

import dataclasses
import os
import pathlib

import numpy as np
import tensorflow as tf

from experiments.training import checkpoints
from experiments.training import results
from experiments.training import strategies
from ln_tfp import files


class Store:
  """Result, weights and checkpoints of one run.

      OUTPUT_DIR/KEY.json
      OUTPUT_DIR/KEY.npz
      OUTPUT_DIR/checkpoints/KEY/epoch-000012.ckpt

  Args:
    key: of the run.
    output_dir: None keeps nothing and finds nothing.
    strategy: whose chief reads and writes for all workers.

  Attributes:
    key: of the run.
    keeps: whether anything is kept, by this worker or by the chief.
    saved: the last epoch, counted from 1, that was; 0 before there is one.
  """

  def __init__(
      self, key: str, output_dir: str | os.PathLike | None,
      strategy: tf.distribute.Strategy):
    self.key = key
    self.keeps = output_dir is not None
    self.saved = 0
    self._strategy = strategy
    self._directory = None
    if output_dir is not None and strategies.worker(strategy)[0] == 0:
      self._directory = pathlib.Path(output_dir)
      self._directory.mkdir(parents=True, exist_ok=True)
      self._checkpoints = checkpoints.Checkpoints(
          self._directory / 'checkpoints' / key)

  def find(self, with_weights: bool = False) -> results.Result | None:
    """The result, if there is one (and its weights, if they are wanted)."""
    content = None
    if self._directory is not None:
      file = results.path(self._directory, self.key)
      if file.exists():
        result = results.read(file)
        if not with_weights or _weights_stand(result, self._directory):
          content = result.to_json().encode()
          self._checkpoints.remove()
    content = strategies.share_from_chief(self._strategy, content)
    return None if content is None else results.Result.from_json(
        content.decode())

  def resume(self) -> checkpoints.State | None:
    """The state after the last epoch that was saved whole."""
    content = None
    if self._directory is not None:
      content = self._checkpoints.latest()
    content = strategies.share_from_chief(self._strategy, content)
    return None if content is None else checkpoints.State.from_bytes(content)

  def save(self, epoch: int, state: checkpoints.State) -> None:
    """Keeps the state after an epoch, counted from 1."""
    if self._directory is not None:
      self._checkpoints.save(epoch, state)
    self.saved = epoch

  def finish(
      self, result: results.Result,
      weights: dict[str, np.ndarray] | None) -> results.Result:
    """Keeps the result, and before it the weights; drops the checkpoints."""
    if weights is not None:
      content = checkpoints.arrays_to_bytes(weights)
      name = f'{self.key}.npz'
      result = dataclasses.replace(result, weights={
          'file': name, 'sha256': results.sha256(content)})
      if self._directory is not None:
        files.write_atomically(self._directory / name, content)
    if self._directory is not None:
      results.write(result, self._directory)
      self._checkpoints.remove()
    return result


def read_weights(
    result: results.Result,
    output_dir: str | os.PathLike) -> dict[str, np.ndarray]:
  """The weights kept with a result; raises where they are not those."""
  if result.weights is None:
    raise ValueError(
        f'The weights of {result.key} were not kept: train it with '
        '`keep_weights=True`.')
  file = pathlib.Path(output_dir) / result.weights['file']
  content = file.read_bytes()
  if results.sha256(content) != result.weights['sha256']:
    raise ValueError(f'{file} does not hold the weights of its result.')
  return checkpoints.bytes_to_arrays(content)


def _weights_stand(result: results.Result, directory: pathlib.Path) -> bool:
  # Nothing but a new training would bring back what diverged or got lost.
  if result.status == 'diverged':
    return True
  try:
    read_weights(result, directory)
  except (FileNotFoundError, ValueError):
    return False
  return True

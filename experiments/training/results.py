"""What a run leaves behind: one JSON document."""

import dataclasses
import hashlib
from importlib import metadata
import json
import os
import pathlib
import platform
from typing import Any

from etils import epy

with epy.lazy_imports():  # it brings TensorFlow; reading results needs none
  from ln_tfp import files

_PACKAGES = (
    'ln_tfp', 'tensorflow', 'keras', 'tensorflow-probability', 'numpy')


class DamagedResultError(ValueError):
  """The file is not a complete `Result`."""


@dataclasses.dataclass(frozen=True)
class Result:
  """A finished run.

  `run`, `metrics` and `history` are bit-identical for the same run on the same
  device; what depends on the clock stands apart from them.

  Attributes:
    key: the key of the run, also the name of the file.
    run: all settings of the run, see `Run.to_dict`.
    hyperparameters: all hyperparameters of the method, defaults included.
    options: all options of the protocol, defaults included.
    status: 'finished' or 'diverged'.
    divergence: None, or the epoch (from 1) and the quantity that was not
      finite.
    metrics: metrics of the last epoch on all of train, validation and test;
      None where a part is empty. Empty for a diverged run.
    history: one list per quantity, one value per epoch.
    noise: the realised noise of training and validation labels together:
      'rate' and 'transition_matrix' [true class, given class].
    examples: number of examples of 'train', 'validation' and 'test'.
    num_classes: K.
    input_shape: of an example.
    parameters: number of trainable parameters.
    transition: Forward's transition matrix, otherwise None.
    transition_estimates: what Forward needs of a CE run: the estimates from
      the 'last' and from the 'best' epoch; empty for other methods.
    seconds: 'wall' time of the run over all its restarts, that of its training
      'steps', and a list with that of its 'epochs' (steps and validation).
    steps_per_second: training steps per second, without evaluation.
    versions: of Python and of the packages that compute.
    device: kind and name of the device, number of replicas and of workers.
    weights: None, or 'file' (beside the result) and 'sha256' of the weights.
    data: what computed the inputs, where they are features of images.
    code: the fingerprint of the code, see `fingerprint`; empty in results of
      older versions.
  """
  key: str
  run: dict[str, Any]
  hyperparameters: dict[str, Any]
  options: dict[str, Any]
  status: str
  divergence: dict[str, Any] | None
  metrics: dict[str, float | None]
  history: dict[str, list[float | None]]
  noise: dict[str, Any]
  examples: dict[str, int]
  num_classes: int
  input_shape: list[int]
  parameters: int
  transition: list[list[float]] | None
  transition_estimates: dict[str, list[list[float]]]
  seconds: dict[str, Any]
  steps_per_second: float
  versions: dict[str, str]
  device: dict[str, Any]
  weights: dict[str, str] | None
  data: dict[str, str] = dataclasses.field(default_factory=dict)
  code: dict[str, str] = dataclasses.field(default_factory=dict)

  def to_json(self) -> str:
    """One JSON object with sorted keys; NaN and infinity are not allowed."""
    return json.dumps(
        dataclasses.asdict(self), sort_keys=True, allow_nan=False) + '\n'

  @classmethod
  def from_json(cls, text: str) -> 'Result':
    """The inverse of `to_json`; raises `DamagedResultError`."""
    try:
      document = json.loads(text)
      return cls(**document)
    except (TypeError, ValueError) as error:
      raise DamagedResultError(f'Not a complete result: {error}') from error


def path(output_dir: str | os.PathLike, key: str) -> pathlib.Path:
  """Where the result of a run stands."""
  return pathlib.Path(output_dir) / f'{key}.json'


def read(file: str | os.PathLike) -> Result:
  """Reads a result; raises `DamagedResultError` or `FileNotFoundError`."""
  try:
    text = pathlib.Path(file).read_text(encoding='utf-8')
  except UnicodeDecodeError as error:
    raise DamagedResultError(f'{file}: not a text file.') from error
  try:
    return Result.from_json(text)
  except DamagedResultError as error:
    raise DamagedResultError(f'{file}: {error}') from error


def write(result: Result, output_dir: str | os.PathLike) -> pathlib.Path:
  """Writes a result atomically, beside other results."""
  file = path(output_dir, result.key)
  files.write_atomically(file, result.to_json().encode())
  return file


def sha256(content: bytes) -> str:
  """The hash by which kept weights are recognised."""
  return hashlib.sha256(content).hexdigest()


def versions() -> dict[str, str]:
  """Versions of Python and of the packages that compute."""
  found = {'python': platform.python_version()}
  for package in _PACKAGES:
    try:
      found[package] = metadata.version(package)
    except metadata.PackageNotFoundError:  # used from a checkout, or tf-nightly
      found[package] = 'unknown'
  return found

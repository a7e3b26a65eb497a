"""What a run leaves behind: one JSON document."""

import dataclasses
import errno
import hashlib
from importlib import metadata
import json
import math
import os
import pathlib
import platform
import re
import stat
from typing import Any

from etils import epy
import orjson

with epy.lazy_imports():  # it brings TensorFlow; reading results needs none
  from ln_tfp import files

# A result of a thousand epochs has a quarter of a megabyte.
MAX_BYTES = 2**25
_NO_WORD = re.compile(r'[^\w.]+')
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
    chosen: 'epoch' (from 1) that the run's stopping rule chose and its
      'metrics'; None without such a rule.
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
  chosen: dict[str, Any] | None = None
  code: dict[str, str] = dataclasses.field(default_factory=dict)

  def to_json(self) -> str:
    """One JSON object with sorted keys; NaN and infinity are not allowed."""
    return json.dumps(
        dataclasses.asdict(self), sort_keys=True, allow_nan=False) + '\n'

  @classmethod
  def from_json(cls, text: str, checked: bool = False) -> 'Result':
    """The inverse of `to_json`; raises `DamagedResultError`.

    Args:
      text: the document.
      checked: whether this very document has passed all checks before.
    """
    try:
      document = _parse(text)
      unknown = sorted(set(document) - _FIELDS)
      if unknown:
        raise ValueError(
            f'it has {", ".join(map(str, unknown[:3]))}, which this version '
            'does not know')
      result = cls(**document)
      if not checked:
        check(result)
      return result
    except RecursionError as error:
      raise DamagedResultError(
          'Not a complete result: it is nested too deep.') from error
    except KeyError as error:
      raise DamagedResultError(
          f'Not a complete result: it has no {error}') from error
    except (TypeError, ValueError) as error:
      raise DamagedResultError(f'Not a complete result: {error}') from error


_FIELDS = frozenset(field.name for field in dataclasses.fields(Result))
# The types that a field may have, as far as somebody relies on them.
_TYPES = {
    'key': str, 'run': dict, 'hyperparameters': dict, 'options': dict,
    'status': str, 'divergence': (dict, type(None)), 'metrics': dict,
    'history': dict, 'noise': dict, 'examples': dict, 'num_classes': int,
    'input_shape': list, 'parameters': int, 'transition': (list, type(None)),
    'transition_estimates': dict, 'seconds': dict,
    'steps_per_second': (int, float), 'versions': dict, 'device': dict,
    'weights': (dict, type(None)), 'data': dict, 'code': dict,
    'chosen': (dict, type(None))}


def _parse(text: str) -> Any:
  try:
    return orjson.loads(text)  # over twice as fast as json
  except orjson.JSONDecodeError:  # the other one says it for a person
    return json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> None:
  raise ValueError(f'it has a number that is none, {name}')


def check(result: Result) -> None:
  """Raises `ValueError` where a field cannot be what a run has left."""
  for name, kinds in _TYPES.items():
    if not isinstance(getattr(result, name), kinds):
      raise ValueError(
          f'its {name} is a {type(getattr(result, name)).__name__}')
  if result.status not in ('finished', 'diverged'):
    raise ValueError(f'its status is {result.status!r:.40}')
  if result.status == 'finished':
    if result.metrics['test_accuracy'] is None:  # all tables need it
      raise ValueError('its test_accuracy is None')
  elif not (result.divergence and _is_number(result.divergence.get('epoch'))):
    raise ValueError('it does not say where it diverged')
  _check_numbers(result)
  for name in (result.device['name'], result.versions['tensorflow'],
               *result.code.values()):
    if not isinstance(name, str):
      raise ValueError(f'it has {name!r:.40} in place of a name')
  for name in ('dataset', 'noise', 'method', 'seed'):
    word = f'seed{result.run[name]}' if name == 'seed' else result.run[name]
    if f'-{re.sub(_NO_WORD, "", word)}-' not in f'-{result.key}':
      raise ValueError(f'its key does not match the {name} of its run')
  if result.weights is not None:
    file = result.weights['file']
    if not isinstance(file, str) or pathlib.PurePath(file).name != file:
      raise ValueError(f'its weights are not beside it: {file!r:.80}')


def _is_number(value: Any) -> bool:
  return type(value) in (int, float)  # True is none


def _check_metrics(metrics: dict[str, Any]) -> None:
  for name, value in metrics.items():
    share = 'accuracy' in name or '_ece' in name
    if value is not None and not (_is_number(value) and 0. <= value <= (
        1. if share else math.inf)):
      raise ValueError(f'its {name} is {value!r:.40}')


def _check_numbers(result: Result) -> None:
  _check_metrics(result.metrics)
  if result.chosen is not None:
    _check_metrics(result.chosen['metrics'])
    if not _is_number(result.chosen['epoch']) or result.chosen['epoch'] < 1:
      raise ValueError(f'its chosen epoch is {result.chosen["epoch"]!r:.40}')
  numbers = {
      'num_classes': result.num_classes, 'parameters': result.parameters,
      'steps_per_second': result.steps_per_second,
      'rate of noise': result.noise.get('rate', 0.), **{
          f'number of {part} examples': number
          for part, number in result.examples.items()}}
  for name, value in numbers.items():
    if not _is_number(value) or value < 0:
      raise ValueError(f'its {name} is {value!r:.40}')
  for name, values in result.history.items():
    if not (isinstance(values, list)
            and set(map(type, values)) <= {int, float, type(None)}):
      raise ValueError(f'its history of {name} is not numbers')
    if 'accuracy' in name:
      known = [value for value in values if value is not None] or [0.]
      if not 0. <= min(known) <= max(known) <= 1.:
        raise ValueError(f'its history of {name} leaves [0, 1]')
  seconds = [result.seconds['wall'], *result.seconds['epochs']]
  if not all(map(_is_number, seconds)):
    raise ValueError('its seconds are not numbers')
  if not 0. <= min(seconds) <= max(seconds) < math.inf:
    raise ValueError('its seconds are negative')


def path(output_dir: str | os.PathLike, key: str) -> pathlib.Path:
  """Where the result of a run stands."""
  return pathlib.Path(output_dir) / f'{key}.json'


def listed(
    directory: str | os.PathLike, suffix: str) -> list[pathlib.Path]:
  """The files of a directory whose names end so; none where there is none.

  One that cannot be read is an `OSError`; for `glob` it would be empty.
  """
  try:
    names = os.listdir(directory)
  except FileNotFoundError:
    return []
  return [pathlib.Path(directory, name) for name in sorted(names)
          if name.endswith(suffix)]


def read(file: str | os.PathLike, checked: bool = False) -> Result:
  """Reads a result; raises `DamagedResultError` or `FileNotFoundError`.

  Args:
    file: the file.
    checked: see `Result.from_json`.
  """
  try:
    text = read_bounded(file, MAX_BYTES).decode()
  except UnicodeDecodeError as error:
    raise DamagedResultError(f'{file}: not a text file.') from error
  except FileNotFoundError:
    if os.path.islink(file):
      raise DamagedResultError(f'{file}: a link to nothing.') from None
    raise
  except OSError as error:
    raise DamagedResultError(
        f'{file}: {error.strerror or error}.') from error
  try:
    return Result.from_json(text, checked)
  except DamagedResultError as error:
    raise DamagedResultError(f'{file}: {error}') from error


def read_json(file: str | os.PathLike) -> Any:
  """A document that lies beside results; raises `OSError` or `ValueError`."""
  try:
    return json.loads(read_bounded(file, MAX_BYTES))
  except RecursionError as error:
    raise ValueError('it is nested too deep') from error


def read_bounded(file: str | os.PathLike, limit: int) -> bytes:
  """A regular file of at most this size; raises `OSError` of all others."""
  # Opening a pipe would wait for somebody who writes to it.
  descriptor = os.open(file, os.O_RDONLY | getattr(os, 'O_NONBLOCK', 0))
  found = os.fstat(descriptor)
  if not stat.S_ISREG(found.st_mode):
    os.close(descriptor)
    raise OSError(errno.EINVAL, 'it is no regular file', os.fspath(file))
  with os.fdopen(descriptor, 'rb') as stream:
    # As much as it says that it has: room for the limit takes its time.
    content = stream.read(min(found.st_size, limit) + 1)
    if len(content) > found.st_size:  # it says too little
      content += stream.read(limit + 1 - len(content))
  if len(content) > limit:
    raise OSError(errno.EFBIG, f'it has more than {limit} bytes',
                  os.fspath(file))
  return content


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

"""Whether what was measured on a network is of the network that is stored.

A measurement says of which code its result was (`training.Result.code`). Where
the result is made anew by other code (`--retrain`), it is measured anew, too.
Measurements of older versions do not say: they stand as long as their results.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping
import functools
import io
import json
import os
import pathlib

from absl import flags
import numpy as np

from experiments import training
from experiments.sweep import store
from experiments.training import fingerprint
from experiments.training import results as results_lib

FLAGS = flags.FLAGS
CODE = 'code'
# The code that a measurement says; None where it says nothing.
Code = Mapping[str, str] | None


def stands(said: Code, result: training.Result) -> bool:
  """Whether a measurement is of a result, as far as it says."""
  return said is None or said == result.code


def code_in_json(file: pathlib.Path) -> Code:
  """The code that a document says."""
  try:
    return results_lib.read_json(file).get(CODE) or None
  except (AttributeError, OSError, ValueError):
    return None  # who reads its numbers will say what is wrong


def code_in_npz(file: pathlib.Path) -> Code:
  """The code that an archive of arrays says."""
  try:
    content = results_lib.read_bounded(file, results_lib.MAX_BYTES)
    with np.load(io.BytesIO(content)) as arrays:
      return json.loads(str(arrays[CODE])) or None
  except Exception:  # NumPy's reader raises almost anything; as above
    return None


class Missing:
  """The predicate whether a run has yet to be measured.

  Args:
    output_dir: where the results are.
    path: the file of the measurement, by the key of a run.
    read: the code that such a file says.
  """

  def __init__(
      self, output_dir: str | os.PathLike,
      path: Callable[[str], pathlib.Path],
      read: Callable[[pathlib.Path], Code]):
    self._output_dir = output_dir
    self._path = path
    self._read = read

  def __call__(self, run: training.Run) -> bool:
    file = self._path(run.key)
    if not file.exists():
      return True
    said, result = self._read(file), self._store.find_or_none(run.key)
    if result is None:  # it is about to be trained
      return said not in (None, fingerprint.of(run))
    if FLAGS.retrain and fingerprint.differences(result) != ():
      return said != fingerprint.of(run)
    return not stands(said, result)

  @functools.cached_property
  def _store(self) -> store.Store:
    return store.Store(self._output_dir)

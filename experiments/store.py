"""The results in an output directory: one JSON document per run.

    OUTPUT_DIR/KEY.json
    OUTPUT_DIR/NAME.zip     any number of such documents, see `pack`
"""

from collections.abc import Iterable
from collections.abc import Iterator
import io
import os
import pathlib
import zipfile

from ln_tfp import training
from ln_tfp.training import results as results_lib


class Store:
  """Finds results; never changes or removes a file that is there.

  Args:
    output_dir: the directory; it need not exist.
  """

  def __init__(self, output_dir: str | os.PathLike):
    self.directory = pathlib.Path(output_dir)
    self._archives = {}
    self.problems = []
    for file in sorted(self.directory.glob('*.zip')):
      try:
        with zipfile.ZipFile(file) as archive:
          self._archives.update(dict.fromkeys(archive.namelist(), file))
      except (OSError, zipfile.BadZipFile) as error:
        self.problems.append(f'{file}: {error}')

  def find(self, key: str) -> training.Result | None:
    """The result of a run; raises `training.DamagedResultError`."""
    name = f'{key}.json'
    file = self.directory / name
    try:
      result = training.read_result(file)
    except FileNotFoundError:
      if name not in self._archives:
        return None
      file = self._archives[name] / name
      with zipfile.ZipFile(self._archives[name]) as archive:
        result = training.Result.from_json(archive.read(name).decode())
    if result.key != key:
      raise training.DamagedResultError(f'{file}: the result of {result.key}.')
    return result

  def has_weights(self, result: training.Result) -> bool:
    """Whether the weights of a run were kept and still stand."""
    return result.weights is not None and (
        self.directory / result.weights['file']).exists()

  def unpack(self, key: str) -> None:
    """Puts an archived result beside the others, for `training.train`."""
    result = self.find(key)
    file = results_lib.path(self.directory, key)
    if result is not None and not file.exists():
      training.write_result(result, self.directory)

  def scan(self) -> dict[str, training.Result]:
    """All results by key; `problems` then names every other file."""
    names = {file.name for file in self.directory.glob('*.json')}
    found = {}
    for name in sorted(names | set(self._archives)):
      try:
        result = self.find(name.removesuffix('.json'))
        if result is not None:
          found[result.key] = result
      except training.DamagedResultError as error:
        self.problems.append(str(error))
    return found


def pack(
    results: Iterable[training.Result], file: str | os.PathLike) -> None:
  """Writes results into an archive, a quarter of their size."""
  content = io.BytesIO()
  with zipfile.ZipFile(content, 'w', zipfile.ZIP_DEFLATED) as archive:
    for name, text in _documents(results):
      # A fixed time: equal results give equal archives.
      info = zipfile.ZipInfo(name)
      archive.writestr(
          info, text, compress_type=zipfile.ZIP_DEFLATED, compresslevel=9)
  results_lib.write_atomically(pathlib.Path(file), content.getvalue())


def _documents(
    results: Iterable[training.Result]) -> Iterator[tuple[str, str]]:
  for result in sorted(results, key=lambda result: result.key):
    yield f'{result.key}.json', result.to_json()

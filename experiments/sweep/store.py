"""The results in an output directory: one JSON document per run.

    OUTPUT_DIR/KEY.json
    OUTPUT_DIR/NAME.zip     any number of such documents, see `pack`
"""

from __future__ import annotations

from collections.abc import Iterable
import functools
import io
import os
import pathlib
import zipfile
import zlib

from etils import epy

from experiments import training

with epy.lazy_imports():
  from ln_tfp import files


class Store:
  """Finds results; never changes or removes a file that is there.

  Args:
    output_dir: the directory; it need not exist.
  """

  def __init__(self, output_dir: str | os.PathLike):
    self.directory = pathlib.Path(output_dir)
    self._archived = {}  # name -> (archive, content)
    self._bad_archives = []
    for file in sorted(self.directory.glob('*.zip')):
      try:
        self._archived |= {
            name: (file, content) for name, content in _contents(file).items()}
      except ValueError as error:
        self._bad_archives.append(str(error))

  def find(self, key: str) -> training.Result | None:
    """The result of a run; raises `training.DamagedResultError`."""
    name = f'{key}.json'
    file = self.directory / name
    try:
      result = training.read_result(file)
    except FileNotFoundError:
      if name not in self._archived:
        return None
      file, content = self._archived[name]
      try:
        result = training.Result.from_json(content.decode())
      except ValueError as error:  # DamagedResultError is one, too
        raise training.DamagedResultError(
            f'{file}: {name}: {error}') from error
    if result.key != key:
      raise training.DamagedResultError(
          f'{file}: {name} is the result of {result.key}.')
    return result

  def has_weights(self, result: training.Result) -> bool:
    """Whether the weights of a run were kept and still stand."""
    return result.weights is not None and (
        self.directory / result.weights['file']).exists()

  def unpack(self, key: str) -> None:
    """Puts an archived result beside the others, for `training.train`."""
    result = self.find(key)
    if result is not None and not (self.directory / f'{key}.json').exists():
      training.write_result(result, self.directory)

  @functools.cached_property
  def everything(self) -> tuple[dict[str, training.Result], list[str]]:
    """All results by key, and a line for each file that is none."""
    names = {file.name for file in self.directory.glob('*.json')}
    found, problems = {}, list(self._bad_archives)
    for name in sorted(names | set(self._archived)):
      try:
        result = self.find(name.removesuffix('.json'))
        if result is not None:  # somebody may have removed it meanwhile
          found[result.key] = result
      except training.DamagedResultError as error:
        problems.append(str(error))
    return found, problems


def pack(
    results: Iterable[training.Result], file: str | os.PathLike) -> None:
  """Writes results into an archive, a quarter of their size."""
  content = io.BytesIO()
  with zipfile.ZipFile(content, 'w') as archive:
    for result in sorted(results, key=lambda result: result.key):
      # Without a time: equal results give equal archives.
      archive.writestr(
          zipfile.ZipInfo(f'{result.key}.json'), result.to_json(),
          compress_type=zipfile.ZIP_DEFLATED, compresslevel=9)
  files.write_atomically(file, content.getvalue())


def read(file: str | os.PathLike) -> dict[str, training.Result]:
  """The results of an archive by key."""
  results = [training.Result.from_json(content.decode())
             for content in _contents(file).values()]
  return {result.key: result for result in results}


def _contents(file: str | os.PathLike) -> dict[str, bytes]:
  """The files of an archive; raises `ValueError` where it is not ours."""
  try:
    with zipfile.ZipFile(file) as archive:
      contents = {name: archive.read(name) for name in archive.namelist()}
  except (OSError, EOFError, NotImplementedError, RuntimeError,
          zipfile.BadZipFile, zlib.error) as error:
    raise ValueError(f'{file}: {error}') from error
  for name in contents:
    if not name.endswith('.json'):
      raise ValueError(f'{file}: not an archive of results, it has {name}.')
  return contents

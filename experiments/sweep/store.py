"""The results in an output directory: one JSON document per run.

    OUTPUT_DIR/KEY.json
    OUTPUT_DIR/NAME.zip     any number of such documents, see `pack`
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
import functools
import gc
import io
import os
import pathlib
import zipfile
import zlib

from etils import epy

from experiments import training
from experiments.sweep import index as index_lib
from experiments.training import results as results_lib

with epy.lazy_imports():
  from ln_tfp import files


# Of one result and of an archive; a result of digits has twenty kilobytes.
_MAX_BYTES = 2**25
_MAX_ARCHIVE_BYTES = 2**32
_SECOND = 'weights'  # see training.store


@contextlib.contextmanager
def reading() -> Iterator[None]:
  """For who reads many results, which are no garbage to look through."""
  was_enabled = gc.isenabled()
  gc.disable()
  try:
    yield
  finally:
    if was_enabled:
      gc.enable()


class Store:
  """Finds results; never changes or removes a file that is there.

  Args:
    output_dir: the directory; it need not exist.
  """

  def __init__(self, output_dir: str | os.PathLike):
    self.directory = pathlib.Path(output_dir)
    self._archived = {}  # name -> (archive, content, signature)
    self._index = index_lib.Index(self.directory)
    self._read = {}  # name -> (result, signature)
    self._bad_archives = []
    for file in results_lib.listed(self.directory, '.zip'):
      try:
        sign = index_lib.signature(file)
        self._archived |= {name: (file, content, sign)
                           for name, content in _contents(file).items()}
      except (OSError, ValueError) as error:
        self._bad_archives.append(str(error))

  def find(self, key: str) -> training.Result | None:
    """The result of a run; raises `training.DamagedResultError`."""
    name = f'{key}.json'
    place = self._place(name)
    if place is None:
      return None
    file, sign = place
    result, known = self._read.get(name, (None, None))
    if known == sign:
      return result
    entry = self._index.get(name, sign)
    if entry is not None and entry.problem:
      raise training.DamagedResultError(entry.problem)
    try:
      result = self._parse(name, file, checked=entry is not None)
    except FileNotFoundError:  # somebody has removed it meanwhile
      return None
    except training.DamagedResultError as error:
      self._index.put(name, sign, index_lib.Entry(problem=str(error)))
      raise
    if entry is None:
      self._index.put(name, sign, index_lib.entry_of(result))
    self._read[name] = result, sign
    return result

  def _place(
      self, name: str
  ) -> tuple[str | os.PathLike, index_lib.Signature] | None:
    """The file of a result, or its archive, with its signature."""
    file = os.path.join(self.directory, name)  # pathlib takes its time
    try:
      return file, index_lib.signature(file)
    except FileNotFoundError:
      if os.path.islink(file):
        raise training.DamagedResultError(
            f'{file}: a link to nothing.') from None
    except OSError as error:
      raise training.DamagedResultError(
          f'{file}: {error.strerror or error}.') from error
    if name not in self._archived:
      return None
    file, _, sign = self._archived[name]
    return file, sign

  def _parse(
      self, name: str, file: str | os.PathLike,
      checked: bool) -> training.Result:
    if name in self._archived and file == self._archived[name][0]:
      try:
        text = self._archived[name][1].decode()
        result = training.Result.from_json(text, checked)
      except ValueError as error:  # DamagedResultError is one, too
        raise training.DamagedResultError(
            f'{file}: {name}: {error}') from error
    else:
      result = training.read_result(file, checked)
    if f'{result.key}.json' != name:
      raise training.DamagedResultError(
          f'{file}: {name} is the result of {result.key}.')
    if not checked:
      _check_key(result, file)
    return result

  def find_or_none(self, key: str) -> training.Result | None:
    """The result of a run, where there is one that can be read."""
    try:
      return self.find(key)
    except training.DamagedResultError:
      return None

  def has_weights(self, result: training.Result) -> bool:
    """Whether the weights of a run were kept and still stand."""
    second = self.second(result.key)
    if second is not None and second.weights is not None:
      return (self.directory / _SECOND / second.weights['file']).exists()
    return result.weights is not None and (
        self.directory / result.weights['file']).exists()

  def second(self, key: str) -> training.Result | None:
    """The result of a second training, for weights that were gone."""
    try:
      return training.read_result(self.directory / _SECOND / f'{key}.json')
    except (FileNotFoundError, training.DamagedResultError):
      return None  # a damaged one is made anew

  def remark(self, result: training.Result) -> str:
    """How the training for its weights differs from a result, if it does."""
    second = self.second(result.key)
    if second is None:
      return ''
    if second.status != result.status:
      return f'{result.key}: trained again for its weights, it {second.status}.'
    changed = {
        name: (value, second.metrics.get(name))
        for name, value in result.metrics.items()
        if _differ(value, second.metrics.get(name))}
    if not changed:
      return ''
    name = 'test_accuracy' if 'test_accuracy' in changed else min(changed)
    before, after = changed[name]
    return (f'{result.key}: trained again for its weights, it has {name} '
            f'{after} where the stored result, which is kept, has {before}'
            + (f' ({len(changed)} metrics differ).' if len(changed) > 1
               else '.'))

  def unpack(self, key: str) -> None:
    """Puts an archived result beside the others, for `training.train`."""
    if os.path.lexists(self.directory / f'{key}.json'):
      return
    result = self.find_or_none(key)
    if result is not None:
      training.write_result(result, self.directory)

  @functools.cached_property
  def everything(self) -> tuple[dict[str, training.Result], list[str]]:
    """All results by key, and a line for each file that is none."""
    found, problems = {}, list(self._bad_archives)
    with reading():
      for name in self._names():
        try:
          result = self.find(name.removesuffix('.json'))
          if result is not None:
            found[result.key] = result
        except training.DamagedResultError as error:
          problems.append(str(error))
    self._index.save()
    return found, problems

  @functools.cached_property
  def entries(self) -> list[index_lib.Entry]:
    """What is known of all files; those that the index knows are not read."""
    entries = [index_lib.Entry(problem=line) for line in self._bad_archives]
    for name in self._names():
      try:
        place = self._read.get(name) or self._place(name)
        entry = place and self._index.get(name, place[1])
        if place and entry is None:
          result = self.find(name.removesuffix('.json'))
          entry = result and index_lib.entry_of(result)
        if entry:
          entries.append(entry)
      except training.DamagedResultError as error:
        entries.append(index_lib.Entry(problem=str(error)))
    self._index.save()
    return entries

  def _names(self) -> list[str]:
    names = {file.name for file in results_lib.listed(
        self.directory, '.json')}
    return sorted(names | set(self._archived))


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


def _check_key(
    result: training.Result, file: str | os.PathLike) -> None:
  try:
    key = training.Run.from_dict(result.run).key
  except (TypeError, ValueError) as error:
    raise training.DamagedResultError(
        f'{file}: {result.key} is of no run that this version knows: {error}'
    ) from error
  if key != result.key:
    raise training.DamagedResultError(
        f'{file}: the key of {result.key} does not match its run.')


def _differ(one: float | None, other: float | None) -> bool:
  if one is None or other is None:
    return one is not other
  return abs(one - other) > 1e-6


def _contents(file: str | os.PathLike) -> dict[str, bytes]:
  """The files of an archive; raises `ValueError` where it is not ours."""
  if not os.path.isfile(file):  # a pipe would be waited for
    raise ValueError(f'{file}: it is no regular file.')
  try:
    with zipfile.ZipFile(file) as archive:
      _check_members(archive, file)
      return {info.filename: _member(archive, info)
              for info in archive.infolist()}
  except (OSError, EOFError, NotImplementedError, RuntimeError,
          zipfile.BadZipFile, zlib.error) as error:
    raise ValueError(f'{file}: {error}') from error


def _check_members(archive: zipfile.ZipFile, file: str | os.PathLike) -> None:
  """Refuses what is not ours, and what would fill the memory."""
  for info in archive.infolist():
    if not info.filename.endswith('.json'):
      raise ValueError(
          f'{file}: not an archive of results, it has {info.filename:.80}.')
    if info.file_size > _MAX_BYTES:
      raise ValueError(
          f'{file}: {info.filename:.80} has {info.file_size} bytes.')
  total = sum(info.file_size for info in archive.infolist())
  if total > _MAX_ARCHIVE_BYTES:
    raise ValueError(f'{file}: it has {total} bytes, unpacked.')


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
  with archive.open(info) as stream:
    return stream.read(_MAX_BYTES)  # whatever the archive says

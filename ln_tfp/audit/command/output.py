"""The folder that the command writes to: all files or none, and only its own.

A mark in the folder, `.ln_tfp_audit.json`, has the hashes of the files that an
audit has written there. Those may be replaced by the next one; a file that is
not in the mark, or that has changed since, belongs to the user.
"""

from collections.abc import Iterable
import contextlib
import errno
import json
import os
import pathlib
import shutil
import tempfile

from ln_tfp import files as files_lib
from ln_tfp.audit import files

NAMES = ('audit.html', 'classifier.keras', 'labels.csv')
MARK = '.ln_tfp_audit.json'
_OLD = 'old'


def check(folder: pathlib.Path, inputs: Iterable[str | None],
          overwrite: bool) -> None:
  """Refuses a folder that cannot be written, before minutes of work.

  Args:
    folder: where the files will be.
    inputs: paths that the user reads from.
    overwrite: whether the user insists on replacing files.
  """
  _check_path(folder)
  for name in filter(None, inputs):
    path = pathlib.Path(name)
    for own in NAMES:
      if path.exists() and (folder / own).exists() and (
          path.samefile(folder / own)):
        raise files.InputError(f'--output: {name} would be lost.')
  if folder.is_dir():
    for own in (*NAMES, MARK):
      if (folder / own).is_dir() and not (folder / own).is_symlink():
        raise files.InputError(f'--output: {folder / own} is a folder.')
    if not overwrite:
      _check_content(folder)
  existing = next(
      path for path in (folder, *folder.absolute().parents) if path.exists())
  try:
    with tempfile.TemporaryFile(dir=existing):
      pass
  except OSError as error:
    raise files.InputError(
        f'{existing}: not writable ({files.reason(error)}).') from error


def _check_path(folder):
  """Refuses what is no folder and cannot become one."""
  try:
    found = os.path.lexists(folder)
    os.stat(folder)
  except FileNotFoundError:
    if found:
      raise files.InputError(
          f'--output: {folder} is a link that leads nowhere.') from None
  except (OSError, ValueError) as error:
    raise files.InputError(
        f'--output: {folder}: {files.reason(error)}.') from error
  else:
    if not folder.is_dir():
      raise files.InputError(f'--output: {folder}: not a folder.')


def write(folder: pathlib.Path, writers, overwrite: bool) -> None:
  """Writes files, all of them or, if anything goes wrong, none.

  Args:
    folder: where to; it is checked again, since minutes have passed.
    writers: from each name to a function that writes such a file to a path.
    overwrite: whether the user insists on replacing files.
  """
  check(folder, (), overwrite)
  is_new = not folder.exists()
  folder.mkdir(parents=True, exist_ok=True)
  # In the folder, which may be a mount or a link: moving needs no copying.
  fresh = pathlib.Path(tempfile.mkdtemp(prefix='.new-', dir=folder))
  try:
    for name, writer in writers.items():
      _write(writer, fresh / name, folder / name)
    hashes = {name: _hash(fresh / name) for name in writers}
    _write(lambda path: path.write_text(json.dumps(hashes, indent=1)),
           fresh / MARK, folder / MARK)
    if not overwrite:
      _check_content(folder, fresh.name)
    _swap(fresh, folder)
  finally:
    if not (fresh / _OLD).exists():
      shutil.rmtree(fresh, ignore_errors=True)
    if is_new:
      with contextlib.suppress(OSError):  # it has files
        folder.rmdir()


def _write(writer, path, target):
  """Writes a file; an error names the one that the user knows."""
  try:
    writer(path)
  except OSError as error:  # of a full disk it names no file, or another one
    raise OSError(
        error.errno or errno.EIO, files.reason(error), str(target)) from error


def _swap(fresh, folder):
  """Moves new files in, and old ones out; on failure all goes back."""
  names = [path.name for path in fresh.iterdir()]
  old = fresh / _OLD
  old.mkdir()
  moved = []
  try:
    # An old file that has no successor would belie the new ones.
    for name in {*names, *_marked(folder)}:
      if os.path.lexists(folder / name):
        os.replace(folder / name, old / name)
        moved.append((old / name, folder / name))
    for name in names:
      os.replace(fresh / name, folder / name)
      moved.append((folder / name, fresh / name))
  except BaseException:
    for here, there in reversed(moved):
      with contextlib.suppress(OSError):
        os.replace(here, there)
    with contextlib.suppress(OSError):  # what could not go back stays there
      old.rmdir()
    raise
  shutil.rmtree(old, ignore_errors=True)


def _check_content(folder, besides=None):
  """Refuses a folder with files that the audit has not written."""
  content = sorted(
      path.name for path in folder.iterdir() if path.name != besides)
  marked = _marked(folder)
  if content and not marked:
    more = f' and {len(content) - 1} more' if len(content) > 1 else ''
    raise files.InputError(
        f'--output: {folder} is not empty ({content[0]}{more}); name a new '
        'folder, or say --overwrite.')
  for name in NAMES:
    path = folder / name
    if not os.path.lexists(path):
      continue
    if name not in marked:
      raise files.InputError(
          f'--output: {path} was not written by an audit; name a new folder, '
          'or say --overwrite.')
    if marked[name] != _hash(path):
      raise files.InputError(
          f'--output: {path} was changed since an audit wrote it; name a new '
          'folder, or say --overwrite.')


def _marked(folder):
  """Returns the files of the last audit, from names to hashes."""
  try:
    marked = files_lib.read_json(folder / MARK, limit=2**16)
  except (OSError, ValueError):
    return {}
  if not isinstance(marked, dict):
    return {}
  return {name: marked[name] for name in NAMES
          if isinstance(marked.get(name), str)}


def _hash(path):
  if not path.is_file():  # a pipe could be read for ever
    return None
  try:
    return files_lib.sha256(path)
  except OSError:
    return None

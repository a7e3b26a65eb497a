"""Files that are whole or not there, and readers that always come to an end."""

import contextlib
import errno
import hashlib
import json
import os
import pathlib
import secrets
import stat
from typing import Any
from typing import BinaryIO


def write_atomically(path: str | os.PathLike, content: bytes) -> None:
  """Writes a file so that it is never seen half written, even by a crash."""
  path = pathlib.Path(path)
  path.parent.mkdir(parents=True, exist_ok=True)
  temporary = path.with_name(f'.{path.name}.{secrets.token_hex(8)}.tmp')
  try:
    # Made anew, with the permissions that the user's umask leaves.
    with open(temporary, 'xb') as stream:
      stream.write(content)
      stream.flush()
      os.fsync(stream.fileno())
    os.replace(temporary, path)
  except BaseException as error:
    with contextlib.suppress(OSError):
      temporary.unlink()
    if isinstance(error, OSError):  # of a full disk it names no file
      raise OSError(
          error.errno or errno.EIO, error.strerror or str(error), str(path)
      ) from error
    raise


def open_regular(path: str | os.PathLike, limit: int | None = None) -> BinaryIO:
  """Opens a file whose end can be reached; all others are an `OSError`.

  A pipe would be waited for, and a device such as /dev/zero has no end.

  Args:
    path: of the file.
    limit: the most bytes that it may have.
  """
  # Without O_NONBLOCK, opening a pipe waits for somebody who writes to it.
  flags = getattr(os, 'O_NONBLOCK', 0) | getattr(os, 'O_BINARY', 0)
  descriptor = os.open(path, os.O_RDONLY | flags)
  try:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
      raise OSError(errno.EINVAL, 'it is no regular file', os.fspath(path))
    _check_size(path, found.st_size, limit)
    return os.fdopen(descriptor, 'rb')
  except BaseException:
    os.close(descriptor)
    raise


def read_bounded(path: str | os.PathLike, limit: int) -> bytes:
  """Returns a regular file of at most `limit` bytes, or raises `OSError`."""
  with open_regular(path, limit) as stream:
    content = stream.read(limit + 1)  # it may be growing
  _check_size(path, len(content), limit)
  return content


def read_json(path: str | os.PathLike, limit: int = 2**26) -> Any:
  """Returns what a JSON file says; `OSError`, or `ValueError` of no JSON."""
  return parse_json(read_bounded(path, limit).decode())


def parse_json(text: str | bytes) -> Any:
  """`json.loads`, for which brackets nested too deep are a `ValueError`."""
  try:
    return json.loads(text)
  except RecursionError as error:
    raise ValueError('it is nested too deep') from error


def sha256(path: str | os.PathLike) -> str:
  """Returns the hash of a file in hexadecimal."""
  digest = hashlib.sha256()
  with open(path, 'rb') as stream:
    while part := stream.read(2**20):
      digest.update(part)
  return digest.hexdigest()


def _check_size(path, size, limit):
  if limit is not None and size > limit:
    raise OSError(
        errno.EFBIG, f'it is too large: {size / 2**30:.3g} GB, of which at '
        f'most {limit / 2**30:.3g} GB are read', os.fspath(path))

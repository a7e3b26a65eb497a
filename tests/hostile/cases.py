"""What a hostile case is, and how the tables say it.

A table is a list of rows made by `audit`, `program` and `call`; each has a name
that is a sentence, what is done, what must be said, and what is there before:

    audit('A pipe is no array', 'x.npy --labels y.npy',
          r'x.npy: .*no regular file', pipe('x.npy'), npy('y.npy', LABELS))

A row that must be refused has to end with one line that matches `says` and may
change no file; `changes` names those that may appear.
"""

from collections.abc import Callable
import dataclasses
import io
import os
import pathlib
import shlex
from typing import Any
import zipfile

import numpy as np

Maker = Callable[[], None]  # writes something into the working directory


@dataclasses.dataclass(frozen=True)
class Case:
  """One row.

  Attributes:
    name: a sentence.
    kind: 'audit', 'program' or 'call'.
    what: the command line, or a function that is called.
    says: a regular expression for the line; None where it must succeed.
    makers: write what is there before.
    changes: patterns of the paths that may appear or change.
    ends: 'refused' with one line, 'shown' where the work is done and a line
      among others says what was odd, or 'failed' likewise.
  """
  name: str
  kind: str
  what: Any
  says: str | None
  makers: tuple[Maker, ...] = ()
  changes: tuple[str, ...] = ()
  ends: str = 'refused'


def audit(name: str, line: str, says: str | None, *makers: Maker,
          changes: tuple[str, ...] = ()) -> Case:
  """`python -m ln_tfp.audit LINE` in the working directory."""
  return Case(name, 'audit', shlex.split(line), says, makers, changes)


def program(name: str, line: str, says: str | None, *makers: Maker,
            changes: tuple[str, ...] = ('results',),
            ends: str = 'refused') -> Case:
  """`python -m experiments.LINE`; a worker that is started is a failure.

  `NAME=VALUE` in front of the line are variables of the environment.
  """
  return Case(name, 'program', shlex.split(line), says, makers, changes, ends)


def call(name: str, function: Callable[[], Any], says: str | None,
         *makers: Maker, changes: tuple[str, ...] = ()) -> Case:
  """A call of the public API, which raises a ValueError or TypeError.

  TensorFlow's InvalidArgumentError is one, too, as that of its own losses.
  One that must succeed raises an AssertionError where it is silently wrong.
  """
  return Case(name, 'call', function, says, makers, changes)


def raw(name: str, content: bytes | str) -> Maker:
  """A file of bytes, or of text."""
  if isinstance(content, str):
    content = content.encode()
  return lambda: _path(name).write_bytes(content)


def npy(name: str, array: Any, **settings) -> Maker:
  """An array; objects are pickled."""
  return lambda: np.save(_path(name), array, **settings)


def npz(name: str, **arrays) -> Maker:
  """An archive of arrays."""
  return lambda: np.savez(_path(name), **arrays)


def header(name: str, text: str, content: bytes = b'\0' * 64) -> Maker:
  """An .npy file with any header."""
  return raw(name, npy_bytes(text, content))


def npy_bytes(text: str, content: bytes = b'\0' * 64) -> bytes:
  """The bytes of an .npy file of version 1 with any header."""
  encoded = text.encode() + b' ' * (-(len(text) + 11) % 64) + b'\n'
  return (b'\x93NUMPY\x01\x00' + len(encoded).to_bytes(2, 'little') + encoded
          + content)


def archive(name: str, **members: bytes) -> Maker:
  """A zip file; member `a` is the file `a.npy`."""
  def write():
    with zipfile.ZipFile(_path(name), 'w', zipfile.ZIP_DEFLATED) as target:
      for member, content in members.items():
        target.writestr(f'{member}.npy', content)
  return write


def pipe(name: str) -> Maker:
  """A FIFO, which a reader waits for ever at."""
  return lambda: os.mkfifo(_path(name))


def sparse(name: str, size: int) -> Maker:
  """A file of so many bytes, all zero, which take no place."""
  def write():
    with open(_path(name), 'wb') as file:
      file.truncate(size)
  return write


def folder(name: str) -> Maker:
  """An empty folder."""
  return lambda: pathlib.Path(name).mkdir(parents=True, exist_ok=True)


def link(name: str, target: str) -> Maker:
  """A symbolic link."""
  return lambda: _path(name).symlink_to(target)


def picture(name: str, pixels: Any = None, **settings) -> Maker:
  """An image file, of grey squares by default."""
  def write():
    from PIL import Image
    array = np.full((8, 8), 100, np.uint8) if pixels is None else pixels
    image = array if isinstance(array, Image.Image) else Image.fromarray(array)
    image.save(_path(name), **settings)
  return write


def picture_bytes(width: int, height: int) -> bytes:
  """A PNG file that claims to be so large, and has next to nothing in it."""
  import zlib
  def chunk(kind, content):
    return (len(content).to_bytes(4, 'big') + kind + content
            + zlib.crc32(kind + content).to_bytes(4, 'big'))
  head = (width.to_bytes(4, 'big') + height.to_bytes(4, 'big')
          + bytes([8, 0, 0, 0, 0]))
  return (b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', head)
          + chunk(b'IDAT', zlib.compress(b'\0' * 10_000)) + chunk(b'IEND', b''))


def saved(array: Any) -> bytes:
  """The bytes of an .npy file."""
  file = io.BytesIO()
  np.save(file, array)
  return file.getvalue()


def csv(name: str, *lines: str) -> Maker:
  """A text file of lines."""
  return raw(name, '\n'.join(lines) + '\n')


def _path(name):
  path = pathlib.Path(name)
  path.parent.mkdir(parents=True, exist_ok=True)
  return path

"""One process at a time for each run, over all sweeps of a directory.

The lock is the kernel's (`flock`) on a file in `OUTPUT_DIR/.locks`: it goes
with its process, however that ends, so a file that is left over locks nothing.
"""

from collections.abc import Iterator
import contextlib
import fcntl
import os
import pathlib
import time


@contextlib.contextmanager
def hold(output_dir: str | os.PathLike, key: str) -> Iterator[bool]:
  """Holds the lock of a run; yields whether it was free."""
  directory = pathlib.Path(output_dir) / '.locks'
  directory.mkdir(parents=True, exist_ok=True)
  file = directory / key
  descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
  try:
    free = _try(descriptor) and _is_the_file(descriptor, file)
    yield free
    if free:
      file.unlink(missing_ok=True)  # still locked: nobody else removes it
  finally:
    os.close(descriptor)


@contextlib.contextmanager
def wait(output_dir: str | os.PathLike, name: str) -> Iterator[None]:
  """Holds a lock, once it is free; for what takes a moment."""
  while True:
    with hold(output_dir, name) as free:
      if free:
        yield
        return
    time.sleep(.02)


def _try(descriptor: int) -> bool:
  try:
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except BlockingIOError:
    return False
  return True


def _is_the_file(descriptor: int, file: pathlib.Path) -> bool:
  """False where the holder before us has removed the file we opened."""
  try:
    return os.path.samestat(os.fstat(descriptor), os.stat(file))
  except FileNotFoundError:
    return False

"""Files that are whole or not there."""

import os
import pathlib
import tempfile


def write_atomically(path: str | os.PathLike, content: bytes) -> None:
  """Writes a file so that it is never seen half written, even by a crash."""
  path = pathlib.Path(path)
  path.parent.mkdir(parents=True, exist_ok=True)
  descriptor, temporary = tempfile.mkstemp(
      prefix=f'.{path.name}.', suffix='.tmp', dir=path.parent)
  try:
    with os.fdopen(descriptor, 'wb') as stream:
      stream.write(content)
      stream.flush()
      os.fsync(stream.fileno())
    os.chmod(temporary, 0o644)  # mkstemp lets nobody else read
    os.replace(temporary, path)
  except BaseException:
    pathlib.Path(temporary).unlink(missing_ok=True)
    raise

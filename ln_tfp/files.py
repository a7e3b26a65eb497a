"""Files that are whole or not there."""

import os
import pathlib
import secrets


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
  except BaseException:
    temporary.unlink(missing_ok=True)
    raise

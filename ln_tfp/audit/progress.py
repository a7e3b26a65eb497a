"""How far a long step is, for a person."""

import time
from typing import TextIO

_BAR_WIDTH = 20


class Progress:
  """One line that rewrites itself on a terminal, plain lines elsewhere.

      bar = Progress(sys.stderr, 'embedding', 50_000)
      bar.update(256)
      bar.close()

  Args:
    stream: where to write; None for nowhere.
    label: what is being done.
    total: how much there is of it.
  """

  def __init__(self, stream: TextIO | None, label: str, total: int):
    self._stream = stream
    self._terminal = stream is not None and stream.isatty()
    self._interval = .1 if self._terminal else 5.
    self._label = label
    self._total = max(1, total)
    self._begin = time.monotonic()
    self._next = self._begin + self._interval
    self._width = 0

  def update(self, done: float, note: str = '') -> None:
    """Says how much is done; the last word always appears."""
    now = time.monotonic()
    if self._stream is None or (now < self._next and done < self._total):
      return
    self._next = now + self._interval
    left = ''
    if 0 < done < self._total:
      left = duration((now - self._begin) * (self._total / done - 1.))
      left = f'  {left} left'
    note = f'  {note}' if note else ''
    share = min(1., done / self._total)
    if self._terminal:
      filled = int(_BAR_WIDTH * share)
      bar = '#' * filled + '.' * (_BAR_WIDTH - filled)
      line = f'{self._label} [{bar}]{note}{left}'
      # Blanks cover what a longer line before this one has left.
      self._stream.write(f'\r{line:<{self._width}}')
      self._width = len(line)
    else:
      self._stream.write(f'{self._label} {100 * share:.0f} %{note}{left}\n')
    self._stream.flush()

  def close(self) -> None:
    """Ends the line of a terminal."""
    if self._terminal and self._width:
      self._stream.write('\n')
      self._stream.flush()


def duration(seconds: float) -> str:
  """Returns seconds as a person would say them."""
  seconds = int(round(seconds))
  if seconds < 60:
    return f'{seconds} s'
  if seconds < 3600:
    return f'{seconds // 60} min {seconds % 60:02d} s'
  return f'{seconds // 3600} h {seconds % 3600 // 60:02d} min'

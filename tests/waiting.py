"""Waiting for what other processes do."""

import time


def wait_for(condition, seconds=120.):
  """Waits until a condition holds; fails where that takes too long."""
  deadline = time.monotonic() + seconds
  while not condition():
    assert time.monotonic() < deadline
    time.sleep(.02)

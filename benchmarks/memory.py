"""Peak memory of a function, in a process of its own.

    python -m benchmarks.memory MODULE FUNCTION ARGUMENTS_AS_JSON
"""

from collections.abc import Callable
import importlib
import json
import pathlib
import re
import subprocess
import sys


def rise(function: Callable[..., None], *arguments) -> float:
  """Megabytes by which a call lifts the peak RSS of a fresh process.

  Args:
    function: of a module that can be imported.
    *arguments: JSON-able.
  """
  process = subprocess.run(
      [sys.executable, '-m', __name__, function.__module__,
       function.__name__, json.dumps(arguments)],
      check=True, capture_output=True, text=True)
  return float(process.stdout.splitlines()[-1])


def _peak() -> float:
  # Not getrusage, whose peak a process inherits from the one that started it.
  status = pathlib.Path('/proc/self/status').read_text(encoding='ascii')
  return int(re.search(r'VmHWM:\s*(\d+) kB', status)[1]) / 1e3


def main() -> None:
  module, function, arguments = sys.argv[1:]
  function = getattr(importlib.import_module(module), function)
  before = _peak()
  function(*json.loads(arguments))
  print(_peak() - before)


if __name__ == '__main__':
  main()

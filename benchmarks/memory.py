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
  module = function.__module__
  if module == '__main__':  # of a program, whose name for others this is not
    module = sys.modules[module].__spec__.name
  process = subprocess.run(
      [sys.executable, '-m', __name__, module, function.__name__,
       json.dumps(arguments)],
      check=True, stdout=subprocess.PIPE, text=True)
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

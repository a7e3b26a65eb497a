"""The laboratory: one program for each table and figure of the paper.

    python -m experiments.synthetic_noise --dataset=cifar100 --seeds=5

See docs/experiments.md.
"""

from collections.abc import Callable
from collections.abc import Mapping
import pkgutil
import sys
from typing import Any


def lazy(
    room: str, places: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
  """Names of a room that are imported when they are first asked for.

      __getattr__, __dir__ = experiments.lazy(__name__, {
          'load': 'experiments.data.sources:load'})

  A program reads its flags, and says what is wrong with them, before it
  imports TensorFlow, which takes seconds.

  Args:
    room: name of the package.
    places: the module of each name, and what it is called there.

  Returns:
    The package's `__getattr__` and `__dir__`.
  """

  def find(name):
    if name not in places:
      raise AttributeError(f'module {room!r} has no attribute {name!r}')
    value = pkgutil.resolve_name(places[name])
    setattr(sys.modules[room], name, value)
    return value

  return find, lambda: sorted(places)

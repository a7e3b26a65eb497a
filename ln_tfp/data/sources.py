"""Data sets by name: `load` never uses the network, `prepare` may."""

import importlib
import os

from ln_tfp.data import examples as examples_lib

# The module that knows each data set. They are imported on demand: TFDS and
# scikit-learn take seconds, and the embedded sets do not need the former.
_MODULES = {
    'two_moons': 'embedded',
    'circles': 'embedded',
    'digits': 'embedded',
    'digits_n': 'embedded',
}
NAMES = tuple(_MODULES)


def load(
    name: str, data_dir: str | os.PathLike | None = None
) -> examples_lib.Source:
  """Returns a data set that is on this machine."""
  return getattr(_module(name), name)()


def _module(name):
  if name not in _MODULES:
    raise ValueError(
        f'Argument `name` must be one of {", ".join(NAMES)}. '
        f'Received: name={name!r}.')
  return importlib.import_module(f'ln_tfp.data.{_MODULES[name]}')

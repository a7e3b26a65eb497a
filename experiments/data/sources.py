"""Data sets by name: `load` never uses the network, `prepare` may."""

import importlib
import os
import pathlib

from experiments.data import examples as examples_lib

# The module that knows each data set. They are imported on demand: TFDS and
# scikit-learn take seconds, and the embedded sets do not need the former.
_MODULES = {
    'two_moons': 'embedded',
    'circles': 'embedded',
    'digits': 'embedded',
    'digits_n': 'embedded',
    'mnist': 'tfds_sources',
    'fashion_mnist': 'tfds_sources',
    'cifar10': 'tfds_sources',
    'cifar100': 'tfds_sources',
    'cifar10n': 'cifar_n',
    'cifar100n': 'cifar_n',
    'clothing1m': 'clothing1m',
}
NAMES = tuple(_MODULES)
# Where TFDS puts data sets, too.
_DEFAULT_DATA_DIR = '~/tensorflow_datasets'


def load(
    name: str, data_dir: str | os.PathLike | None = None
) -> examples_lib.Source:
  """Returns a data set that is on this machine.

  Args:
    name: one of `NAMES`.
    data_dir: directory of the prepared data sets, by default that of TFDS. The
      embedded data sets do not need it.

  Raises:
    MissingDataError: if the data set is not there; says how to get it.
  """
  return _module(name).load(name, _directory(data_dir))


def prepare(name: str, data_dir: str | os.PathLike | None = None) -> None:
  """Fetches a data set, through the network if need be, see `load`."""
  _module(name).prepare(name, _directory(data_dir))


def _module(name):
  if name not in _MODULES:
    raise ValueError(
        f'Argument `name` must be one of {", ".join(NAMES)}. '
        f'Received: name={name!r}.')
  return importlib.import_module(f'experiments.data.{_MODULES[name]}')


def _directory(data_dir):
  return pathlib.Path(data_dir or _DEFAULT_DATA_DIR).expanduser()

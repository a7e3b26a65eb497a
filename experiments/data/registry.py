"""The data sets: all that is known of one before it is loaded.

A data set is registered here, once: its module, classes, label sets and
asymmetric noise, and what the protocols and search grids need to know of it.
One of one's own registers itself: a module of this folder with a dictionary
`TRAITS` (docs/extending.md). `load` never uses the network, `prepare` may.
"""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
import importlib
import os
import pathlib
import re
import types
from typing import Any

from etils import epy

from experiments.data import preprocessing as preprocessing_lib

with epy.lazy_imports():  # flags are parsed before TensorFlow is imported
  from experiments.data import examples

# Where TFDS puts data sets, too.
_DEFAULT_DATA_DIR = '~/tensorflow_datasets'


class MissingDataError(FileNotFoundError):
  """A data set is not on this machine; the message says how to get it."""


class BadDataError(ValueError):
  """The files of a data set are not what they should be; one line says how.
  """


def missing(name: str, data_dir, path) -> MissingDataError:
  """Returns the error that says what is missing and which command gets it."""
  return MissingDataError(
      f'Data set {name} needs {path}, which is missing: run '
      f'`python -m experiments.prepare --dataset={name} '
      f'--data_dir={data_dir}`.')


@dataclasses.dataclass(frozen=True)
class Traits:
  """What is known of a data set; the defaults are those of a new one.

  Attributes:
    module: of `experiments.data`, with `load(name, data_dir)` and
      `prepare(name, data_dir)`.
    class_names: in the order of the labels; () where the files tell them.
    images: the data set whose features these are; '' for all others.
    preprocessing: what happens to the pixels.
    label_sets: names of the human label sets, the worst one last.
    clean: the data set of the same examples without human labels.
    mapping: of asymmetric noise, class -> class; classes that are not
      mentioned keep their labels.
    mapping_of_code: what the authors' code moves beside (option `truck`).
    authors: the options of the protocol 'authors', beside those that all
      data sets have.
    authors_sizes: of training and validation set in the authors' code.
    samples: of Monte Carlo methods in the searches.
    min_scales: lambda in the search for LN (Appendix C).
    anchor_percentile: of the estimate of a transition matrix; None takes the
      largest probability.
    tuned_as: the data set whose tuned hyperparameters it takes; '' for its own.
    given_name: what its labels are where they are noisy as they are, for a
      table.
    recipe: flags, where there is no file flags/NAME.cfg.
    epoch_seconds: of the recipe, a run on one CPU core, for the first estimate;
      a guess where nothing is said. Finished runs tell better.
  """
  module: str = ''
  class_names: tuple[str, ...] = ()
  images: str = ''
  preprocessing: preprocessing_lib.Preprocessing = (
      preprocessing_lib.Preprocessing())
  label_sets: tuple[str, ...] = ()
  clean: str = ''
  mapping: Mapping[int, int] | None = None
  mapping_of_code: Mapping[int, int] = dataclasses.field(default_factory=dict)
  authors: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  authors_sizes: tuple[int, int] | None = None
  samples: int = 1000
  min_scales: tuple[float, ...] = (.5, 1.)
  anchor_percentile: float | None = 97.
  tuned_as: str = ''
  given_name: str = ''
  recipe: tuple[str, ...] = ()
  epoch_seconds: float = 1.


_FIVE = ('random1', 'random2', 'random3', 'aggregate', 'worst')
# Nine points with tau, as in the paper; .316, whose square is .1, stands where
# the paper prints .1 (docs/protocol.md).
_MNIST_MIN_SCALES = (.316, .5, 1.)
# The authors' code normalises both data sets with the figures of CIFAR-10, and
# pads two pixels.
_CIFAR_PREPROCESSING = preprocessing_lib.Preprocessing(
    mean=(.4914, .4822, .4465), std=(.2470, .2435, .2616), pad=2, flip=True)

_TOY = Traits(
    'embedded', ('0', '1'),
    preprocessing=preprocessing_lib.Preprocessing(scale=1.),
    mapping={0: 1, 1: 0}, samples=100, epoch_seconds=.007)
_DIGITS = Traits(
    'embedded', tuple('0123456789'),
    preprocessing=preprocessing_lib.Preprocessing(scale=1. / 16.),
    mapping={7: 1, 2: 7, 5: 6, 6: 5, 3: 8}, samples=100,
    min_scales=_MNIST_MIN_SCALES, epoch_seconds=.045)
_MNIST = dataclasses.replace(
    _DIGITS, module='tfds_sources', samples=1000, epoch_seconds=44.,
    preprocessing=preprocessing_lib.Preprocessing(),
    authors={'noise_mode': 'exact', 'split': 'authors'},
    authors_sizes=(45_000, 5_000))  # the other 10,000 are not used
_CIFAR10 = Traits(
    'tfds_sources', (
        'airplane', 'automobile', 'bird', 'cat', 'deer', 'dog', 'frog',
        'horse', 'ship', 'truck'), preprocessing=_CIFAR_PREPROCESSING,
    mapping={2: 0, 3: 5, 5: 3, 4: 7},  # bird -> airplane, cat <-> dog,
    mapping_of_code={9: 1},            # deer -> horse; truck -> automobile
    authors={'split': 'authors', 'truck': True},
    authors_sizes=(45_001, 4_999), epoch_seconds=2800.)
_CIFAR100 = Traits(
    'tfds_sources', (
        'apple', 'aquarium_fish', 'baby', 'bear', 'beaver', 'bed', 'bee',
        'beetle', 'bicycle', 'bottle', 'bowl', 'boy', 'bridge', 'bus',
        'butterfly', 'camel', 'can', 'castle', 'caterpillar', 'cattle',
        'chair', 'chimpanzee', 'clock', 'cloud', 'cockroach', 'couch', 'crab',
        'crocodile', 'cup', 'dinosaur', 'dolphin', 'elephant', 'flatfish',
        'forest', 'fox', 'girl', 'hamster', 'house', 'kangaroo', 'keyboard',
        'lamp', 'lawn_mower', 'leopard', 'lion', 'lizard', 'lobster', 'man',
        'maple_tree', 'motorcycle', 'mountain', 'mouse', 'mushroom',
        'oak_tree', 'orange', 'orchid', 'otter', 'palm_tree', 'pear',
        'pickup_truck', 'pine_tree', 'plain', 'plate', 'poppy', 'porcupine',
        'possum', 'rabbit', 'raccoon', 'ray', 'road', 'rocket', 'rose', 'sea',
        'seal', 'shark', 'shrew', 'skunk', 'skyscraper', 'snail', 'snake',
        'spider', 'squirrel', 'streetcar', 'sunflower', 'sweet_pepper',
        'table', 'tank', 'telephone', 'television', 'tiger', 'tractor',
        'train', 'trout', 'tulip', 'turtle', 'wardrobe', 'whale',
        'willow_tree', 'wolf', 'woman', 'worm'),
    preprocessing=_CIFAR_PREPROCESSING,
    mapping={label: (label + 1) % 100 for label in range(100)},
    authors={'split': 'authors'}, authors_sizes=(45_001, 4_999),
    epoch_seconds=2800.,
    # With a hundred classes three percent of the images are whole classes.
    anchor_percentile=None)

_TRAITS = {
    'two_moons': _TOY,
    'circles': _TOY,
    'digits': _DIGITS,
    'digits_n': dataclasses.replace(
        _DIGITS, label_sets=_FIVE, clean='digits'),
    'mnist': _MNIST,
    'fashion_mnist': dataclasses.replace(
        _MNIST, class_names=(
            'T-shirt/top', 'Trouser', 'Pullover', 'Dress', 'Coat', 'Sandal',
            'Shirt', 'Sneaker', 'Bag', 'Ankle boot'),
        authors_sizes=None, tuned_as='mnist'),
    'cifar10': _CIFAR10,
    'cifar100': _CIFAR100,
    'cifar10n': dataclasses.replace(
        _CIFAR10, module='cifar_n', label_sets=_FIVE, clean='cifar10',
        authors={'split': 'authors'}),
    'cifar100n': dataclasses.replace(
        _CIFAR100, module='cifar_n', label_sets=('noisy',),
        clean='cifar100'),
    'clothing1m': Traits(
        'clothing1m', preprocessing=preprocessing_lib.Preprocessing(
            mean=(.6959, .6537, .6371), std=(.3113, .3192, .3214), flip=True,
            resize=256, crop=224),
        authors={
            'label_smoothing': .1, 'weight_decay': 5e-4, 'drop_epoch': 5,
            'decay': 'kernels_and_biases'},
        given_name='Captions', epoch_seconds=120_000.),
}
# Features of CIFAR's images by a frozen backbone (docs/protocol.md). Their runs
# are short: the searches take fewer samples.
_TRAITS |= {
    f'{name}_features': dataclasses.replace(
        _TRAITS[name], images=images, samples=100, epoch_seconds=1.,
        module='features' if name == images else 'cifar_n',
        clean='' if name == images else f'{images}_features',
        preprocessing=preprocessing_lib.Preprocessing(scale=1.))
    for name, images in (('cifar10', 'cifar10'), ('cifar100', 'cifar100'),
                         ('cifar10n', 'cifar10'), ('cifar100n', 'cifar100'))}


def _discover() -> dict[str, Traits]:
  """The data sets of modules in this folder that register themselves."""
  found = {}
  for file in sorted(pathlib.Path(__file__).parent.glob('*.py')):
    # Others are not imported: some of them take seconds.
    if re.search('^TRAITS = ', file.read_text(encoding='utf-8'), re.M):
      module = importlib.import_module(f'{__package__}.{file.stem}')
      found |= {name: dataclasses.replace(traits, module=file.stem)
                for name, traits in module.TRAITS.items()}
  return found


_TRAITS |= _discover()
NAMES = tuple(_TRAITS)


def traits(name: str) -> Traits:
  """Returns the traits of a data set; one's own need not be registered."""
  return _TRAITS.get(name, Traits())


def load(
    name: str, data_dir: str | os.PathLike | None = None) -> examples.Source:
  """Returns a data set that is on this machine.

  Args:
    name: one of `NAMES`.
    data_dir: directory of the prepared data sets, by default that of TFDS. The
      embedded data sets do not need it.

  Raises:
    MissingDataError: if the data set is not there; says how to get it.
  """
  return _module(name).load(name, directory(data_dir))


def prepare(name: str, data_dir: str | os.PathLike | None = None) -> None:
  """Fetches a data set, through the network if need be, see `load`."""
  _module(name).prepare(name, directory(data_dir))


def _module(name: str) -> types.ModuleType:
  if name not in _TRAITS:
    raise ValueError(
        f'Argument `name` must be one of {", ".join(NAMES)}. '
        f'Received: name={name!r}.')
  return importlib.import_module(f'experiments.data.{_TRAITS[name].module}')


def directory(data_dir: str | os.PathLike | None) -> pathlib.Path:
  """Returns where the data sets are."""
  return pathlib.Path(data_dir or _DEFAULT_DATA_DIR).expanduser()

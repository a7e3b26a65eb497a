"""Which training examples validate: a function of the example ids alone."""

import numpy as np

from ln_tfp import random

# The sizes (training, validation) in the authors' code; the rest of MNIST's
# 60,000 is not used there.
_AUTHORS_SIZES = {
    'mnist': (45_000, 5_000),
    'cifar10': (45_001, 4_999),
    'cifar10n': (45_001, 4_999),
    'cifar100': (45_001, 4_999),
    'cifar100n': (45_001, 4_999),
}


def validation_split(ids, fraction: float = 0.1) -> np.ndarray:
  """Returns a mask `[N]` that is true for the validation examples.

  Exactly round(fraction * N) examples validate, those whose ids have the
  smallest hashes: the split is the same for every seed, noise and order.
  """
  if not 0. <= fraction <= 1.:
    raise ValueError(
        'Argument `fraction` must be in [0, 1]. '
        f'Received: fraction={fraction}.')
  by_hash = _by_hash(ids)
  mask = np.zeros(len(by_hash), bool)
  mask[by_hash[:round(fraction * len(by_hash))]] = True
  return mask


def authors_split(ids, name: str) -> tuple[np.ndarray, np.ndarray]:
  """Returns the masks of training and validation in the authors' sizes.

  Their code trains on 45,000 and validates on 5,000 of a random 50,000 of
  MNIST, and splits CIFAR 45,001 / 4,999. The other data sets, which it does not
  know, are split as by `validation_split`.
  """
  by_hash = _by_hash(ids)
  if name not in _AUTHORS_SIZES:
    validation = validation_split(ids)
    return ~validation, validation
  num_train, num_validation = _AUTHORS_SIZES[name]
  if len(by_hash) < num_train + num_validation:
    raise ValueError(
        f'Argument `ids` must be those of the whole training set of {name}. '
        f'Received: {len(by_hash)} ids.')
  train, validation = np.zeros((2, len(by_hash)), bool)
  validation[by_hash[:num_validation]] = True
  train[by_hash[num_validation:num_validation + num_train]] = True
  return train, validation


def _by_hash(ids):
  ids = np.asarray(ids)
  if len(np.unique(ids)) != len(ids):
    raise ValueError('Argument `ids` must be unique.')
  return random.order('validation split', ids)

import numpy as np
import pytest

from experiments import data


@pytest.mark.parametrize('num, expected', [(50_000, 5_000), (1_300, 130)])
def test_an_exact_tenth_validates(num, expected):
  assert data.validation_split(np.arange(num)).sum() == expected


def test_the_split_depends_on_ids_not_on_their_order():
  ids = np.arange(1000)
  shuffled = np.random.default_rng(0).permutation(ids)
  np.testing.assert_array_equal(
      data.validation_split(ids)[shuffled], data.validation_split(shuffled))


def test_the_split_is_spread_over_the_ids():
  chosen = np.flatnonzero(data.validation_split(np.arange(50_000)))
  error = 50_000 / np.sqrt(12 * len(chosen))
  assert abs(chosen.mean() - 25_000) < 4 * error


@pytest.mark.parametrize('name, num, sizes', [
    ('mnist', 60_000, (45_000, 5_000)),
    ('cifar10', 50_000, (45_001, 4_999)),
    ('cifar100n', 50_000, (45_001, 4_999)),
    ('digits', 1_300, (1_170, 130)),
])
def test_the_authors_split_has_their_sizes(name, num, sizes):
  train, validation = data.authors_split(np.arange(num), name)
  assert (train.sum(), validation.sum()) == sizes
  assert not np.any(train & validation)


def test_a_fraction_above_one_is_refused():
  with pytest.raises(ValueError, match='fraction=1.5'):
    data.validation_split(np.arange(10), fraction=1.5)

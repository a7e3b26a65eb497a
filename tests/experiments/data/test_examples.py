"""Examples: what is derived from them, and how they are cut."""

import numpy as np
import pytest

from experiments import data


def _examples(ids, given=None, true=None):
  zeros = np.zeros(len(ids), int)
  return data.Examples(
      np.asarray(ids)[:, np.newaxis], zeros if given is None else given,
      zeros if true is None else true, ids)


def test_what_the_noise_turned_out_to_be():
  examples = _examples(
      np.arange(6), given=[0, 1, 0, 2, 2, 1], true=[0, 0, 0, 2, 2, 2])
  assert examples.is_noisy.tolist() == [False, True, False, False, False, True]
  assert examples.rate == 2 / 6
  # The row of a class without examples is that of the identity.
  np.testing.assert_allclose(examples.transition_matrix(4), [
      [2 / 3, 1 / 3, 0, 0], [0, 1, 0, 0], [0, 1 / 3, 2 / 3, 0], [0, 0, 0, 1]])


def test_the_content_hash_tells_labels_and_ids_apart():
  first = _examples([3, 4], given=[0, 1])
  assert first.content_hash == _examples([3, 4], given=[0, 1]).content_hash
  others = [_examples([3, 4]), _examples([3, 5], given=[0, 1]),
            _examples([3, 4], given=[0, 1], true=[0, 1])]
  assert len({e.content_hash for e in (first, *others)}) == 4


def test_labels_and_ids_have_one_type_each():
  examples = _examples([1, 2], given=np.array([0, 1], np.uint8))
  assert examples.given.dtype == examples.true.dtype == np.int32
  assert examples.ids.dtype == np.int64


@pytest.mark.parametrize('num, expected', [(50_000, 5_000), (1_300, 130)])
def test_an_exact_tenth_validates(num, expected):
  train, validation = data.split(_examples(np.arange(num)))
  assert (len(train), len(validation)) == (num - expected, expected)
  assert not set(train.ids) & set(validation.ids)


def test_the_split_depends_on_ids_not_on_their_order():
  ids = np.arange(1000)
  shuffled = np.random.default_rng(0).permutation(ids)
  for one, other in zip(
      data.split(_examples(ids)), data.split(_examples(shuffled))):
    np.testing.assert_array_equal(one.ids, np.sort(other.ids))
    np.testing.assert_array_equal(other.inputs[:, 0], other.ids)


def test_the_split_is_spread_over_the_ids():
  _, validation = data.split(_examples(np.arange(50_000)))
  error = 50_000 / np.sqrt(12 * len(validation))
  assert abs(validation.ids.mean() - 25_000) < 4 * error


@pytest.mark.parametrize('name, num, sizes', [
    ('mnist', 60_000, (45_000, 5_000)),
    ('cifar10', 50_000, (45_001, 4_999)),
    ('cifar100n', 50_000, (45_001, 4_999)),
    ('digits', 1_300, (1_170, 130)),
])
def test_the_authors_split_has_their_sizes(name, num, sizes):
  train, validation = data.split(
      _examples(np.arange(num)), sizes=data.traits(name).authors_sizes)
  assert (len(train), len(validation)) == sizes
  assert not set(train.ids) & set(validation.ids)
  # The same examples validate as without sizes, as far as there are any.
  _, usual = data.split(_examples(np.arange(num)))
  assert set(validation.ids) <= set(usual.ids)


@pytest.mark.parametrize('arguments, message', [
    (dict(fraction=1.5), 'fraction=1.5'), (dict(sizes=(9, 2)), 'sizes')])
def test_a_cut_that_cannot_be_is_refused(arguments, message):
  with pytest.raises(ValueError, match=message):
    data.split(_examples(np.arange(10)), **arguments)


import numpy as np
import pytest
from scipy import stats

from ln_tfp import noise as noise_lib

_NUM = 100_000
_RATE = 0.3
_MNIST = {7: 1, 2: 7, 5: 6, 6: 5, 3: 8}


def _labels(num_classes, num=_NUM):
  return np.random.default_rng(0).integers(0, num_classes, num, np.int32)


def _mapping_cases():
  matrix = np.random.default_rng(1).dirichlet(np.ones(10), 10)
  return {
      'sym': ('sym:0.3', 10, None),
      'a few classes': ('asym:0.3', 10, _MNIST),
      'a circle': ('asym:0.3', 100, {i: (i + 1) % 100 for i in range(100)}),
      'a swap': ('asym:0.3', 4, {0: 3, 3: 0}),
      'a matrix': ('matrix', 10, matrix),
  }


def _expected_matrix(noise, num_classes, mapping):
  """The definition of each noise, entry by entry."""
  expected = np.zeros((num_classes, num_classes))
  for clean in range(num_classes):
    for noisy in range(num_classes):
      if noise == 'matrix':
        expected[clean, noisy] = mapping[clean][noisy]
      elif noise.startswith('sym'):
        expected[clean, noisy] = (
            (clean == noisy) * (1 - _RATE) + _RATE / num_classes)
      else:
        target = mapping.get(clean, clean)
        expected[clean, noisy] = (
            (clean == noisy) * (1 - _RATE) + (noisy == target) * _RATE)
  return expected


@pytest.mark.parametrize('mode', ['coin', 'exact'])
@pytest.mark.parametrize('case', _mapping_cases())
def test_the_realised_matrix_is_the_requested_one(case, mode):
  noise, num_classes, mapping = _mapping_cases()[case]
  labels = _labels(num_classes)
  noisy = noise_lib.corrupt(
      labels, noise, 5, num_classes=num_classes, mapping=mapping, mode=mode)
  expected = _expected_matrix(noise, num_classes, mapping)
  realised = np.zeros_like(expected)
  for clean in range(num_classes):
    realised[clean] = np.bincount(
        noisy[labels == clean], minlength=num_classes) / np.sum(
            labels == clean)
  np.testing.assert_allclose(
      noise_lib.transition_matrix(noise, num_classes, mapping), expected)
  counts = np.bincount(labels)[:, np.newaxis]
  errors = np.sqrt(expected * (1 - expected) / counts)
  # Where the probability is 0 or 1 nothing may deviate but by rounding.
  assert np.all(np.abs(realised - expected) <= 4 * errors + 1e-12)


@pytest.mark.parametrize('mode', ['coin', 'exact'])
def test_symmetric_noise_over_100_classes_passes_chi_square_in_each_row(mode):
  labels = _labels(100)
  noisy = noise_lib.corrupt(
      labels, 'sym:0.4', num_classes=100, mode=mode)
  stay = 0.6 + 0.4 / 100
  for clean in range(100):
    counts = np.bincount(noisy[labels == clean], minlength=100)
    total = counts.sum()
    expected = np.full(100, 0.4 / 100 * total)
    expected[clean] = stay * total
    assert stats.chisquare(counts, expected).pvalue * 100 > 1e-4
    assert abs(counts[clean] / total - stay) < 4 * np.sqrt(
        stay * (1 - stay) / total)


def test_symmetric_noise_may_redraw_the_same_class():
  noisy = noise_lib.corrupt(np.zeros(_NUM, int), 'sym:1', num_classes=4)
  assert abs(np.mean(noisy != 0) - 3 / 4) < 4 * np.sqrt(3 / 16 / _NUM)


def test_exact_symmetric_noise_redraws_an_exact_share_of_the_whole_set():
  # With a million classes hardly anyone is redrawn to the own class. Each
  # example is alone in its class: of these, an exact share would be nobody.
  noisy = noise_lib.corrupt(
      np.arange(1001), 'sym:0.2', num_classes=10**6, mode='exact')
  assert np.count_nonzero(noisy != np.arange(1001)) == 200


def test_exact_asymmetric_noise_moves_an_exact_share_of_each_class():
  labels = np.repeat(np.arange(10), np.arange(10, 110, 10))
  noisy = noise_lib.corrupt(
      labels, 'asym:0.3', 3, mapping=_MNIST, mode='exact')
  for clean, size in enumerate(range(10, 110, 10)):
    moves = clean in (2, 3, 5, 6, 7)
    wrong = np.count_nonzero(noisy[labels == clean] != clean)
    assert wrong == round(0.3 * size) * moves


def test_flips_never_cascade():
  labels = _labels(10)
  noisy = noise_lib.corrupt(
      labels, 'asym:1', mapping={2: 7, 7: 1, 5: 6, 6: 5})
  expected = np.array([0, 1, 7, 3, 4, 6, 5, 1, 8, 9])[labels]
  np.testing.assert_array_equal(noisy, expected)


@pytest.mark.parametrize('noise', ['sym:0.5', 'asym:0.5', 'matrix'])
def test_a_coin_depends_on_the_example_alone(noise):
  labels, ids = _labels(10, 1000), np.arange(1000) * 17
  mapping = {
      'asym:0.5': _MNIST,
      'matrix': np.full((10, 10), 0.1)}.get(noise)

  def corrupt(which):
    return noise_lib.corrupt(
        labels[which], noise, 2, ids[which], num_classes=10, mapping=mapping)

  everyone = corrupt(np.arange(1000))
  some = np.random.default_rng(0).permutation(1000)[:400]
  np.testing.assert_array_equal(corrupt(some), everyone[some])


@pytest.mark.parametrize('noise', ['sym:0.5', 'asym:0.5'])
def test_exact_noise_does_not_depend_on_the_order(noise):
  labels, ids = _labels(10, 1000), np.arange(1000)
  shuffled = np.random.default_rng(0).permutation(1000)
  first, second = (
      noise_lib.corrupt(
          labels[order], noise, 2, ids[order], mapping=_MNIST, mode='exact')
      for order in (ids, shuffled))
  np.testing.assert_array_equal(first[shuffled], second)


def test_seeds_give_independent_noise():
  labels = _labels(10)
  first, second = (
      noise_lib.corrupt(labels, 'sym:0.4', seed) for seed in (0, 1))
  rate = 0.36
  both = np.mean((first != labels) & (second != labels))
  assert abs(both - rate**2) < 4 * np.sqrt(rate**2 * (1 - rate**2) / _NUM)


def test_the_noise_of_a_seed_never_changes():
  # Results that people have must stay reproducible.
  noisy = noise_lib.corrupt(np.arange(20) % 10, 'sym:0.5')
  assert noisy.dtype == np.int32
  assert noisy.tolist() == [
      3, 4, 2, 3, 4, 1, 6, 1, 8, 4, 8, 1, 2, 3, 3, 5, 0, 3, 8, 9]


def test_ids_are_the_positions_and_classes_those_of_the_labels_by_default():
  labels = _labels(10, 1000)
  np.testing.assert_array_equal(
      noise_lib.corrupt(labels, 'sym:0.4', 7),
      noise_lib.corrupt(labels, 'sym:0.4', 7, np.arange(1000),
                        num_classes=10))


def test_without_noise_the_labels_stay_clean():
  np.testing.assert_array_equal(
      noise_lib.corrupt(np.arange(5), 'none'), np.arange(5))


def test_human_noise_is_what_is_given():
  labels, human = np.arange(5), np.array([0, 2, 2, 1, 4])
  noisy = noise_lib.corrupt(
      labels, 'human:worst', human_labels={'worst': human})
  np.testing.assert_array_equal(noisy, human)


@pytest.mark.parametrize('text', ['sym:0', 'sym:0.0', 'asym:0'])
def test_noise_of_rate_zero_is_none(text):
  assert noise_lib.parse_noise(text) == noise_lib.Noise('none')
  assert str(noise_lib.parse_noise(text)) == 'none'
  assert noise_lib.Noise(text.partition(':')[0], 0.) == noise_lib.Noise('none')


@pytest.mark.parametrize('text', ['none', 'sym:0.4', 'asym:0.3', 'human:worst'])
def test_noise_survives_its_text(text):
  assert str(noise_lib.parse_noise(text)) == text


@pytest.mark.parametrize('text', [
    '', 'sym', 'sym:', 'sym:x', 'sym:1.1', 'asym:-0.1', 'sym:nan', 'none:0.1',
    'human', 'human:', 'uniform:0.1'])
def test_a_malformed_noise_is_refused(text):
  with pytest.raises(ValueError, match='Argument `noise` must be'):
    noise_lib.parse_noise(text)


@pytest.mark.parametrize('noise, mapping, message', [
    ('asym:0.1', {0: 3}, '0 -> 3'),
    ('asym:0.1', {-1: 0}, '-1 -> 0'),
    ('asym:0.1', {0: 1.5}, '0 -> 1.5'),
    ('asym:0.1', None, 'must be a dict'),
    ('asym:0.1', np.eye(3), 'must be a dict'),
    ('matrix', np.eye(2), r'shape=\(2, 2\)'),
    ('matrix', np.full((3, 3), 0.3), 'sum to one'),
    ('matrix', [[2., -1., 0.], [0., 1., 0.], [0., 0., 1.]], 'non-negative'),
    ('matrix', np.full((3, 3), np.nan), 'sum to one'),
    ('human:worst', None, 'has no human labels'),
])
def test_a_wrong_mapping_is_refused(noise, mapping, message):
  with pytest.raises(ValueError, match=message):
    noise_lib.corrupt(np.arange(3), noise, mapping=mapping)


@pytest.mark.parametrize('labels, ids, message', [
    ([0, 3], [0, 1], '`labels` must be in 0..2'),
    ([0, -1], [0, 1], '`labels` must be in 0..2'),
    ([0., 1.], [0, 1], '`labels` must be integers'),
    ([0, 1], [0, 0], 'unique'),
    ([0, 1], [0], 'same length'),
])
def test_wrong_examples_are_refused(labels, ids, message):
  with pytest.raises(ValueError, match=message):
    noise_lib.corrupt(labels, 'sym:0.1', 0, ids, num_classes=3)


@pytest.mark.parametrize('arguments', [
    dict(kind='salt'), dict(kind='sym'), dict(kind='none', rate=.1),
    dict(kind='sym', rate='much'), dict(kind='sym', rate=float('nan')),
    dict(kind='human'), dict(kind='sym', rate=.1, name='worst')])
def test_a_noise_that_cannot_be_is_refused(arguments):
  with pytest.raises(ValueError, match='Argument `'):
    noise_lib.Noise(**arguments)


def test_an_unknown_mode_is_refused():
  with pytest.raises(ValueError, match='`mode`'):
    noise_lib.corrupt([0], 'none', mode='count')

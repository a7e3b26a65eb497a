import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from experiments import data

_NUM = 100_000
_RATE = 0.3


def _labels(num_classes, num=_NUM):
  return np.random.default_rng(0).integers(0, num_classes, num, np.int32)


def _mapping_cases():
  mnist, cifar10, cifar100 = (
      data.ASYMMETRIC_MAPPINGS[name]
      for name in ('mnist', 'cifar10', 'cifar100'))
  matrix = np.random.default_rng(1).dirichlet(np.ones(10), 10)
  return {
      'sym': ('sym:0.3', 10, None),
      'mnist': ('asym:0.3', 10, mnist),
      'cifar10': ('asym:0.3', 10, cifar10),
      'cifar10 with truck': (
          'asym:0.3', 10, data.CIFAR10_MAPPING_WITH_TRUCK),
      'cifar100': ('asym:0.3', 100, cifar100),
      'user mapping': ('asym:0.3', 4, {0: 3, 3: 0}),
      'user matrix': ('matrix', 10, matrix),
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
  noisy = data.corrupt(
      labels, np.arange(_NUM), noise, num_classes=num_classes, seed=5,
      mapping=mapping, mode=mode)
  expected = _expected_matrix(noise, num_classes, mapping)
  realised = np.zeros_like(expected)
  for clean in range(num_classes):
    realised[clean] = np.bincount(
        noisy.labels[labels == clean], minlength=num_classes) / np.sum(
            labels == clean)
  np.testing.assert_allclose(noisy.transition_matrix, realised)
  np.testing.assert_allclose(
      data.transition_matrix(noise, num_classes, mapping), expected)
  counts = np.bincount(labels)[:, np.newaxis]
  errors = np.sqrt(expected * (1 - expected) / counts)
  # Where the probability is 0 or 1 nothing may deviate but by rounding.
  assert np.all(np.abs(realised - expected) <= 4 * errors + 1e-12)


@pytest.mark.parametrize('mode', ['coin', 'exact'])
def test_symmetric_noise_over_100_classes_passes_chi_square_in_each_row(mode):
  labels = _labels(100)
  noisy = data.corrupt(
      labels, np.arange(_NUM), 'sym:0.4', num_classes=100, seed=0, mode=mode)
  stay = 0.6 + 0.4 / 100
  for clean in range(100):
    counts = np.bincount(noisy.labels[labels == clean], minlength=100)
    total = counts.sum()
    expected = np.full(100, 0.4 / 100 * total)
    expected[clean] = stay * total
    assert stats.chisquare(counts, expected).pvalue * 100 > 1e-4
    assert abs(counts[clean] / total - stay) < 4 * np.sqrt(
        stay * (1 - stay) / total)


def test_symmetric_noise_may_redraw_the_same_class():
  noisy = data.corrupt(
      np.zeros(_NUM, int), np.arange(_NUM), 'sym:1', num_classes=4, seed=0)
  assert abs(noisy.rate - 3 / 4) < 4 * np.sqrt(3 / 16 / _NUM)


def test_exact_symmetric_noise_redraws_an_exact_share_of_the_whole_set():
  # With a million classes hardly anyone is redrawn to the own class. Each
  # example is alone in its class: of these, an exact share would be nobody.
  noisy = data.corrupt(
      np.arange(1001), np.arange(1001), 'sym:0.2', num_classes=10**6, seed=0,
      mode='exact')
  assert np.count_nonzero(noisy.is_noisy) == 200


def test_exact_asymmetric_noise_moves_an_exact_share_of_each_class():
  labels = np.repeat(np.arange(10), np.arange(10, 110, 10))
  noisy = data.corrupt(
      labels, np.arange(len(labels)), 'asym:0.3', num_classes=10, seed=3,
      mapping=data.ASYMMETRIC_MAPPINGS['mnist'], mode='exact')
  for clean, size in enumerate(range(10, 110, 10)):
    moves = clean in (2, 3, 5, 6, 7)
    wrong = np.count_nonzero(noisy.is_noisy[labels == clean])
    assert wrong == round(0.3 * size) * moves


def test_flips_never_cascade():
  labels = _labels(10)
  noisy = data.corrupt(
      labels, np.arange(_NUM), 'asym:1', num_classes=10, seed=0,
      mapping={2: 7, 7: 1, 5: 6, 6: 5})
  expected = np.array([0, 1, 7, 3, 4, 6, 5, 1, 8, 9])[labels]
  np.testing.assert_array_equal(noisy.labels, expected)


@pytest.mark.parametrize('noise', ['sym:0.5', 'asym:0.5', 'matrix'])
def test_a_coin_depends_on_the_example_alone(noise):
  labels, ids = _labels(10, 1000), np.arange(1000) * 17
  mapping = {
      'asym:0.5': data.ASYMMETRIC_MAPPINGS['mnist'],
      'matrix': np.full((10, 10), 0.1)}.get(noise)

  def corrupt(which):
    return data.corrupt(
        labels[which], ids[which], noise, num_classes=10, seed=2,
        mapping=mapping).labels

  everyone = corrupt(np.arange(1000))
  some = np.random.default_rng(0).permutation(1000)[:400]
  np.testing.assert_array_equal(corrupt(some), everyone[some])


@pytest.mark.parametrize('noise', ['sym:0.5', 'asym:0.5'])
def test_exact_noise_does_not_depend_on_the_order(noise):
  labels, ids = _labels(10, 1000), np.arange(1000)
  shuffled = np.random.default_rng(0).permutation(1000)
  first, second = (
      data.corrupt(
          labels[order], ids[order], noise, num_classes=10, seed=2,
          mapping=data.ASYMMETRIC_MAPPINGS['mnist'], mode='exact').labels
      for order in (ids, shuffled))
  np.testing.assert_array_equal(first[shuffled], second)


def test_seeds_give_independent_noise():
  labels = _labels(10)
  first, second = (
      data.corrupt(
          labels, np.arange(_NUM), 'sym:0.4', num_classes=10, seed=seed)
      for seed in (0, 1))
  rate = 0.36
  both = np.mean(first.is_noisy & second.is_noisy)
  assert abs(both - rate**2) < 4 * np.sqrt(rate**2 * (1 - rate**2) / _NUM)


def test_another_process_makes_the_same_noise():
  program = (
      'import numpy as np\n'
      'from experiments import data\n'
      "noisy = data.corrupt(np.arange(1000) % 10, np.arange(1000), 'sym:0.4',"
      ' num_classes=10, seed=9)\n'
      'print(noisy.content_hash)\n')
  output = subprocess.run(
      [sys.executable, '-c', program], check=True, capture_output=True,
      text=True).stdout
  here = data.corrupt(
      np.arange(1000) % 10, np.arange(1000), 'sym:0.4', num_classes=10, seed=9)
  assert output.split()[-1] == here.content_hash


def test_the_noise_of_a_seed_never_changes():
  # Results that people have must stay reproducible.
  noisy = data.corrupt(
      np.arange(20) % 10, np.arange(20), 'sym:0.5', num_classes=10, seed=0)
  assert noisy.labels.tolist() == [
      3, 4, 2, 3, 4, 1, 6, 1, 8, 4, 8, 1, 2, 3, 3, 5, 0, 3, 8, 9]


def test_without_noise_the_labels_stay_clean():
  noisy = data.corrupt(
      np.arange(5), np.arange(5), 'none', num_classes=5, seed=0)
  assert noisy.rate == 0
  np.testing.assert_array_equal(noisy.transition_matrix, np.eye(5))


def test_human_noise_is_what_the_data_set_brings():
  train = data.load('digits_n').train
  noisy = data.corrupt(
      train.labels, train.ids, 'human:worst', num_classes=10, seed=0,
      human_labels=train.noisy_labels)
  np.testing.assert_array_equal(noisy.labels, train.noisy_labels['worst'])


def test_rows_of_absent_classes_are_those_of_the_identity():
  noisy = data.corrupt(
      np.array([0, 0, 2]), np.arange(3), 'sym:0.9', num_classes=4, seed=0)
  np.testing.assert_allclose(noisy.transition_matrix.sum(axis=1), 1.)
  np.testing.assert_array_equal(noisy.transition_matrix[1], [0, 1, 0, 0])


def test_noisy_labels_survive_saving(tmp_path):
  noisy = data.corrupt(
      _labels(10, 100), np.arange(100), 'sym:0.4', num_classes=10, seed=0)
  noisy.save(tmp_path / 'labels.npz')
  loaded = data.NoisyLabels.load(tmp_path / 'labels.npz')
  np.testing.assert_array_equal(loaded.labels, noisy.labels)
  np.testing.assert_array_equal(loaded.is_noisy, noisy.is_noisy)
  np.testing.assert_array_equal(loaded.ids, noisy.ids)
  assert loaded.num_classes == 10


def test_a_changed_label_is_noticed_on_loading(tmp_path):
  path = tmp_path / 'labels.npz'
  data.corrupt(
      np.arange(4), np.arange(4), 'none', num_classes=4, seed=0).save(path)
  with np.load(path) as file:
    arrays = dict(file)
  arrays['labels'][2] = 0
  np.savez(path, **arrays)
  with pytest.raises(ValueError, match='damaged'):
    data.NoisyLabels.load(path)


def test_a_truncated_file_of_noisy_labels_is_refused(tmp_path):
  path = tmp_path / 'labels.npz'
  data.corrupt(
      np.arange(4), np.arange(4), 'none', num_classes=4, seed=0).save(path)
  path.write_bytes(path.read_bytes()[:100])
  with pytest.raises(ValueError, match='no file of noisy labels'):
    data.NoisyLabels.load(path)


@pytest.mark.parametrize('text', ['none', 'sym:0.4', 'asym:0.3', 'human:worst'])
def test_noise_survives_its_text(text):
  assert str(data.parse_noise(text)) == text


@pytest.mark.parametrize('text', [
    '', 'sym', 'sym:', 'sym:x', 'sym:1.1', 'asym:-0.1', 'sym:nan', 'none:0.1',
    'human', 'human:', 'uniform:0.1'])
def test_a_malformed_noise_is_refused(text):
  with pytest.raises(ValueError, match='Argument `noise` must be'):
    data.parse_noise(text)


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
    data.corrupt(
        np.arange(3), np.arange(3), noise, num_classes=3, seed=0,
        mapping=mapping)


@pytest.mark.parametrize('labels, ids, message', [
    ([0, 3], [0, 1], '`labels` must be in 0..2'),
    ([0, -1], [0, 1], '`labels` must be in 0..2'),
    ([0., 1.], [0, 1], '`labels` must be integers'),
    ([0, 1], [0, 0], 'unique'),
    ([0, 1], [0], 'same length'),
])
def test_wrong_examples_are_refused(labels, ids, message):
  with pytest.raises(ValueError, match=message):
    data.corrupt(labels, ids, 'sym:0.1', num_classes=3, seed=0)


def test_an_unknown_mode_is_refused():
  with pytest.raises(ValueError, match='`mode`'):
    data.corrupt([0], [0], 'none', num_classes=1, seed=0, mode='count')

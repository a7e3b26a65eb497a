"""Metrics against plain loops over the examples."""

import math

import numpy as np
import pytest

from experiments.training import evaluation


def _random_predictions(seed=0, size=200, columns=5):
  rng = np.random.default_rng(seed)
  probabilities = rng.dirichlet(np.ones(columns), size).astype(np.float32)
  return probabilities, rng.integers(columns, size=size)


def test_nll_is_the_mean_of_logarithms():
  probabilities, labels = _random_predictions()
  expected = -sum(
      math.log(float(p[y])) for p, y in zip(probabilities, labels)) / 200
  actual = evaluation.negative_log_likelihood(probabilities, labels)
  assert actual == pytest.approx(expected, rel=1e-12)


def test_nll_of_a_certain_error_is_finite():
  nll = evaluation.negative_log_likelihood(
      np.array([[1., 0.]], np.float32), np.array([1]))
  assert 80. < nll < 100.


def test_ece_equals_a_loop_over_bins():
  probabilities, labels = _random_predictions()
  expected = 0.
  for b in range(15):
    members = [
        (float(p.max()), p.argmax() == y)
        for p, y in zip(probabilities, labels)
        if b / 15 < float(p.max()) <= (b + 1) / 15]
    if members:
      confidence, right = np.mean(members, axis=0)
      expected += len(members) / 200 * abs(right - confidence)
  actual = evaluation.expected_calibration_error(probabilities, labels)
  assert actual == pytest.approx(expected, rel=1e-9)


def test_ece_of_certain_and_right_predictions_is_zero():
  probabilities = np.eye(3)[[0, 1, 2, 1]]
  assert evaluation.expected_calibration_error(
      probabilities, np.array([0, 1, 2, 1])) == 0.


def test_calibration_counts_the_dummy_class_and_leaves_it_out():
  probabilities = np.array([[.2, .3, .5]], np.float32)
  metrics = evaluation.calibration(probabilities, np.array([1]), 2)
  assert metrics['nll'] == pytest.approx(-math.log(.3))
  assert metrics['nll_classes'] == pytest.approx(-math.log(.6))
  assert metrics['ece'] == pytest.approx(.5)  # the dummy class is an error
  assert metrics['ece_classes'] == pytest.approx(.4)


def test_training_accuracies_tell_the_parts_apart():
  given = np.array([0, 0, 1, 1, 2])
  true = np.array([0, 0, 1, 2, 1])
  predictions = np.array([0, 1, 1, 1, 1])
  counts = evaluation.training_counts(predictions, given, true)
  assert evaluation.training_accuracies(counts) == {
      'train_accuracy_given': 3 / 5,
      'train_accuracy_clean_part': 2 / 3,
      'train_accuracy_mislabelled_given': 1 / 2,
      'train_accuracy_mislabelled_true': 1 / 2,
  }
  halves = [
      evaluation.training_counts(predictions[i], given[i], true[i])
      for i in (slice(2), slice(2, 5))]
  np.testing.assert_array_equal(counts, sum(halves))


def test_classes_that_asymmetric_noise_moves_are_measured_apart():
  true = np.array([7, 7, 7, 2, 2, 0])
  given = np.array([7, 7, 1, 2, 7, 0])
  predictions = np.array([7, 1, 1, 2, 2, 0])
  classes = evaluation.moved_classes('asym:0.4', given, true)
  assert classes == [2, 7]
  counts = evaluation.training_counts(predictions, given, true, classes)
  apart = evaluation.training_accuracies(counts, classes)
  assert {name: value for name, value in apart.items() if '/' in name} == {
      'train_accuracy_clean_part/2': 1.,
      'train_accuracy_mislabelled_given/2': 0.,
      'train_accuracy_clean_part/7': 1 / 2,
      'train_accuracy_mislabelled_given/7': 1.}
  without = evaluation.training_accuracies(
      evaluation.training_counts(predictions, given, true))
  assert without == {name: apart[name] for name in without}
  assert not evaluation.moved_classes('sym:0.4', given, true)
  many = np.arange(100)
  assert not evaluation.moved_classes('asym:0.4', (many + 1) % 100, many)


def test_accuracy_of_an_empty_part_is_none():
  assert evaluation.accuracy(np.array([]), np.array([])) is None
  counts = evaluation.training_counts(*np.zeros((3, 4)))
  accuracies = evaluation.training_accuracies(counts)
  assert accuracies['train_accuracy_mislabelled_true'] is None

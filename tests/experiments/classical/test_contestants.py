"""Problems depend on their seed, contestants see noisy labels alone."""

import numpy as np
import pytest

from experiments import data
from experiments.classical import contestants
from experiments.classical import problems


@pytest.mark.parametrize('name', ['iris', 'wine', 'breast_cancer', 'digits'])
def test_a_problem_is_a_function_of_its_seed(name):
  one, same, other = (
      problems.load(name, 'sym:0.4', seed) for seed in (0, 0, 1))
  np.testing.assert_array_equal(one.x, same.x)
  np.testing.assert_array_equal(one.given, same.given)
  assert not np.array_equal(one.test_y, other.test_y)
  assert set(one.test_y) == set(range(one.num_classes))


def test_noise_is_in_the_training_labels_alone():
  clean = problems.load('digits', 'none', 0)
  noisy = problems.load('digits', 'asym:0.4', 0)
  np.testing.assert_array_equal(clean.test_y, noisy.test_y)
  np.testing.assert_array_equal(clean.x, noisy.x)
  wrong = clean.given != noisy.given
  assert .15 < wrong.mean() < .25  # half of the classes are moved
  mapping = data.traits('digits').mapping
  assert all(mapping[true] == given for true, given in zip(
      clean.given[wrong], noisy.given[wrong]))


def test_large_problems_are_random_rows_in_units_of_one(monkeypatch):
  random = np.random.default_rng(0)
  make = lambda size: data.Examples(
      random.integers(256, size=[size, 4, 4, 1]).astype(np.uint8),
      *[random.integers(10, size=size)] * 2, np.arange(size))
  source = data.Source(
      'mnist', tuple('0123456789'), make(4_000), make(2_500),
      data.Preprocessing())
  monkeypatch.setattr(problems, '_load', lambda *_: source)
  problem = problems.load('mnist_3000', 'sym:0.2', 0)
  assert problem.x.shape == (3_000, 16)
  assert problem.test_x.shape == (2_000, 16)
  assert problem.x.max() == 1.
  assert .1 < np.mean(problem.given != problems.load(
      'mnist_3000', 'none', 0).given) < .25


@pytest.mark.parametrize('name', contestants.CONTESTANTS)
@pytest.mark.slow
def test_a_contestant_learns_from_noisy_labels(name):
  problem = problems.load('iris', 'sym:0.2', 0)
  classifier = contestants.CONTESTANTS[name](problem, 0)
  predicted = contestants.probabilities(classifier, problem.test_x, 3)
  np.testing.assert_allclose(predicted.sum(axis=1), 1., rtol=1e-6)
  assert np.mean(predicted.argmax(axis=1) == problem.test_y) > .8


def test_the_gaussian_process_tunes_on_few_rows_and_fits_all(monkeypatch):
  monkeypatch.setattr(contestants, '_GP_ROWS', 100)
  problem = problems.load('breast_cancer', 'none', 0)
  assert len(problem.x) > 100
  model = contestants.fit_gaussian_process(problem, 0)
  assert model[-1].base_estimator_.X_train_.shape == problem.x.shape
  assert model.score(problem.test_x, problem.test_y) > .93


@pytest.mark.slow
def test_a_class_that_was_never_seen_has_no_probability():
  problem = problems.load('iris', 'none', 0)
  keep = problem.given < 2
  classifier = contestants.fit_process(problems.Problem(
      problem.x[keep], problem.given[keep], problem.test_x, problem.test_y, 3,
      False), 0)
  predicted = contestants.probabilities(classifier, problem.test_x, 3)
  np.testing.assert_array_equal(predicted[:, 2], 0.)

"""Tests of the quality of labels, the threshold and the transition matrix."""

import numpy as np
import pytest
from scipy import stats

from ln_tfp.audit.judging import evidence
from ln_tfp.audit.judging import odds
from ln_tfp.audit.judging import transitions


def _targets(num_classes, dims, t):
  """Logits of smoothed labels, straight from the definition."""
  rows = []
  for k in range(num_classes):
    q = np.full(dims + 1, t / (dims + 1))
    q[k] += 1 - t
    rows.append([np.log(q[i] / q[dims]) for i in range(dims)])
  return np.array(rows)


@pytest.mark.parametrize('dims', [4, 3])  # with and without the dummy class
def test_distances_are_those_to_the_targets_of_the_loss(dims):
  rng = np.random.default_rng(0)
  outputs = rng.normal(size=(6, 3, dims)).astype(np.float32)
  targets = _targets(4, dims, .05)
  expected = [[np.sum((target - mu)**2) for target in targets]
              for mu in outputs[:, 0].astype(np.float64)]
  np.testing.assert_allclose(
      evidence.squared_distances(outputs, 4, .05), expected, rtol=1e-6)


def test_quality_is_one_half_as_far_from_the_given_class_as_from_another():
  distances = np.array([[4., 4., 9.], [1., 9., 9.], [9., 1., 9.], [4., 1., 4.]])
  found = evidence.weigh(distances, np.array([0, 0, 0, 1]))
  # One confusion is no pattern: all weights are near one.
  np.testing.assert_allclose(
      found.quality, [.5, .75, .25, 2 / 3], atol=.08)
  assert found.is_issue.tolist() == [False, False, True, False]
  assert found.alternative[2] == 1


def test_there_are_as_many_issues_as_examples_nearer_to_another_class():
  rng = np.random.default_rng(1)
  distances = rng.uniform(.1, 1., (500, 5))
  given = rng.integers(0, 5, 500)
  found = evidence.weigh(distances, given)
  nearer = distances.argmin(axis=1) != given
  assert found.is_issue.sum() == nearer.sum()
  assert found.quality[found.is_issue].max() < (
      found.quality[~found.is_issue].min())


def test_labels_that_the_model_agrees_with_are_no_issues():
  rng = np.random.default_rng(2)
  distances = rng.uniform(.1, 1., (200, 4))
  found = evidence.weigh(distances, distances.argmin(axis=1))
  assert not found.is_issue.any()
  assert np.all((found.quality > .5) & (found.quality < 1.))


def test_labels_that_the_model_never_agrees_with_are_all_issues():
  distances = np.array([[4., 1.], [1., 4.]])
  assert evidence.weigh(distances, np.array([0, 1])).is_issue.all()


def test_symmetric_confusions_have_equal_weights():
  rng = np.random.default_rng(3)
  nearest = rng.integers(0, 6, 20_000)
  noise = rng.uniform(size=20_000) < .3
  given = np.where(noise, rng.integers(0, 6, 20_000), nearest)
  weights = evidence.confusion_weights(nearest, given, 6)
  np.testing.assert_allclose(
      weights[~np.eye(6, dtype=bool)], 1., atol=.1)


def test_a_frequent_confusion_weighs_more_than_one_that_never_happens():
  rng = np.random.default_rng(4)
  nearest = rng.integers(0, 6, 3_000)
  flips = (nearest == 2) & (rng.uniform(size=3_000) < .4)
  weights = evidence.confusion_weights(
      nearest, np.where(flips, 5, nearest), 6)
  assert weights[2, 5] > 10.
  assert weights[1, 4] < .1


def test_a_frequent_confusion_makes_a_borderline_label_rank_worse():
  rng = np.random.default_rng(5)
  num = 1_000
  true = rng.integers(0, 3, num)
  given = np.where((true == 0) & (rng.uniform(size=num) < .4), 1, true)
  distances = np.full((num, 3), 9.)
  distances[np.arange(num), true] = 1.
  distances[:2] = [[4., 3., 9.], [9., 3., 4.]]
  given[:2] = 1
  found = evidence.weigh(distances, given)
  assert found.quality[0] < found.quality[1]


def test_the_transition_matrix_counts_and_its_errors_are_of_jeffreys():
  true = np.array([0] * 8 + [1] * 4)
  given = np.array([0] * 6 + [1] * 2 + [1] * 4)
  matrix, stderr = transitions.estimate(true, given, 3)
  np.testing.assert_allclose(matrix, [[.75, .25, 0], [0, 1, 0], [0, 0, 1]])
  for (i, j), successes, size in (((0, 1), 2, 8), ((1, 2), 0, 4),
                                  ((2, 0), 0, 0)):
    expected = stats.beta(successes + .5, size - successes + .5).std()
    np.testing.assert_allclose(stderr[i, j], expected)


def test_counting_has_its_say_where_the_noise_model_believes_in_no_noise():
  assert transitions.blend(.07, .09) == .07
  assert transitions.blend(.02, .07) == .02
  assert transitions.blend(0., .14) == .14
  assert .01 < transitions.blend(.01, .06) < .06
  assert transitions.describe(.07, .09).endswith('up to 9.0 % by counting')
  assert 'a world without noise' in transitions.describe(.001, .14)


def test_the_odds_keep_their_order_at_any_rate():
  wrong, logit = np.array([.9, .5, 1e-9, .2]), np.array([1., 2., 9., 3.])
  fixed = np.array([False, False, False, True])
  for rate in (.01, .3, .6):
    found = odds.wrong_probability(wrong, logit, fixed, rate)
    assert found[3] == 0. and found[:3].mean() == pytest.approx(rate, abs=1e-5)
    assert found[0] > found[1] > found[2]

"""Tests of what is asked where labels fit a world without noise."""

import numpy as np
import pytest
from sklearn import datasets
from sklearn import metrics
from sklearn import neighbors

import ln_tfp
from ln_tfp.audit.judging import opinions


def _annotated(seed=3, num=900, seen=45):
  """Digits with the labels of somebody who knows a few of them by heart."""
  x, true = datasets.load_digits(return_X_y=True)
  rows = np.random.default_rng(seed).permutation(len(x))[:num]
  x, true = x[rows], true[rows]
  given = neighbors.KNeighborsClassifier(1).fit(
      x[:seen], true[:seen]).predict(x)
  return x, given, true


def test_neighbours_vote_with_their_labels_but_nobody_for_oneself():
  rng = np.random.default_rng(0)
  x, y = rng.normal(size=(60, 4)), rng.integers(0, 3, 60)
  found = opinions.by_neighbours(x, y, 3)
  votes = []
  for values in (x, x / x.std(axis=0)):
    near = neighbors.NearestNeighbors(n_neighbors=10).fit(
        values).kneighbors(return_distance=False)
    votes.append(np.eye(3)[y[near]].sum(axis=1) + 1 / 3)
  best = max(votes, key=lambda v: np.sum(v.argmax(axis=1) == y))
  np.testing.assert_allclose(found, best / 11., rtol=1e-5)


def test_columns_of_large_units_do_not_hide_the_others():
  rng = np.random.default_rng(1)
  y = rng.integers(0, 2, 300)
  x = np.stack([4. * y + rng.normal(size=300),
                1.7e9 + 1e6 * rng.normal(size=300)], axis=1)
  found = opinions.by_neighbours(x, y, 2)
  assert np.mean(found.argmax(axis=1) == y) > .9


@pytest.mark.slow
def test_several_opinions_find_mistakes_that_follow_from_the_example():
  x, given, true = _annotated()
  wrong = given != true
  report = ln_tfp.audit_features(x, given)
  assert 'a world without noise' in report.noise_rate_kind
  alone = report.pred_probs[np.arange(len(given)), given]
  found, by_process = (metrics.average_precision_score(wrong, -quality)
                       for quality in (report.quality, alone))
  assert found > by_process + .03
  right = report.alternative[wrong] == true[wrong]
  assert right.mean() > .4


@pytest.mark.slow
def test_several_opinions_change_the_order_but_not_the_number():
  x, given, _ = _annotated(num=500)
  certain = np.arange(len(given)) < 20
  batches = lambda: iter(np.array_split(x, 3))
  report = ln_tfp.audit_features(x, given, certain=certain)
  streamed = ln_tfp.audit_features(batches, given, certain=certain)
  assert 'a world without noise' in report.noise_rate_kind
  assert report.is_issue.sum() == streamed.is_issue.sum() > 0
  np.testing.assert_allclose(np.sort(report.wrong_probability),
                             np.sort(streamed.wrong_probability), atol=1e-3)
  assert not np.array_equal(report.ranked_issues, streamed.ranked_issues)
  assert not report.wrong_probability[certain].any()


@pytest.mark.slow
def test_examples_without_a_label_have_no_vote():
  x, given, _ = _annotated(num=500)
  missing = given.astype(float)
  missing[::7] = np.nan
  kept = ~np.isnan(missing)
  some = ln_tfp.audit_features(x, missing)
  assert len(some) == kept.sum()
  alone = ln_tfp.audit_features(x[kept], given[kept])
  assert np.corrcoef(some.quality, alone.quality)[0, 1] > .95

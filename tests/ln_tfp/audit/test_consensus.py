"""Tests of `ln_tfp.consensus`."""

import numpy as np
import pandas as pd
import pytest

import ln_tfp

K = 3


def _crowd(num=500, num_annotators=5, seed=0, seen=.6):
  """Clouds of points, and annotators of accuracies from .9 down to .5."""
  rng = np.random.default_rng(seed)
  true = rng.integers(0, K, num)
  x = 2. * np.eye(K, 6)[true] + rng.normal(size=(num, 6))
  accuracy = np.linspace(.9, .5, num_annotators)
  wrong = (true[:, np.newaxis] + rng.integers(1, K, (num, num_annotators))) % K
  right = rng.random((num, num_annotators)) < accuracy
  votes = np.where(right, true[:, np.newaxis], wrong)
  votes[rng.random(votes.shape) > seen] = -1
  return x, votes, true, accuracy


def _majority(votes, num_classes):
  counts = np.stack([(votes == k).sum(axis=1) for k in range(num_classes)])
  return counts.argmax(axis=0)


@pytest.fixture(scope='module')
def crowd():
  x, votes, true, accuracy = _crowd()
  return x, votes, true, accuracy, ln_tfp.consensus(x, votes)


@pytest.mark.slow
def test_it_is_better_than_the_majority(crowd):
  _, votes, true, _, agreed = crowd
  majority = np.mean(_majority(votes, K) == true)
  assert np.mean(agreed.labels == true) > majority + .05


def test_annotators_are_known(crowd):
  _, votes, true, accuracy, agreed = crowd
  np.testing.assert_allclose(agreed.annotator_accuracy, accuracy, atol=.07)
  assert agreed.annotator_confusion.shape == (5, K, K)
  np.testing.assert_allclose(agreed.annotator_confusion.sum(axis=2), 1.)
  for m, column in enumerate(votes.T):
    voted = column >= 0
    matrix = np.zeros((K, K))
    np.add.at(matrix, (true[voted], column[voted]), 1)
    matrix /= matrix.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        agreed.annotator_confusion[m], matrix, atol=.15)


def test_confidence_is_honest_and_says_what_is_worth_another_vote(crowd):
  _, _, true, _, agreed = crowd
  right = agreed.labels == true
  assert abs(agreed.confidence.mean() - right.mean()) < .05
  worst = agreed.worth_another_vote[:50]
  assert right[worst].mean() < right.mean() - .15
  np.testing.assert_allclose(agreed.probabilities.sum(axis=1), 1., rtol=1e-5)


@pytest.mark.slow
def test_an_example_without_votes_gets_a_label_from_its_features(crowd):
  x, votes, true, _, _ = crowd
  votes = votes.copy()
  votes[:50] = -1
  agreed = ln_tfp.consensus(x, votes)
  assert np.mean(agreed.labels[:50] == true[:50]) > .7


@pytest.mark.slow
def test_names_columns_and_index_of_a_data_frame_are_kept(crowd):
  x, votes, _, _, expected = crowd
  names = np.array(['ant', 'bee', 'cat', None], object)
  frame = pd.DataFrame(
      names[votes], index=[f'e{i}' for i in range(len(x))],
      columns=['Ann', 'Bob', 'Cid', 'Dee', 'Eve'])
  agreed = ln_tfp.consensus(x, frame)
  assert agreed.class_names == ('ant', 'bee', 'cat')
  assert agreed.annotators == ('Ann', 'Bob', 'Cid', 'Dee', 'Eve')
  np.testing.assert_allclose(
      agreed.probabilities, expected.probabilities, atol=1e-5)
  assert agreed.to_pandas().index[3] == 'e3'
  assert 'Least accurate:\n  Eve' in str(agreed)


@pytest.mark.parametrize('change, message', [
    (dict(votes=np.zeros(500)), r'`votes` must have the shape \[N, M\]'),
    (dict(votes=np.zeros((500, 1))), '`audit_features` is for one'),
    (dict(votes=np.full((499, 2), 1)), '500 rows and 499 labels'),
    (dict(annotators=['a']), '`annotators` must have 5'),
    (dict(class_names=['a', 'b']), '`votes` must hold classes of 0, 1'),
])
def test_wrong_arguments_are_named(crowd, change, message):
  x, votes, _, _, _ = crowd
  with pytest.raises(ValueError, match=message):
    ln_tfp.consensus(**{'features': x, 'votes': votes, **change})

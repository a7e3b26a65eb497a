"""Labels of all kinds become votes."""

import numpy as np
import pytest

from ln_tfp.process import votes as votes_lib


def read(y, reader=None):
  y = np.asarray(y)
  reader = reader or votes_lib.Reader()
  votes = reader.read(y, np.zeros(len(y), bool))
  order = reader.finish()
  return reader.classes, votes_lib.Votes(
      votes_lib.renumber(votes.labels, order), len(order), votes.certain)


def test_ordinary_labels_of_any_type_become_one_hot():
  for y in (['b', 'a', 'c', 'a'], [7, -1, 9, -1], [1.5 > 1, False, True]):
    classes, votes = read(y)
    np.testing.assert_array_equal(classes, np.unique(y))
    np.testing.assert_array_equal(
        votes.targets(), np.asarray(y)[:, np.newaxis] == classes)


def test_annotators_targets_are_their_mean_vote():
  classes, votes = read([[0, 0, 1], [2, -1, -1], [-1, -1, -1]])
  np.testing.assert_array_equal(classes, [0, 1, 2])
  np.testing.assert_allclose(
      votes.targets(), [[2 / 3, 1 / 3, 0], [0, 0, 1], [0, 0, 0]], rtol=1e-6)
  np.testing.assert_array_equal(votes.is_labelled, [True, True, False])
  assert votes.num_annotators == 3


def test_classes_that_appear_later_find_their_place():
  reader = votes_lib.Reader()
  parts = [reader.read(np.array(y), np.zeros(2, bool))
           for y in (['c', 'a'], ['b', 'c'])]
  order = reader.finish()
  labels = np.concatenate([
      votes_lib.renumber(part.labels, order) for part in parts])
  np.testing.assert_array_equal(reader.classes[labels[:, 0]], list('cabc'))
  with pytest.raises(ValueError, match="Received: \\['d'\\]"):
    reader.read(np.array(['d', 'a']), np.zeros(2, bool))


def test_evidence_and_counts_are_sums_over_annotators():
  random = np.random.default_rng(0)
  labels = random.integers(-1, 3, size=[20, 4])
  votes = votes_lib.Votes(labels, 3, np.arange(20) < 5)
  transition = random.dirichlet(np.ones(3), size=[4, 3])
  posterior = random.dirichlet(np.ones(3), size=20)
  evidence = np.zeros([20, 3])
  counts = np.zeros([4, 3, 3])
  for i, row in enumerate(labels):
    for m, label in enumerate(row):
      if label >= 0:
        evidence[i] += np.log(transition[m, :, label])
        if i >= 5:  # the others are certain
          counts[m, :, label] += posterior[i]
  np.testing.assert_allclose(
      votes.log_evidence(np.log(transition)), evidence, rtol=1e-6)
  np.testing.assert_allclose(votes.counts(posterior), counts, rtol=1e-6)


def test_soft_labels_count_by_their_shares():
  _, votes = read([[.2, .8], [1., 0.], [0., 0.]])
  log_transition = np.log([[[.9, .1], [.3, .7]]])
  np.testing.assert_allclose(
      votes.log_evidence(log_transition)[0],
      .2 * log_transition[0, :, 0] + .8 * log_transition[0, :, 1])
  np.testing.assert_array_equal(votes.is_labelled, [True, True, False])


@pytest.mark.parametrize('y, message', [
    ([[0, 1], [1, 0]], 'one-hot'),
    ([[.5, .6], [1., 0.]], 'sum to one'),
    ([[-.5, 1.5], [1., 0.]], 'not negative'),
    ([['a', 'b'], ['b', 'a']], 'annotators'),
    ([[0, 1, -2], [1, 0, 2]], 'Received: -2'),
    ([.5, 1.5, 2.5], 'Unknown label type'),
    ([0., np.nan, 1.], 'Input y contains NaN'),
])
def test_labels_that_mean_nothing_are_refused(y, message):
  with pytest.raises(ValueError, match=message):
    read(y)


def test_soft_labels_of_another_width_than_the_classes_are_refused():
  reader = votes_lib.Reader(classes=['a', 'b', 'c'])
  with pytest.raises(ValueError, match='each of the 3 classes'):
    reader.read(np.eye(4), np.zeros(4, bool))
  assert reader.read(np.eye(3), np.zeros(3, bool)).num_classes == 3
  np.testing.assert_array_equal(reader.classes, ['a', 'b', 'c'])


@pytest.mark.parametrize('later', [
    np.array([[0, 1], [1, 1]]), np.eye(2), np.array([[0, 1, -1], [1, 1, 1]])])
def test_labels_keep_their_form_from_batch_to_batch(later):
  for first in (np.array([0, 1]), np.array([[0, 1], [-1, 1]]), np.eye(2)):
    if first.dtype == later.dtype and first.shape == later.shape:
      continue
    reader = votes_lib.Reader()
    reader.read(first, np.zeros(2, bool))
    with pytest.raises(ValueError, match='the same form in all batches'):
      reader.read(later, np.zeros(2, bool))

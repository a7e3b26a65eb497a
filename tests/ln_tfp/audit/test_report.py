"""Tests of what a report decides, and of how far it can be trusted."""

import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from ln_tfp.audit import trust
from ln_tfp.audit.judging import flagging
from ln_tfp.audit.review import neighbours
from ln_tfp.audit.review import spreadsheet
from tests.ln_tfp.audit import reports


def _expected_f1(wrong, num):
  """The plug-in F1 of flagging the `num` likeliest, by its definition."""
  ranked = sorted(wrong, reverse=True)
  return 2 * sum(ranked[:num]) / (num + sum(ranked))


def test_by_default_no_other_number_of_issues_has_a_higher_expected_f1():
  rng = np.random.default_rng(0)
  for _ in range(20):
    wrong = rng.beta(.3, .8, 60)
    report = reports.make(wrong).flag()
    chosen = _expected_f1(wrong, len(report.ranked_issues))
    assert chosen == pytest.approx(
        max(_expected_f1(wrong, k) for k in range(1, 61)))
    assert wrong[report.is_issue].min() >= wrong[~report.is_issue].max()
    assert np.all(report.quality[report.is_issue] < report.threshold)


def test_labels_that_are_surely_right_are_not_flagged():
  assert not reports.make([0., 0., 0.]).flag().is_issue.any()


def test_among_clean_labels_what_is_rather_right_is_flagged_only_on_request():
  report = reports.make([.9, .45] + [.4] * 20 + [0.] * 978)
  assert report.flag().is_issue.nonzero()[0].tolist() == [0, 1]
  assert report.flag(budget=10).is_issue.sum() == 10
  assert report.flag(precision=.42).is_issue.sum() == 22
  noisy = reports.make([.9, .45] + [.4] * 20)
  assert noisy.flag().is_issue.sum() == 22  # the best F1 to be expected


def test_a_precision_flags_as_many_as_keep_it():
  wrong = np.array([.99, .9, .7, .6, .1, .05])
  for precision in (.5, .7, .8, .9, .99, 1.):
    flagged = reports.make(wrong).flag(precision=precision).is_issue
    best = max((k for k in range(1, 7) if wrong[:k].mean() >= precision),
               default=0)
    assert flagged.sum() == best, precision


def test_a_budget_flags_so_many_and_no_label_that_is_certain():
  wrong = np.linspace(.9, .1, 9)
  certain = np.arange(9) == 0
  report = reports.make(wrong, certain=certain)
  assert report.flag(budget=3).is_issue.nonzero()[0].tolist() == [1, 2, 3]
  assert report.flag(budget=100).is_issue.sum() == 8
  assert report.flag(budget=0).is_issue.sum() == 0


@pytest.mark.parametrize('arguments, message', [
    (dict(budget=1, precision=.5), 'exclude each other'),
    (dict(budget=-1), '`budget` must be a whole number'),
    (dict(precision=0.), '`precision` must be in'),
    (dict(precision=1.1), '`precision` must be in'),
])
def test_decisions_that_make_no_sense_are_refused(arguments, message):
  with pytest.raises(ValueError, match=message):
    flagging.num_flagged(np.array([.5]), **arguments)


def test_other_decisions_have_other_suggestions_and_shares_of_classes():
  report = reports.make([.9, .8, .2, .1], [0, 1, 0, 1])
  assert report.suggested.tolist() == [0, 1, 0, 1]
  flagged = report.flag(budget=1)
  assert flagged.suggested.tolist() == [1, 1, 0, 1]
  np.testing.assert_array_equal(flagged.trust.class_flagged, [.5, 0.])
  assert flagged.noise_rate == report.noise_rate


def test_the_control_sample_is_random_and_the_same_every_time():
  wrong = np.linspace(1., .8, 400)
  first, second = (reports.make(wrong).flag(budget=300) for _ in range(2))
  sample = first.control_sample
  np.testing.assert_array_equal(sample, second.control_sample)
  assert len(set(sample.tolist())) == 50
  assert first.is_issue[sample].all()
  assert 100 < sample.mean() < 200  # of 0 .. 299
  few = reports.make(wrong, shown=10).flag(budget=300)
  assert few.shown_positions[:10].tolist() == list(range(10))
  assert set(few.shown_positions) == {*range(10), *sample.tolist()}


def test_reports_of_the_same_labels_have_the_same_fingerprint():
  report = reports.make([.9, .1])
  assert report.fingerprint == reports.make([.5, .5]).fingerprint
  assert report.fingerprint != reports.make([.9, .1], [0, 1]).fingerprint
  assert report.fingerprint != reports.make(
      [.9, .1], ids=np.array(['a', 'b'])).fingerprint


def test_fields_that_only_a_trained_head_has_are_left_out_of_the_table():
  columns = reports.make([.9, .1]).to_pandas().columns
  assert columns.tolist() == [
      'quality', 'is_issue', 'given', 'suggested', 'wrong_probability']


def test_neighbours_are_the_nearest_of_each_class_that_are_not_suspected():
  rng = np.random.default_rng(1)
  features = rng.normal(size=(300, 4)).astype(np.float32)
  given = rng.integers(0, 3, 300)
  suggested = (given + 1) % 3
  is_issue = rng.random(300) < .2
  positions = np.array([5, 7, 200])
  found = neighbours.find(features, given, suggested, is_issue, positions)
  for i, label in itertools.product(positions, ('given', 'suggested')):
    wanted = {'given': given, 'suggested': suggested}[label][i]
    members = [j for j in range(300)
               if given[j] == wanted and not is_issue[j] and j != i]
    expected = sorted(
        members, key=lambda j: np.sum((features[i] - features[j])**2))[:2]
    assert list(getattr(found[i], label)) == expected


def test_a_class_of_suspected_labels_has_no_neighbours():
  found = neighbours.find(
      np.eye(3), np.array([0, 1, 1]), np.array([1, 0, 0]),
      np.array([False, True, True]), np.array([0]))
  assert found == {0: neighbours.Neighbours((), ())}


def test_a_model_that_says_the_commonest_class_has_not_learnt():
  given = np.repeat([0, 1], [90, 30])
  lazy = trust.assess(given, np.zeros(120, int), np.zeros(120, bool),
                      ('cat', 'dog'), kind='leave-one-out')
  assert lazy.accuracy == lazy.chance == .75
  assert lazy.never_predicted == ('dog',)
  text = ' '.join(lazy.warnings)
  assert 'has not learnt this task' in text
  assert 'Never predicted: dog.' in text
  assert str(lazy).startswith(
      'Not to be acted on: the model has not learnt this task. It predicts '
      '75.0 % of the labels')


def test_a_good_model_raises_no_warning():
  given = np.repeat([0, 1], [90, 30])
  good = trust.assess(given, given, np.zeros(120, bool), ('cat', 'dog'),
                      kind='leave-one-out')
  assert good.warnings == []
  np.testing.assert_array_equal(good.class_accuracy, [1., 1.])


def test_a_model_that_has_not_learnt_flags_what_is_rather_wrong_than_right():
  wrong, given = np.full(1_000, .3), np.arange(1_000) // 500
  wrong[::100] = .6
  report = reports.make(wrong, given)
  assert report.flag().is_issue.all()  # the best F1 to be expected
  little, nothing = (
      dataclasses.replace(report, trust=trust.assess(
          given, predicted, report.is_issue, report.class_names,
          kind='leave-one-out')) for predicted in (
              # Zero for 60 % of the zeros and 45 % of the ones; always zero.
              np.where(np.arange(1_000) % 500 < 300 - 75 * given, 0, 1),
              np.zeros(1_000, int)))
  assert little.flag().ranked_issues.tolist() == list(range(0, 1_000, 100))
  assert not nothing.flag().is_issue.any()
  assert little.flag(precision=.3).is_issue.all()
  text = str(little.flag())
  assert text.startswith('Not to be acted on')
  assert '10 are flagged (1.0 %), by a model that' in text
  assert 'look wrong' not in text and 'Noise rate' not in text


def test_what_is_known_of_each_class_is_printed_beside_chance():
  given = np.repeat([0, 1], [90, 30])
  predicted = np.where(np.arange(120) % 10 == 0, 1 - given, given)
  found = trust.assess(given, predicted, given == 1, ('cat', 'dog', 'emu'),
                       kind='leave-one-out')
  np.testing.assert_allclose(found.class_chance, [.7, .3, 0.])
  lines = str(found).splitlines()[-3:]
  assert lines[0].split() == ['cat', '90', '90.0', '%', '70.0', '%', '0.0', '%']
  assert lines[1].split() == [
      'dog', '30', '90.0', '%', '30.0', '%', '100.0', '%']
  assert lines[2].split() == ['emu', '0', '-', '0.0', '%', '-']


def test_of_many_classes_those_are_printed_of_which_most_is_flagged():
  given = np.repeat(np.arange(40), 20)
  found = trust.assess(
      given, given, (given % 7 == 0) & (np.arange(800) % 20 < given),
      [f'class {k}' for k in range(40)], kind='leave-one-out')
  lines = str(found).splitlines()[-6:]
  assert lines[0].startswith('  Most flagged')
  assert [line[2:10] for line in lines[1:]] == [
      'class 21', 'class 28', 'class 35', 'class 14', 'class 7 ']


def _of_six():
  report = reports.make([.9, .8, .7, .1, .1, .1], [0, 0, 0, 1, 1, 1])
  return report.flag(budget=3), np.arange(12., dtype=np.float32).reshape(6, 2)


def test_examples_and_rows_may_be_data_frames_and_features_sparse():
  report, x = _of_six()
  frame = pd.DataFrame(x, columns=['a', 'b'], index=list('uvwxyz'))
  expected = report.with_examples(x)
  assert expected.neighbours[0].suggested == (3, 4)
  for given in (dict(inputs=frame), dict(inputs=sparse.coo_array(x)),
                dict(inputs=x, features=sparse.csr_matrix(x)),
                dict(inputs=x, features=frame),
                dict(inputs=x.tolist(), features=x.tolist())):
    found = report.with_examples(**given)
    assert found.neighbours == expected.neighbours
    for i, example in expected.examples.items():
      np.testing.assert_array_equal(found.examples[i], example)
  found = report.with_examples(None, rows=frame)
  assert found.rows[1] == {'a': 2., 'b': 3.}
  assert found.neighbours == {}


@pytest.mark.parametrize('name', ['inputs', 'features', 'rows'])
def test_what_does_not_fit_the_labels_of_a_report_is_refused(name):
  report, x = _of_six()
  given = dict(inputs=x, features=x, rows=[{'a': 1}] * 6)
  with pytest.raises(ValueError, match=f'`{name}` must have 6 entries.*`ids`'):
    report.with_examples(**{**given, name: np.zeros((7, 2))})
  with pytest.raises(ValueError, match=f'`{name}` must be an array or a seq'):
    report.with_examples(**{**given, name: iter(x)})


def test_small_classes_and_classes_flagged_as_a_whole_are_named():
  given = np.repeat([0, 1], [90, 3])
  found = trust.assess(given, given, given == 1, ('cat', 'dog', 'emu'),
                       kind='in-sample')
  assert any('Fewer than 10 examples: dog.' in w for w in found.warnings)
  assert any('half of the labels are flagged: dog.' in w
             for w in found.warnings)
  assert np.isnan(found.class_accuracy[2])


def test_equal_examples_with_different_labels_are_counted():
  x = np.array([[1, 2], [1, 2], [3, 4], [3, 4], [5, 6]], np.float32)
  prints = trust.fingerprints(x)
  assert trust.num_conflicts(prints, np.array([0, 1, 1, 1, 0])) == 2
  assert trust.num_conflicts(prints, np.zeros(5, int)) == 0


@pytest.mark.parametrize('cell', [
    '=1+1', '+a', '-a', '@a', '\ta', "'=a", "''=a", "'a", 'a', '', '-1', '-1.5',
    '1e-3', "'-1", '=', "'", '-', 'ä=b'])
def test_every_cell_survives_and_none_can_be_executed(cell, tmp_path):
  spreadsheet.write(tmp_path / 'a.csv', ['x', cell], [[cell, 'z']])
  assert spreadsheet.read(tmp_path / 'a.csv')[0]['x'] == cell
  written = spreadsheet.safe(cell)
  assert written[:1] not in tuple('=+-@\t') or float(written) is not None

"""Tests of `ln_tfp.audit_features`."""

import keras
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import datasets
import tensorflow as tf

import ln_tfp
from ln_tfp.audit import closed_form

K = 3
LINEAR = dict(kernel='linear')


def _planted(num=300, seed=0, num_wrong=30):
  """Three clouds of points; the first labels are wrong."""
  rng = np.random.default_rng(seed)
  true = rng.integers(0, K, num)
  x = (3. * np.eye(K, 6)[true] + rng.normal(size=(num, 6))).astype(np.float32)
  given = true.copy()
  given[:num_wrong] = (true[:num_wrong] + 1) % K
  return x, given, true


def _audit(x, y=None, **arguments):
  return ln_tfp.audit_features(
      x, y, process=ln_tfp.LogisticNormalProcess(**LINEAR), **arguments)


@pytest.fixture(scope='module')
def planted():
  x, given, true = _planted()
  return x, given, true, _audit(x, given)


def _assert_same(report, other, atol=1e-4):
  np.testing.assert_allclose(report.quality, other.quality, atol=atol)
  np.testing.assert_array_equal(report.given, other.given)
  np.testing.assert_array_equal(report.is_issue, other.is_issue)
  np.testing.assert_allclose(
      report.transition_matrix, other.transition_matrix, atol=atol)


def test_wrong_labels_are_found_and_the_true_ones_suggested(planted):
  _, given, true, report = planted
  wrong = given != true
  assert np.mean(report.is_issue[wrong]) > .85
  assert np.mean(report.is_issue[~wrong]) < .05
  found = report.is_issue & wrong
  assert np.mean(report.suggested[found] == true[found]) > .9
  assert report.trust.kind == 'leave-one-out'
  assert not report.trust.warnings
  assert abs(report.noise_rate - .1) < .03


def test_the_report_is_that_of_the_leave_one_out_predictions(planted):
  x, given, _, report = planted
  loo = ln_tfp.LogisticNormalProcess(**LINEAR).fit(x, given).leave_one_out_
  rows = np.arange(len(given))
  posterior = loo.posterior[rows, given]
  np.testing.assert_allclose(report.quality.sum(), posterior.sum(), rtol=1e-4)
  assert np.corrcoef(report.quality, posterior)[0, 1] > .98
  others = loo.posterior.copy()
  others[rows, given] = 0.
  np.testing.assert_array_equal(report.alternative, others.argmax(axis=1))
  np.testing.assert_allclose(report.pred_probs, loo.probabilities)
  np.testing.assert_array_equal(
      report.nearest_classes, np.argsort(-loo.probabilities, axis=1))
  counts = np.zeros((K, K))
  for i, g in enumerate(given):
    counts[:, g] += loo.posterior[i]
  np.testing.assert_allclose(
      report.transition_matrix, counts / counts.sum(axis=1, keepdims=True),
      rtol=1e-5)


class _Batches(keras.utils.PyDataset):

  def __init__(self, x, y):
    super().__init__()
    self._x, self._y = x, y

  def __len__(self):
    return -(-len(self._x) // 64)

  def __getitem__(self, index):
    part = slice(64 * index, 64 * index + 64)
    return self._x[part], self._y[part]


def _parts(x, y):
  return lambda: ((x[i:i + 50], y[i:i + 50]) for i in range(0, len(x), 50))


@pytest.mark.parametrize('form', [
    'function', 'function without labels', 'tf.data', 'PyDataset', 'sparse',
    'sparse array', 'float16', 'list'])
def test_the_form_of_the_data_does_not_matter(planted, form):
  x, y, _, report = planted
  given = {
      'function': (_parts(x, y),),
      'function without labels': (
          lambda: iter(np.array_split(x, 7)), y),
      'tf.data': (tf.data.Dataset.from_tensor_slices((x, y)).batch(32),),
      'PyDataset': (_Batches(x, y),),
      'sparse': (sparse.csr_matrix(x), y),
      'sparse array': (sparse.coo_array(x), y),
      'float16': (x.astype(np.float16), y),
      'list': (x.tolist(), y.tolist())}[form]
  _assert_same(_audit(*given), report, 5e-3 if form == 'float16' else 1e-4)


@pytest.mark.slow
def test_a_wide_sparse_matrix_is_audited_by_its_components():
  x, y, true = _planted(400)
  rng = np.random.default_rng(1)
  wide = sparse.hstack([
      sparse.csr_array(10. * x), sparse.random_array(
          (400, 5_000), density=1e-3, rng=rng)]).tocsr()
  report = ln_tfp.audit_features(wide, y)
  assert np.mean(report.is_issue[y != true]) > .7


def test_few_examples_of_many_features_are_not_learnt_by_heart():
  rng = np.random.default_rng(0)
  true = np.arange(40) % 2
  images = rng.normal(0., 60., (40, 144, 3)) + np.where(
      true[:, np.newaxis, np.newaxis], [200., 60., 60.], [60., 60., 200.])
  given = np.where(np.arange(40) < 4, 1 - true, true)
  report = ln_tfp.audit_features(
      images.reshape(40, -1).astype(np.float32), given)
  np.testing.assert_array_equal(report.is_issue, given != true)


def test_the_index_of_a_data_frame_names_the_examples():
  x, y, _ = _planted(60, num_wrong=5)
  index = [f'row {i}' for i in range(60)]
  frame = pd.DataFrame(x, index=index)
  names = pd.Series(np.array(['cat', 'dog', 'emu'])[y], index=index)
  report = _audit(frame, names)
  assert report.class_names == ('cat', 'dog', 'emu')
  assert report.ids.tolist() == index
  assert report.to_pandas().loc['row 7', 'given'] == names['row 7']


@pytest.mark.parametrize('missing', [None, float('nan'), pd.NA])
def test_examples_without_a_label_are_not_in_the_report(missing):
  x, y, _ = _planted(200)
  names = np.array(['a', 'b', 'c'], object)[y]
  names[[3, 77]] = missing
  report = _audit(x, names)
  kept = np.delete(np.arange(200), [3, 77])
  np.testing.assert_array_equal(report.ids, kept)
  _assert_same(report, _audit(x[kept], y[kept]), 2e-3)


def test_an_ignored_class_counts_as_no_label(planted):
  x, y, _, _ = planted
  other = np.where(np.arange(len(y)) % 10 == 0, -1, y)
  with pytest.raises(ValueError, match='-1 at position 0.*`ignore_class`'):
    _audit(x, other)
  report = _audit(x, other, ignore_class=-1)
  np.testing.assert_array_equal(report.ids, np.flatnonzero(other >= 0))
  assert report.class_names == ('0', '1', '2')


def test_one_hot_labels_are_labels_and_soft_ones_nearly(planted):
  x, y, _, report = planted
  _assert_same(_audit(x, np.eye(K)[y]), report)
  soft = _audit(x, .9 * np.eye(K)[y] + .1 / K)
  np.testing.assert_array_equal(soft.given, y)
  assert np.corrcoef(soft.quality, report.quality)[0, 1] > .95


@pytest.mark.slow
def test_certain_labels_are_never_flagged_and_help_the_others(planted):
  x, y, true, report = planted
  worst = report.ranked_issues[:10]
  certain = np.isin(np.arange(len(y)), worst)
  again = _audit(x, y, certain=certain)
  assert not again.is_issue[worst].any()
  assert np.all(again.quality[worst] == 1.)
  decided = np.where(certain, true, y)
  fixed = _audit(x, decided, certain=certain)
  assert fixed.is_issue.sum() < report.is_issue.sum()


def test_classes_without_examples_keep_their_names():
  x, y, _ = _planted()
  report = _audit(x, 2 * y, class_names='abcde')
  assert report.class_names == tuple('abcde')
  np.testing.assert_array_equal(report.given, 2 * y)
  np.testing.assert_array_equal(report.pred_probs[:, [1, 3]], 0.)
  np.testing.assert_array_equal(
      report.transition_matrix[[1, 3]], np.eye(5)[[1, 3]])
  assert set(report.nearest_classes.ravel()) == {0, 2, 4}


def test_equal_rows_of_different_labels_are_counted(planted):
  x, y, _, _ = planted
  x, y = x.copy(), y.copy()
  x[1], y[0], y[1] = x[0], 0, 1
  assert _audit(x, y).trust.conflicts == 2


def test_features_that_say_nothing_are_not_trusted():
  rng = np.random.default_rng(0)
  report = _audit(rng.normal(size=(300, 5)), rng.integers(0, 4, 300))
  assert 'has not learnt' in report.trust.warnings[0]


def test_where_nothing_can_be_known_next_to_nothing_is_flagged():
  rng = np.random.default_rng(0)
  x, y = rng.normal(size=(1_500, 20)), rng.integers(0, 2, 1_500)
  for labels in (y, (np.arange(1_500) % 50 == 0).astype(int)):
    report = ln_tfp.audit_features(x, labels)
    assert not report.trust.has_learnt
    assert report.is_issue.mean() < .01
    assert str(report).startswith('Not to be acted on')
    # Who insists gets them.
    assert report.flag(budget=100).is_issue.sum() == 100


def test_a_class_of_one_in_fifty_under_noise_has_been_learnt():
  rng = np.random.default_rng(0)
  true = (np.arange(2_550) % 51 == 0).astype(int)
  x = rng.normal(size=(2_550, 10))
  x[:, 0] += 8. * true
  given = ln_tfp.noise.corrupt(true, 'sym:0.2', seed=1, num_classes=2)
  report = _audit(x, given)
  assert np.mean(report.is_issue == (given != true)) > .99
  assert report.trust.has_learnt
  assert report.trust.accuracy < report.trust.chance + .1
  warnings = ' '.join(report.trust.warnings)
  assert 'half of the labels are flagged: 1. Either the model' in warnings


@pytest.mark.slow
@pytest.mark.parametrize('rare', [8])
def test_a_class_of_one_in_fifty_is_not_flagged_away(rare):
  x, true = datasets.load_digits(return_X_y=True)
  kept = np.concatenate([
      np.flatnonzero(true != rare), np.flatnonzero(true == rare)[:33]])
  x, true = x[kept], true[kept]
  given = ln_tfp.noise.corrupt(true, 'sym:0.1', num_classes=10)
  report = ln_tfp.audit_features(x, given)
  wrong = given != true
  right_and_rare = (true == rare) & ~wrong
  assert np.mean(report.is_issue[right_and_rare]) < .1
  wrongly_rare = (given == rare) & wrong
  assert np.mean(report.is_issue[wrongly_rare]) > .9
  assert np.mean(report.is_issue == wrong) > .99


@pytest.mark.slow
def test_clean_digits_are_left_alone():
  x, y = datasets.load_digits(return_X_y=True)
  report = ln_tfp.audit_features(x, y)
  assert report.is_issue.mean() <= .003
  assert report.trust.accuracy > .99


def test_many_classes_are_not_relabelled_unless_somebody_says_so():
  rounds = lambda num_classes, **settings: closed_form.default_process(
      num_classes, **settings).relabel_rounds
  assert rounds(10) == 3
  assert rounds(100) == 0
  assert rounds(100, relabel_rounds=2) == 2


def test_a_dataset_that_shuffles_is_refused(planted):
  x, y, _, _ = planted
  shuffled = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(300).batch(50)
  with pytest.raises(ValueError, match='`features` came in another order'):
    _audit(shuffled)


@pytest.mark.parametrize('arguments, message', [
    ((np.zeros((3, 2)),), '`labels` must be given'),
    ((np.zeros((3, 2)), [0, 1]), '3 rows and 2 labels'),
    ((iter([np.zeros((3, 2))]), [0, 1, 0]), 'readable more than once'),
    ((lambda: iter([np.zeros((3, 2))]), [0, 1]), '2 for 3 rows'),
    ((lambda: iter([np.zeros((3, 2))]),), '`labels` must be given'),
    ((np.zeros((3, 2)), [0, .5, 1]), '0.5 at position 1'),
    ((np.zeros((3, 2)), [[.5, .2]] * 3), 'sum to one'),
    ((np.zeros((3, 2)), [[0, 1, 2]] * 3), '`ln_tfp.consensus`'),
])
def test_wrong_arguments_are_named(arguments, message):
  with pytest.raises(ValueError, match=message):
    ln_tfp.audit_features(*arguments)


@pytest.mark.parametrize('keyword, value, message', [
    ('ids', ['a'], '`ids` must have 300 entries'),
    ('certain', np.ones(300), '`certain` must be a bool array'),
    ('class_names', ['a', 'a', 'b'], 'different names'),
    ('class_names', ['a', 'b'], 'classes of 0, 1. Received: 2'),
])
def test_wrong_keywords_are_named(planted, keyword, value, message):
  x, y, _, _ = planted
  with pytest.raises(ValueError, match=message):
    _audit(x, y, **{keyword: value})

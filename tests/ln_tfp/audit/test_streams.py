"""Tests of examples and features that come in batches, and of their order."""

import keras
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
import tensorflow as tf

import ln_tfp

K = 3


def _data(num=96):
  rng = np.random.default_rng(0)
  y = rng.integers(0, K, num)
  x = (4. * np.eye(K, 5)[y] + rng.normal(size=(num, 5))).astype(np.float32)
  return x, y


def _audit_labels(x, y=None, num_classes=K):
  keras.utils.set_random_seed(0)
  model = keras.Sequential([
      keras.Input((5,)), ln_tfp.LogisticNormalHead(num_classes)])
  return ln_tfp.audit_labels(model, x, y, evidence='outputs')


def _audit_features(x, y=None):
  return ln_tfp.audit_features(
      x, y, process=ln_tfp.LogisticNormalProcess(kernel='linear'))


AUDITS = pytest.mark.parametrize('audit', [_audit_labels, _audit_features])


class _Shuffled(keras.utils.PyDataset):
  """Shuffles at the end of an epoch, as Keras's guides show it."""

  def __init__(self, x, y):
    super().__init__()
    self._x, self._y, self._order = x, y, np.arange(len(x))
    self._rng = np.random.default_rng(0)

  def __len__(self):
    return len(self._x) // 12

  def __getitem__(self, index):
    rows = self._order[12 * index:12 * index + 12]
    return self._x[rows], self._y[rows]

  def on_epoch_end(self):
    self._rng.shuffle(self._order)


class _Loader:
  """What can only be iterated over, such as a DataLoader."""

  def __init__(self, x, y):
    self._x, self._y = x, y

  def __iter__(self):
    for i in range(0, len(self._x), 32):
      yield [self._x[i:i + 32], self._y[i:i + 32]]


@AUDITS
def test_a_dataset_that_shuffles_when_an_epoch_ends_is_refused(audit):
  with pytest.raises(ValueError, match='in another order'):
    audit(_Shuffled(*_data()))


@AUDITS
def test_a_dataset_that_shuffles_its_batches_is_refused(audit):
  batches = tf.data.Dataset.from_tensor_slices(_data()).batch(8)
  for seed in range(8):  # the first batch stays in its place in one of four
    with pytest.raises(ValueError, match='in another order'):
      audit(batches.shuffle(4, seed=seed))


@AUDITS
def test_what_can_only_be_iterated_over_is_read(audit):
  x, y = _data()
  np.testing.assert_allclose(
      audit(_Loader(x, y)).quality, audit(x, y).quality, atol=1e-5)


@AUDITS
def test_examples_that_are_not_in_batches_are_refused(audit):
  with pytest.raises(ValueError, match=r'must yield batches.* of shape \(5,\)'
                     if audit is _audit_features else 'must yield batches'):
    audit(tf.data.Dataset.from_tensor_slices(_data()))


@AUDITS
def test_sparse_batches_are_refused(audit):
  x, y = _data()
  with pytest.raises(ValueError, match='must yield batches.*dense.*csr'):
    audit(lambda: iter([(sparse.csr_array(x), y)]))


@AUDITS
def test_the_index_of_the_labels_names_the_examples(audit):
  x, y = _data()
  index = [f'row {i}' for i in range(len(y))]
  assert audit(x, pd.Series(y, index)).ids.tolist() == index


def test_labels_that_are_true_or_false_are_called_so():
  x, y = _data()
  for report in (_audit_features(x, y > 0), _audit_labels(x, y > 0, 2)):
    assert report.class_names == ('False', 'True')
    np.testing.assert_array_equal(report.given, y > 0)

"""Tests of `ln_tfp.audit_labels` and its report."""

import builtins
import csv

import keras
import numpy as np
import pytest
import tensorflow as tf

import ln_tfp

K = 4
T = .01


def _model(covariance='full', dummy_class=True, temperature=.7, rank=1):
  """A head on five features, with random weights."""
  head = ln_tfp.LogisticNormalHead(
      K, covariance=covariance, dummy_class=dummy_class, rank=rank,
      temperature=temperature, min_scale=.3,
      kernel_initializer=keras.initializers.RandomNormal(seed=1))
  model = keras.Sequential([keras.Input((5,)), head])
  return model, head


def _examples(num=40, seed=0):
  rng = np.random.default_rng(seed)
  return (rng.normal(size=(num, 5)).astype(np.float32),
          rng.integers(0, K, num))


@pytest.fixture(scope='module')
def report():
  """A report on examples that are means: 30 right labels and 10 wrong ones."""
  return _planted_report()


def _planted_report(**arguments):
  true = np.arange(40) % K
  given = np.where(np.arange(40) < 10, (true + 1) % K, true)
  head = ln_tfp.LogisticNormalHead(K, temperature=1.)
  model = keras.Sequential([keras.Input((K,)), head])
  head.loc.set_weights([np.eye(K, dtype=np.float32), np.zeros(K)])
  rng = np.random.default_rng(0)
  means = 5. * np.eye(K)[true] + .1 * rng.normal(size=(40, K))
  return ln_tfp.audit_labels(
      model, means.astype(np.float32), given, **arguments)


def _oracle(outputs, head, label):
  """Residual, label term, log density and scale in float64, densely."""
  tau, dims = head.temperature, head.dims
  loc, diag = outputs[0] * tau, outputs[1] * tau
  factor = outputs[2:] * tau**.5
  scale = np.diag(diag) + factor.T @ factor
  q = np.full(dims + 1, T / (dims + 1))
  q[label] += 1 - T
  residual = tau * np.log(q[:-1] / q[-1]) - loc
  covariance = scale @ scale.T
  term = residual @ np.linalg.solve(covariance, residual)
  log_density = -.5 * term - .5 * np.linalg.slogdet(covariance)[1]
  return (np.linalg.norm(residual), term, log_density,
          np.sqrt(np.trace(covariance) / dims))


@pytest.mark.parametrize('dummy_class', [True, False])
@pytest.mark.parametrize('covariance, rank', [
    ('identity', 1), ('isotropic', 1), ('diagonal', 1), ('full', 1),
    ('full', 2)])
def test_each_figure_is_that_of_the_dense_normal(covariance, rank, dummy_class):
  model, head = _model(covariance, dummy_class, rank=rank)
  x, y = _examples()
  report = ln_tfp.audit_labels(model, x, y)
  outputs = model(x).numpy().astype(np.float64)
  for i in range(len(y)):
    norm, term, density, scale = _oracle(outputs[i], head, y[i])
    others = [_oracle(outputs[i], head, k)[2] for k in range(K) if k != y[i]]
    np.testing.assert_allclose(report.residual_norm[i], norm, rtol=1e-4)
    np.testing.assert_allclose(report.label_term[i], term, rtol=1e-3)
    np.testing.assert_allclose(report.noise_scale[i], scale, rtol=1e-4)
    assert np.min(np.abs(
        report.log_likelihood_ratio[i] - (density - np.array(others)))) < 1e-2
    if report.is_issue[i]:
      suggested = _oracle(outputs[i], head, report.suggested[i])[2]
      np.testing.assert_allclose(
          report.log_likelihood_ratio[i], density - suggested, rtol=1e-3,
          atol=1e-2)
  np.testing.assert_allclose(
      report.pred_probs, ln_tfp.probabilities(outputs, K), rtol=1e-5)


def test_wrong_labels_are_found_and_corrected(report):
  assert report.is_issue.tolist() == [True] * 10 + [False] * 30
  np.testing.assert_array_equal(report.suggested, np.arange(40) % K)
  assert report.noise_rate == .25
  assert report.quality.min() >= 0. and report.quality.max() <= 1.
  assert set(report.ranked_issues) == set(range(10))
  assert np.all(np.diff(report.quality[report.ranked_issues]) >= 0)
  assert report.confused_pairs[0] == ('0', '1', 3, .3)
  np.testing.assert_allclose(report.transition_matrix[0], [.7, .3, 0, 0])


def test_the_head_is_found_in_any_kind_of_model():
  model, head = _model()
  x, y = _examples()
  expected = ln_tfp.audit_labels(model, x, y).residual_norm

  class Subclassed(keras.Model):

    def __init__(self):
      super().__init__()
      self.inner = model

    def call(self, inputs):
      return self.inner(inputs)

  inputs = keras.Input((5,))
  functional = keras.Model(inputs, head(inputs))
  nested = keras.Sequential([keras.Input((5,)), functional])
  for other in (functional, nested, Subclassed()):
    np.testing.assert_allclose(
        ln_tfp.audit_labels(other, x, y).residual_norm, expected)


def test_datasets_and_arrays_and_all_kinds_of_labels_give_the_same():
  model, _ = _model()
  x, y = _examples()
  expected = ln_tfp.audit_labels(model, x, y)
  one_hot = np.eye(K)[y]
  for labels in (y[:, np.newaxis], one_hot, y.astype(np.float32), y.tolist()):
    found = ln_tfp.audit_labels(model, x, labels, batch_size=7)
    np.testing.assert_allclose(found.quality, expected.quality, rtol=1e-4)
    np.testing.assert_array_equal(found.given, y)
  for labels in (y, one_hot):
    dataset = tf.data.Dataset.from_tensor_slices((x, labels)).batch(16)
    found = ln_tfp.audit_labels(model, dataset)
    np.testing.assert_allclose(found.quality, expected.quality, rtol=1e-4)


def test_a_shuffled_dataset_is_read_only_once():
  model, _ = _model()
  x, y = _examples()
  dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(40).batch(16)
  found = ln_tfp.audit_labels(model, dataset)
  whole = ln_tfp.audit_labels(model, x, y)
  np.testing.assert_allclose(
      np.sort(found.residual_norm), np.sort(whole.residual_norm), rtol=1e-4)
  np.testing.assert_array_equal(np.bincount(found.given), np.bincount(y))
  for i, example in found.examples.items():
    assert found.given[i] in y[np.all(x == example, axis=1)]


@pytest.mark.parametrize('change, message', [
    (dict(y=np.zeros(39)), '`x` and `y` must have the same length'),
    (dict(y=np.full(40, K)), 'whole labels from 0 to 3. Received: 4 at'),
    (dict(y=np.full(40, -1)), 'whole labels from 0 to 3'),
    (dict(y=np.full(40, .5)), 'whole labels from 0 to 3'),
    (dict(y=np.full((40, K), .25)), 'soft labels cannot be audited'),
    (dict(y=np.zeros((40, 3))), r'shape \[N\] or \[N, 1\]'),
    (dict(y=np.full(40, 'cat')), 'must hold numbers'),
    (dict(y=None), '`y` must be given'),
    (dict(x=np.zeros((0, 5)), y=np.zeros(0)), 'at least one example'),
    (dict(x=np.full((40, 5), np.nan, np.float32)), 'finite outputs'),
    (dict(ids=[1, 2]), '`ids` must have 40 entries'),
    (dict(class_names=['a', 'b']), '`class_names` must have 4'),
    (dict(class_names=['a', 'b', 'b', 'c']), '`class_names` must have 4'),
    (dict(certain=np.zeros(40)), '`certain` must be a bool array'),
    (dict(batch_size=0), '`batch_size` must be positive'),
    (dict(label_smoothing=0.), '`label_smoothing` must be in'),
    (dict(model=keras.Sequential([keras.Input((5,)), keras.layers.Dense(4)])),
     'one LogisticNormalHead'),
    (dict(model='model.keras'), 'one LogisticNormalHead'),
    (dict(model=keras.Sequential([
        keras.Input((5,)), ln_tfp.LogisticNormalHead(K),
        keras.layers.Flatten()])), 'must return the output of its'),
])
def test_wrong_input_is_refused_in_words(change, message):
  model, _ = _model()
  x, y = _examples()
  arguments = {'model': model, 'x': x, 'y': y, **change}
  with pytest.raises(ValueError, match=message):
    ln_tfp.audit_labels(**arguments)


def test_datasets_without_labels_or_with_more_are_refused():
  model, _ = _model()
  x, y = _examples()
  with pytest.raises(ValueError, match='dataset of pairs'):
    ln_tfp.audit_labels(model, tf.data.Dataset.from_tensor_slices(x).batch(2))
  pairs = tf.data.Dataset.from_tensor_slices((x, y)).batch(2)
  with pytest.raises(ValueError, match='`y` must be None'):
    ln_tfp.audit_labels(model, pairs, y)
  with pytest.raises(ValueError, match='dataset that ends'):
    ln_tfp.audit_labels(model, pairs.repeat())


def test_the_report_reads_well(report):
  text = str(report)
  assert '40 labels of 4 classes: 10 look wrong (25.0 %).' in text
  assert '0 -> 1: 3 times, 30.0 % of 0' in text
  assert '10 issues' in repr(report)


def test_the_csv_file_has_a_line_for_each_label(report, tmp_path):
  report.to_csv(tmp_path / 'labels.csv')
  with open(tmp_path / 'labels.csv', newline='') as file:
    rows = list(csv.DictReader(file))
  assert len(rows) == 40
  assert rows[0]['given'] == '1' and rows[0]['suggested'] == '0'
  assert rows[0]['is_issue'] == 'True'
  np.testing.assert_allclose(
      [float(row['quality']) for row in rows], report.quality)


def test_the_data_frame_is_indexed_by_id(report):
  pytest.importorskip('pandas', reason='pandas is not installed')
  frame = report.to_pandas()
  assert frame.loc[0, 'suggested'] == '0'
  assert frame['is_issue'].sum() == 10


def test_without_pandas_the_error_says_what_to_install(report, monkeypatch):
  real_import = builtins.__import__

  def refuse(name, *arguments):
    if name == 'pandas':
      raise ImportError(name)
    return real_import(name, *arguments)

  monkeypatch.setattr(builtins, '__import__', refuse)
  with pytest.raises(ImportError, match='pip install pandas'):
    report.to_pandas()


def test_the_page_of_a_data_set_without_issues_says_so(tmp_path):
  head = ln_tfp.LogisticNormalHead(2, temperature=1.)
  model = keras.Sequential([keras.Input((2,)), head])
  head.loc.set_weights([np.eye(2, dtype=np.float32), np.zeros(2)])
  x = 5. * np.eye(2, dtype=np.float32)
  report = ln_tfp.audit_labels(model, x, [0, 1])
  assert report.confused_pairs == []
  assert '2 labels of 2 classes: 0 look wrong (0.0 %).' in str(report)
  report.save(tmp_path / 'audit.html')
  assert 'There is nothing to show.' in (tmp_path / 'audit.html').read_text()

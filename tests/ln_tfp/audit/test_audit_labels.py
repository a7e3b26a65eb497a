"""Tests of `ln_tfp.audit_labels` and its report."""

import builtins
import csv
import dataclasses

import keras
import numpy as np
import pandas as pd
import pytest
from scipy import stats
import tensorflow as tf

import ln_tfp
from ln_tfp.audit import auditing

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
      model, means.astype(np.float32), given, evidence='outputs', **arguments)


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
  report = ln_tfp.audit_labels(model, x, y, evidence='outputs')
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_dataset_that_shuffles_is_refused():
  model, _ = _model()
  x, y = _examples()
  dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(40).batch(16)
  with pytest.raises(ValueError, match='`x` came in another order'):
    ln_tfp.audit_labels(model, dataset)
  fixed = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(
      40, seed=1, reshuffle_each_iteration=False).batch(16)
  found = ln_tfp.audit_labels(model, fixed)
  np.testing.assert_array_equal(
      found.given, np.concatenate([labels for _, labels in fixed]))


@pytest.mark.parametrize('change, message', [
    (dict(y=np.zeros(39)), '`x` and `y` must have the same length'),
    (dict(y=np.full(40, K)), '`y` must hold classes of 0, 1, 2, 3. Rec'),
    (dict(y=np.full(40, -1)), 'whole numbers that are not negative'),
    (dict(y=np.full(40, .5)), 'whole numbers'),
    (dict(y=np.full((40, K), .3)), 'sum to one'),
    (dict(y=np.zeros((40, 3))), r'soft rows \[N, 4\]'),
    (dict(y=np.full(40, 'cat')), '`class_names` must have 4'),
    (dict(y=None), '`y` must be given'),
    (dict(x=np.zeros((0, 5)), y=np.zeros(0)), 'at least one example'),
    (dict(x=np.full((40, 5), np.nan, np.float32)), 'finite outputs'),
    (dict(ids=[1, 2]), '`ids` must have 40 entries'),
    (dict(class_names=['a', 'b']), 'classes of 0, 1. Received'),
    (dict(class_names=['a', 'b', 'b', 'c']), '`class_names` must have'),
    (dict(evidence='folds'), '`evidence` must be one of'),
    (dict(output='second'), '`output` must be one of'),
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
  with pytest.raises(ValueError, match='`x` must end'):
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


@pytest.mark.slow
def test_the_page_of_a_data_set_without_issues_says_so(tmp_path):
  head = ln_tfp.LogisticNormalHead(2, temperature=1.)
  model = keras.Sequential([keras.Input((2,)), head])
  head.loc.set_weights([np.eye(2, dtype=np.float32), np.zeros(2)])
  x = 5. * np.eye(2, dtype=np.float32)
  report = ln_tfp.audit_labels(model, x, [0, 1])
  assert report.confused_pairs == []
  assert '2 labels of 2 classes: 0 are flagged (0.0 %)' in str(report)
  report.save(tmp_path / 'audit.html')
  assert 'There is nothing to show.' in (tmp_path / 'audit.html').read_text()


def _trained(x, y, *layers, epochs=20, num_classes=K):
  """A small network that is trained on labels."""
  keras.utils.set_random_seed(0)
  model = keras.Sequential([
      keras.Input(x.shape[1:]), *layers,
      ln_tfp.LogisticNormalHead(num_classes)])
  model.compile(keras.optimizers.Adam(.01), loss=ln_tfp.nll)
  model.fit(x, y, epochs=epochs, verbose=0)
  return model


def _clouds(num=400, wrong=.2, seed=0):
  rng = np.random.default_rng(seed)
  true = rng.integers(0, K, num)
  x = (3. * np.eye(K, 5)[true] + rng.normal(size=(num, 5))).astype(np.float32)
  given = ln_tfp.noise.corrupt(true, f'sym:{wrong}', num_classes=K)
  return x, given, true


@pytest.mark.slow
@pytest.mark.thorough
def test_wrong_labels_learnt_by_heart_are_found_before_the_trained_layers():
  x, given, true = _clouds()
  model = _trained(
      x, given, *(keras.layers.Dense(256, activation='relu') for _ in range(3)),
      epochs=60)
  auto = ln_tfp.audit_labels(model, x, given)
  wrong = given != true
  assert np.mean(auto.is_issue[wrong]) > .8
  assert np.mean(auto.is_issue[~wrong]) < .05
  spoilt = ln_tfp.audit_labels(model, x, given, evidence='features')
  assert np.mean(spoilt.is_issue[wrong]) < np.mean(auto.is_issue[wrong])
  assert auto.trust.kind == 'leave-one-out'
  assert auto.residual_norm is not None  # the head's figures are there, too


@pytest.mark.slow
@pytest.mark.thorough
def test_features_that_had_to_be_learnt_are_used():
  """The classes are the signs of two products: not linear in the inputs."""
  rng = np.random.default_rng(1)
  x = rng.normal(size=(600, 12)).astype(np.float32)
  true = 2 * (x[:, 0] * x[:, 1] > 0) + (x[:, 2] * x[:, 3] > 0)
  given = ln_tfp.noise.corrupt(true, 'sym:0.2', num_classes=K)
  model = _trained(x, true, keras.layers.Dense(64, activation='relu'),
                   epochs=60)
  auto = ln_tfp.audit_labels(model, x, given)
  features = ln_tfp.audit_labels(model, x, given, evidence='features')
  np.testing.assert_array_equal(auto.quality, features.quality)
  frozen = ln_tfp.audit_labels(model, x, given, evidence='frozen')
  wrong = given != true
  assert np.mean(auto.is_issue[wrong]) > .6
  assert np.mean(frozen.is_issue[wrong]) < .4


def test_what_the_networks_own_outputs_know_is_said_beside_the_audits():
  x, given, _ = _clouds(wrong=0.)
  model, _ = _model()
  predicted = np.argmax(ln_tfp.probabilities(model(x), K), axis=1)
  agreed = np.mean(predicted == given)
  assert agreed < .4
  report = ln_tfp.audit_labels(model, x, given, evidence='frozen')
  assert report.trust.accuracy > .9
  assert report.trust.own.accuracy == pytest.approx(agreed)
  text = str(report)
  assert f"The network's own outputs: {100 * agreed:.1f} % (in-sample)" in text
  assert 'hardly better than chance: it is not trained' in text
  assert 'Not to be acted on' not in text
  alone = ln_tfp.audit_labels(model, x, given, evidence='outputs')
  assert alone.trust.own is None


@pytest.mark.slow
def test_features_are_those_of_the_frozen_backbone():
  x, given, _ = _clouds()
  keras.utils.set_random_seed(0)
  backbone = keras.Sequential([
      keras.Input((5,)), keras.layers.Dense(16, activation='tanh')])
  backbone.trainable = False
  model = _trained(x, given, backbone, epochs=2)
  report = ln_tfp.audit_labels(model, x, given)
  expected = ln_tfp.audit_features(backbone.predict(x, verbose=0), given)
  np.testing.assert_allclose(report.quality, expected.quality, atol=1e-5)


class _Batches(keras.utils.PyDataset):

  def __init__(self, *columns):
    super().__init__()
    self._columns = columns

  def __len__(self):
    return 4

  def __getitem__(self, index):
    return tuple(column[index::4] for column in self._columns)


@pytest.mark.parametrize('form', [
    'PyDataset', 'generator', 'function', 'weights', 'data frame'])
@pytest.mark.slow
def test_what_fit_takes_the_audit_takes(form):
  x, given, _ = _clouds(80)
  model = _trained(x, given, epochs=2)
  order = np.concatenate([np.arange(i, 80, 4) for i in range(4)])
  expected = ln_tfp.audit_labels(model, x[order], given[order])
  batches = _Batches(x, given)
  ids = np.arange(80)
  if form == 'data frame':
    ids = order[::-1] + 100
    found = ln_tfp.audit_labels(
        model, pd.DataFrame(x[order], index=ids), pd.Series(given[order]))
  else:
    found = ln_tfp.audit_labels(model, {
        'PyDataset': lambda: batches,
        'generator': lambda: (batches[i] for i in range(4)),
        'function': lambda: lambda: (batches[i] for i in range(4)),
        'weights': lambda: _Batches(x, given, np.full(80, 2.)),
    }[form]())
  np.testing.assert_allclose(found.quality, expected.quality, atol=1e-5)
  np.testing.assert_array_equal(found.ids, ids)


@pytest.mark.slow
def test_labels_of_weight_zero_and_ignored_ones_are_left_out():
  x, given, _ = _clouds(80)
  model = _trained(x, given, epochs=2)
  kept = np.arange(80) % 5 > 0
  batch = (x, given, kept.astype(np.float32))
  by_weight = ln_tfp.audit_labels(model, lambda: iter([batch]))
  ignored = ln_tfp.audit_labels(
      model, x, np.where(kept, given, -1), ignore_class=-1)
  for found in (by_weight, ignored):
    np.testing.assert_array_equal(found.ids, np.flatnonzero(kept))
    np.testing.assert_array_equal(found.given, given[kept])
    for i, example in found.examples.items():
      np.testing.assert_array_equal(example, x[kept][i])


@pytest.mark.slow
def test_names_and_soft_labels_are_understood():
  x, given, _ = _clouds(80)
  model = _trained(x, given, epochs=2)
  expected = ln_tfp.audit_labels(model, x, given)
  names = np.array(['ant', 'bee', 'cat', 'dog'])
  named = ln_tfp.audit_labels(model, x, names[given])
  assert named.class_names == tuple(names)
  np.testing.assert_allclose(named.quality, expected.quality, atol=1e-5)
  soft = ln_tfp.audit_labels(model, x, .97 * np.eye(K)[given] + .03 / K)
  np.testing.assert_array_equal(soft.given, given)


@pytest.mark.parametrize('as_dict', [True, False])
@pytest.mark.slow
def test_one_of_several_outputs_is_audited(as_dict):
  x, given, _ = _clouds(80)
  other = 1 - given % 2
  inputs = {'a': keras.Input((2,), name='a'),
            'b': keras.Input((3,), name='b')}
  hidden = keras.layers.Concatenate()([inputs['a'], inputs['b']])
  outputs = [ln_tfp.LogisticNormalHead(K, name='kind')(hidden),
             ln_tfp.LogisticNormalHead(2, name='parity')(hidden)]
  model = keras.Model(inputs, outputs)
  labels = {'kind': given, 'parity': other} if as_dict else [given, other]
  examples = {'a': x[:, :2], 'b': x[:, 2:]}
  for output in ('parity', 1):
    found = ln_tfp.audit_labels(model, examples, labels, output=output)
    np.testing.assert_array_equal(found.given, other)
    assert found.class_names == ('0', '1')
  expected = ln_tfp.audit_features(x, given)
  kind = ln_tfp.audit_labels(model, examples, labels, output='kind')
  np.testing.assert_allclose(kind.quality, expected.quality, atol=1e-5)
  with pytest.raises(ValueError, match='`output` says which'):
    ln_tfp.audit_labels(model, examples, labels)


@pytest.mark.slow
def test_a_model_of_tokens_is_judged_by_what_it_has():
  rng = np.random.default_rng(0)
  tokens = rng.integers(0, 50, (60, 8))
  given = rng.integers(0, K, 60)
  model = keras.Sequential([
      keras.Input((8,), dtype='int32'), keras.layers.Embedding(50, 4),
      keras.layers.GlobalAveragePooling1D(), ln_tfp.LogisticNormalHead(K)])
  assert len(ln_tfp.audit_labels(model, tokens, given)) == 60
  with pytest.raises(ValueError, match="cannot be 'frozen'"):
    ln_tfp.audit_labels(model, tokens, given, evidence='frozen')


@pytest.mark.slow
def test_a_model_has_a_say_in_the_order_as_far_as_it_has_learnt_no_noise():
  x, given, _ = _clouds()
  frozen = ln_tfp.audit_features(x, given)
  rate, unseen = frozen.noise_rate, frozen.trust.accuracy

  def decide(agreed):
    opinion = dataclasses.replace(
        frozen, quality=frozen.quality[::-1],
        trust=dataclasses.replace(frozen.trust, class_accuracy=np.where(
            np.isnan(frozen.trust.class_accuracy), np.nan, agreed)))
    return auditing.decide(dict(frozen=frozen, outputs=opinion))

  for agreed in (1., unseen - .01):  # all by heart, or a poor model
    np.testing.assert_array_equal(decide(agreed).quality, frozen.quality)
  asked = decide(1. - .5 * rate)
  ranks = stats.rankdata(frozen.quality)
  blended = ranks + .25 * ranks[::-1]  # some are equal but for rounding
  assert np.all(np.diff(blended[np.argsort(asked.quality)]) > -1e-6)
  np.testing.assert_allclose(
      np.sort(asked.quality), np.sort(frozen.quality), atol=1e-12)

"""Batches instead of arrays: the same fit, in several passes."""

import pickle
import warnings

import keras
import numpy as np
import pytest
from sklearn import datasets
from sklearn import exceptions
import tensorflow as tf

import ln_tfp
from ln_tfp.process import sources

NUM_ROWS = 900


def make():
  x, y = datasets.load_digits(return_X_y=True)
  random = np.random.default_rng(0)
  y = np.where(random.random(len(y)) < .2, random.integers(10, size=len(y)), y)
  return x[:NUM_ROWS].astype(np.float32), y[:NUM_ROWS], x[NUM_ROWS:]


def batches(x, y, size=64):
  return lambda: ((x[i:i + size], y[i:i + size])
                  for i in range(0, len(x), size))


class Sequence(keras.utils.PyDataset):

  def __init__(self, x, y):
    super().__init__()
    self._arrays = x, y

  def __len__(self):
    return -(-NUM_ROWS // 100)

  def __getitem__(self, index):
    return tuple(part[100 * index:100 * index + 100] for part in self._arrays)


class Loader:
  """What can be iterated again, and nothing else, as PyTorch's loaders."""

  def __init__(self, x, y):
    self._batches = batches(x, y)

  def __iter__(self):
    return self._batches()


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
  """Several chunks, also of little data."""
  monkeypatch.setattr(sources, '_CHUNK_SIZE', 64 * 150)


@pytest.mark.parametrize('kernel', ['linear', 'rbf', 'auto'])
@pytest.mark.parametrize('stream', [
    batches,
    lambda x, y: tf.data.Dataset.from_tensor_slices((x, y)).batch(70),
    Sequence, Loader])
@pytest.mark.slow
def test_a_stream_gives_the_fit_of_the_array(kernel, stream):
  x, y, new = make()
  make_process = lambda: ln_tfp.LogisticNormalProcess(kernel, num_inducing=100)
  whole = make_process().fit(x, y)
  parts = make_process().fit(stream(x, y))
  assert parts.n_features_in_ == 64
  np.testing.assert_array_equal(parts.classes_, whole.classes_)
  first, expected = (
      each._solution.rounds[0].mean(each._solution.features(new))
      for each in (parts, whole))
  np.testing.assert_allclose(first, expected, atol=1e-4)
  np.testing.assert_allclose(
      parts.predict_proba(new), whole.predict_proba(new), atol=2e-3)
  np.testing.assert_allclose(
      parts.leave_one_out_.posterior, whole.leave_one_out_.posterior, atol=5e-3)
  np.testing.assert_allclose(parts.noise_rate_, whole.noise_rate_, atol=1e-3)


@pytest.mark.slow
def test_labels_weights_and_certainty_may_stay_outside_the_stream():
  x, y, new = make()
  names = np.array(list('jihgfedcba'))[y]
  weight = np.linspace(.5, 2., NUM_ROWS)
  certain = np.arange(NUM_ROWS) % 7 == 0
  whole, parts = (
      ln_tfp.LogisticNormalProcess('linear').fit(source, names, weight, certain)
      for source in (x, lambda: iter(np.array_split(x, 7))))
  np.testing.assert_allclose(
      parts.predict_proba(new), whole.predict_proba(new), atol=2e-3)
  rows = np.flatnonzero(certain)
  np.testing.assert_array_equal(
      parts.leave_one_out_.posterior[rows, parts.classes_.searchsorted(
          names[rows])], 1.)


def test_strings_of_a_dataset_stay_strings():
  x, y, new = make()
  names = np.array(list('jihgfedcba'))[y]
  whole, parts = (
      ln_tfp.LogisticNormalProcess('linear', noise_model=False).fit(*source)
      for source in ((x, names), (tf.data.Dataset.from_tensor_slices(
          (x, names)).batch(200),)))
  assert list(parts.classes_) == list('abcdefghij')
  np.testing.assert_array_equal(parts.predict(new), whole.predict(new))


@pytest.mark.slow
def test_labels_that_appear_late_are_classes_as_others():
  x, y, new = make()
  order = np.argsort(-y, kind='stable')  # 9 first, 0 last
  whole = ln_tfp.LogisticNormalProcess('linear').fit(x[order], y[order])
  parts = ln_tfp.LogisticNormalProcess('linear').fit(
      batches(x[order], y[order]))
  np.testing.assert_array_equal(parts.classes_, np.arange(10))
  np.testing.assert_allclose(
      parts.predict_proba(new), whole.predict_proba(new), atol=2e-3)


def test_a_short_part_with_many_classes_is_no_reason_to_warn(monkeypatch):
  monkeypatch.setattr(sources, '_CHUNK_SIZE', 50 * 8)
  rng = np.random.default_rng(0)
  y = np.repeat(np.arange(40), 10)
  x = (4. * rng.normal(size=(40, 8))[y] + rng.normal(size=(400, 8)))
  order = rng.permutation(400)
  x, y = x[order].astype(np.float32), y[order]
  with warnings.catch_warnings():
    warnings.simplefilter('error')
    ln_tfp.LogisticNormalProcess(kernel='linear').fit(
        lambda: ((x[i:i + 50], y[i:i + 50]) for i in range(0, 400, 50)))


def test_chunks_are_the_leave_one_out_predictions_row_by_row():
  x, y, _ = make()
  process = ln_tfp.LogisticNormalProcess('linear').fit(x, y)
  stop = 0
  for chunk in process.leave_one_out_chunks(batches(x, y)):
    assert chunk.rows.start == stop
    stop = chunk.rows.stop
    for name in ('loc', 'probabilities', 'posterior', 'variance', 'leverage'):
      np.testing.assert_allclose(
          getattr(chunk, name),
          getattr(process.leave_one_out_, name)[chunk.rows], atol=1e-4)
  assert stop == NUM_ROWS


def test_beyond_a_size_predictions_come_in_chunks_only(monkeypatch):
  x, y, _ = make()
  monkeypatch.setattr(
      ln_tfp.process.estimator, '_LEAVE_ONE_OUT_SIZE', NUM_ROWS * 10 - 1)
  process = ln_tfp.LogisticNormalProcess('linear').fit(x, y)
  with pytest.raises(AttributeError, match='leave_one_out_chunks'):
    process.leave_one_out_  # noqa: B018
  assert sum(map(len, process.leave_one_out_chunks(x, y))) == NUM_ROWS


@pytest.mark.slow
def test_parts_that_are_fitted_one_after_another_are_the_whole():
  x, y, new = make()
  whole = ln_tfp.LogisticNormalProcess('linear', relabel_rounds=0).fit(x, y)
  parts = ln_tfp.LogisticNormalProcess('linear')
  for i in range(0, NUM_ROWS, 300):
    parts.partial_fit(x[i:i + 300], y[i:i + 300], classes=np.arange(10))
    parts.predict(new)  # between the parts, too
  np.testing.assert_allclose(
      parts.predict_proba(new), whole.predict_proba(new), atol=2e-3)
  chunks = list(parts.leave_one_out_chunks(x, y))
  np.testing.assert_allclose(
      np.concatenate([chunk.posterior for chunk in chunks]),
      whole.leave_one_out_.posterior, atol=5e-3)
  with pytest.raises(AttributeError, match='leave_one_out_chunks'):
    parts.leave_one_out_  # noqa: B018


@pytest.mark.slow
def test_partial_fit_goes_on_after_fit():
  x, y, new = make()
  whole = ln_tfp.LogisticNormalProcess('linear', relabel_rounds=0).fit(x, y)
  parts = ln_tfp.LogisticNormalProcess('linear').fit(x[:500], y[:500])
  parts.partial_fit(x[500:], y[500:])
  np.testing.assert_allclose(
      parts.predict_proba(new), whole.predict_proba(new), atol=2e-3)


@pytest.mark.parametrize('noise_model', [False, True])
def test_classes_may_appear_in_any_order_before_more_rows_come(noise_model):
  x, y, new = make()
  order = np.argsort(-y, kind='stable')  # 9 first, 0 last
  make_process = lambda: ln_tfp.LogisticNormalProcess(
      'linear', noise_model=noise_model, relabel_rounds=0)
  whole = make_process().fit(x, y)
  first = np.concatenate([order[::2], order[1:200:2]])
  parts = make_process().fit(x[first], y[first])
  rest = np.setdiff1d(order, first)
  parts.partial_fit(x[rest], y[rest])
  np.testing.assert_array_equal(parts.classes_, whole.classes_)
  np.testing.assert_allclose(
      parts.predict_proba(new), whole.predict_proba(new), atol=2e-3)


def test_a_pickle_has_the_rows_and_not_the_memory_kept_for_more():
  x, y, new = make()
  half = NUM_ROWS // 2
  process = ln_tfp.LogisticNormalProcess('linear').fit(x[:half], y[:half])
  pickled = pickle.dumps(process)
  assert len(pickled) < 2e6
  again = pickle.loads(pickled)
  for each in (process, again):
    each.partial_fit(x[half:], y[half:])
  np.testing.assert_array_equal(
      again.predict_proba(new), process.predict_proba(new))


def test_a_sample_that_is_full_goes_on_after_a_pickle(monkeypatch):
  monkeypatch.setattr(sources, '_SAMPLE_SIZE', 1)
  monkeypatch.setattr(sources, '_MIN_SAMPLE', 30)
  samples = []
  for change in (lambda it: it, lambda it: pickle.loads(pickle.dumps(it))):
    reservoir = sources.Reservoir(np.random.default_rng(0))
    for start in range(0, 100, 20):
      x = np.arange(start, start + 20.)[:, np.newaxis]
      reservoir.add(x, x.astype(int), np.ones(20), np.zeros(20, bool))
      reservoir = change(reservoir)
    samples.append(reservoir.rows())
  assert len(samples[0][0]) == 30
  for one, other in zip(*samples):
    np.testing.assert_array_equal(one, other)


def test_a_part_that_is_refused_leaves_nothing_behind():
  x, y, new = make()
  process = ln_tfp.LogisticNormalProcess('linear')
  with pytest.raises(ValueError, match='labels of the classes'):
    process.partial_fit(x, y, classes=[0, 1, 2])
  with pytest.raises(exceptions.NotFittedError):
    process.predict(new)
  process.partial_fit(x, y, classes=np.arange(10))
  expected = process.predict_proba(new)
  wrong = np.where(np.arange(NUM_ROWS) == NUM_ROWS - 1, 11, y)
  with pytest.raises(ValueError, match='labels of the classes'):
    process.partial_fit(x, wrong)  # in the last of several chunks
  process._solution = None  # asks the sums again
  np.testing.assert_array_equal(process.predict_proba(new), expected)


def test_the_sample_is_uniform_and_does_not_depend_on_the_batches(
    monkeypatch):
  monkeypatch.setattr(sources, '_SAMPLE_SIZE', 8 * 2_400)
  x = np.arange(20_000.)[:, np.newaxis].repeat(8, axis=1)

  def sample(size):
    reservoir = sources.Reservoir(np.random.default_rng(0))
    for i in range(0, len(x), size):
      part = x[i:i + size]
      reservoir.add(part, np.zeros([len(part), 1], int), np.ones(len(part)),
                    np.zeros(len(part), bool))
    assert reservoir.num_rows == len(x)
    return reservoir.rows()[0][:, 0]

  once, often = sample(20_000), sample(999)
  np.testing.assert_array_equal(once, often)
  assert len(once) == len(set(once)) == 2_400
  # A uniform sample's mean is within four standard errors.
  assert abs(once.mean() - 10_000) < 4 * 20_000 / 12**.5 / 2_400**.5


@pytest.mark.parametrize('stream, message', [
    (lambda x, y: iter([(x, y)]), 'readable more than once'),
    (lambda x, y: tf.data.Dataset.from_tensors((x, y)).repeat(), 'must end'),
    (lambda x, y: tf.data.Dataset.from_tensor_slices((x, y)).shuffle(
        NUM_ROWS, seed=0).batch(50), 'in the same order'),
    (lambda x, y: lambda: iter([]), '0 sample'),
    (lambda x, y: lambda: iter([(x, y), (x[:, :5], y)]),
     'X has 5 features in a batch'),
    (lambda x, y: lambda: iter([(x, y[:-1])]), 'inconsistent numbers'),
    (lambda x, y: lambda: iter([x]), '`y` must be labels'),
    (lambda x, y: lambda: iter([(x, y, y - 1.)]), 'Negative values in data'),
    (lambda x, y: lambda: iter([(x * np.nan, y)]), 'Input X contains NaN'),
    (lambda x, y: lambda: iter([(x[:, :, np.newaxis], y)]), r'shape \[N, F\]'),
])
def test_streams_that_cannot_be_read_are_refused(stream, message):
  x, y, _ = make()
  with pytest.raises(ValueError, match=message):
    ln_tfp.LogisticNormalProcess('linear').fit(stream(x, y))


def test_a_first_part_without_its_classes_is_refused():
  x, y, _ = make()
  with pytest.raises(ValueError, match='classes must be passed'):
    ln_tfp.LogisticNormalProcess().partial_fit(x, y)

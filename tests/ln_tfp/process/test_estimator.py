"""LogisticNormalProcess as it is used."""

import pickle

import numpy as np
import pytest
from scipy import special
from sklearn import base
from sklearn import datasets
from sklearn import exceptions
from sklearn import linear_model
from sklearn import metrics
from sklearn.utils import estimator_checks
import tensorflow_probability as tfp

import ln_tfp
from ln_tfp import process as process_lib

kernels = tfp.math.psd_kernels

# Checks of scikit-learn that cannot hold, and why.
EXPECTED_FAILURES = {
    'check_sample_weight_equivalence_on_dense_data':
        'Leaving out one of two equal rows is not leaving out one row of '
        'weight two, and leave-one-out predictions set the hyperparameters.',
}


def blobs(size=120, num_classes=3, num_features=4, seed=0, noise=0.):
  x, true = datasets.make_blobs(
      size, num_features, centers=num_classes, cluster_std=2.,
      random_state=seed)
  random = np.random.default_rng(seed)
  wrong = random.random(size) < noise
  given = np.where(wrong, (true + 1) % num_classes, true)
  return x, true, given


@estimator_checks.parametrize_with_checks(
    [ln_tfp.LogisticNormalProcess()],
    expected_failed_checks=lambda _: EXPECTED_FAILURES)
@pytest.mark.filterwarnings('ignore::sklearn.exceptions.SkipTestWarning')
@pytest.mark.slow
@pytest.mark.thorough
def test_it_is_a_classifier_of_scikit_learn(estimator, check):
  check(estimator)


@pytest.mark.parametrize('kernel', ['linear', 'rbf'])
def test_leave_one_out_is_n_refits(kernel):
  x, _, y = blobs(25)
  arguments = dict(kernel=kernel, regularization=.5, noise_model=False)
  whole = ln_tfp.LogisticNormalProcess(**arguments).fit(x, y)
  # The refits share the feature map of all rows, as a prior does.
  features = whole._solution.features(x)
  scale = features.std(axis=0) if kernel == 'linear' else 1.
  features = features / scale
  for i in range(25):
    rest = np.arange(25) != i
    design = np.column_stack([features, np.ones(25)])
    penalty = np.diag([.5] * features.shape[1] + [0.])
    gram = design[rest].T @ design[rest] + penalty
    solved = np.linalg.solve(gram, design[rest].T @ np.eye(3)[y[rest]])
    np.testing.assert_allclose(
        whole.leave_one_out_.loc[i], design[i] @ solved, atol=1e-8)
    spread = design[i] @ np.linalg.solve(gram, design[i])
    sigma2 = whole._solution.choice.variance
    np.testing.assert_allclose(
        whole.leave_one_out_.mean_variance[i], sigma2 * spread, rtol=1e-6)
    np.testing.assert_allclose(
        whole.leave_one_out_.variance[i], sigma2 * (1. + spread), rtol=1e-6)


def test_all_rows_as_inducing_points_are_the_exact_process():
  x, _, y = blobs(60)
  new = blobs(9, seed=5)[0]
  kernel = kernels.ExponentiatedQuadratic(
      np.float64(1.), np.float64(6.))
  process = ln_tfp.LogisticNormalProcess(
      kernel, regularization=.3, noise_model=False).fit(x, y)
  k = kernel.matrix(x, x).numpy() + .3 * np.eye(60)
  ones, targets = np.ones(60), np.eye(3)[y]
  # The flat intercept by generalised least squares.
  intercept = (ones @ np.linalg.solve(k, targets)
               / (ones @ np.linalg.solve(k, ones)))
  expected = intercept + kernel.matrix(new, x).numpy() @ np.linalg.solve(
      k, targets - intercept)
  np.testing.assert_allclose(
      process._solution.mean(new), expected, atol=1e-7)
  inverse = np.linalg.inv(k)
  inverse -= np.outer(inverse @ ones, inverse @ ones) / (
      ones @ inverse @ ones)
  np.testing.assert_allclose(
      process.leave_one_out_.loc,
      targets - inverse @ targets / np.diag(inverse)[:, np.newaxis],
      atol=1e-7)


@pytest.mark.slow
def test_few_inducing_points_are_close_to_all():
  x, y = datasets.load_digits(return_X_y=True)
  x, y, new = x[:600], y[:600], x[600:900]
  exact, few = (
      ln_tfp.LogisticNormalProcess('rbf', num_inducing=size).fit(x, y)
      for size in (300, 200))
  assert len(exact._solution.features.points) > 300
  assert len(few._solution.features.points) <= 200
  assert np.mean(exact.predict(new) == few.predict(new)) > .93


@pytest.mark.slow
def test_tfps_kernels_predict_as_ours():
  x, _, y = blobs(80)
  ours = ln_tfp.LogisticNormalProcess('rbf').fit(x, y)
  length = ours._solution.features.kernel.length
  theirs = ln_tfp.LogisticNormalProcess(
      kernels.ExponentiatedQuadratic(length_scale=np.float64(length))).fit(x, y)
  np.testing.assert_allclose(
      ours.predict_proba(x), theirs.predict_proba(x), atol=1e-6)
  base.clone(theirs).fit(x, y)


def test_auto_is_linear_where_classes_are_and_rbf_where_they_are_not():
  moons, side = datasets.make_moons(300, noise=.2, random_state=0)
  assert ln_tfp.LogisticNormalProcess().fit(moons, side).kernel_ == 'rbf'
  random = np.random.default_rng(0)
  x = random.normal(size=[300, 30])
  y = x @ random.normal(size=30) > 0
  assert ln_tfp.LogisticNormalProcess().fit(x, y).kernel_ == 'linear'


@pytest.mark.slow
@pytest.mark.parametrize('noise', ['none', 'sym:0.6'])
def test_noise_does_not_hide_that_an_rbf_is_better(noise):
  x, y = datasets.load_digits(return_X_y=True)
  given = ln_tfp.noise.corrupt(y[:1_200], noise, seed=0)
  process = ln_tfp.LogisticNormalProcess(noise_model=False)
  assert process.fit(x[:1_200], given).kernel_ == 'rbf'


@pytest.mark.parametrize('make', [
    lambda y: np.stack([y, np.where(np.arange(len(y)) % 3 == 0, 1 - y, y)], 1),
    lambda y: .8 * np.eye(2)[y] + .1], ids=['annotators', 'soft'])
def test_a_kernel_is_chosen_by_labels_of_any_form(make):
  moons, side = datasets.make_moons(300, noise=.2, random_state=0)
  assert ln_tfp.LogisticNormalProcess().fit(moons, make(side)).kernel_ == 'rbf'
  x = np.random.default_rng(0).normal(size=[300, 30])
  side = (x.sum(axis=1) > 0).astype(int)
  assert ln_tfp.LogisticNormalProcess().fit(x, make(side)).kernel_ == 'linear'


def test_of_a_few_rows_for_each_class_the_kernel_is_linear():
  x, y = datasets.make_moons(8, noise=.1, random_state=0)
  assert ln_tfp.LogisticNormalProcess().fit(x, y).kernel_ == 'linear'


def test_wrong_labels_are_found_and_predictions_are_of_true_classes():
  x, true, given = blobs(600, noise=.3)
  process = ln_tfp.LogisticNormalProcess('linear').fit(x, given)
  wrong = given != true
  posterior = process.leave_one_out_.posterior
  assert np.mean(posterior.argmax(axis=1) == true) > .97
  assert abs(process.noise_rate_ - wrong.mean()) < .03
  np.testing.assert_allclose(
      process.transition_matrix_,
      .7 * np.eye(3) + .3 * np.eye(3)[[1, 2, 0]], atol=.08)
  assert process.score(x, true) > .96
  np.testing.assert_allclose(
      process.noisy_predict_proba(x),
      process.predict_proba(x) @ process.transition_matrix_)


@pytest.mark.slow
def test_relabelling_helps_against_structured_noise():
  x, true = datasets.load_digits(return_X_y=True)
  random = np.random.default_rng(0)
  wrong = random.random(len(x)) < .4
  given = np.where(wrong, (true + 1) % 10, true)
  right = []
  for rounds in (0, 3):
    process = ln_tfp.LogisticNormalProcess(
        'rbf', num_inducing=400, relabel_rounds=rounds).fit(x, given)
    right.append(np.mean(
        process.leave_one_out_.posterior.argmax(axis=1) == true))
  assert right[1] > right[0] + .01
  assert right[1] > .97


def test_a_distribution_predicts_the_probabilities():
  x, _, y = blobs(60)
  process = ln_tfp.LogisticNormalProcess('linear').fit(x, y)
  distribution = process.predict_distribution(x)
  assert isinstance(distribution, ln_tfp.LogisticNormal)
  assert distribution.batch_shape == [60]
  classes = distribution.predictive().numpy()[:, :3]
  np.testing.assert_allclose(
      classes / classes.sum(axis=1, keepdims=True), process.predict_proba(x),
      rtol=1e-6)
  mean_alone = process.predict_distribution(x, observation_noise=False)
  np.testing.assert_allclose(
      distribution.scale_diag**2 - mean_alone.scale_diag**2,
      process._solution.choice.variance, rtol=1e-6)
  far = process.predict_distribution(x + 1e3)
  assert np.all(far.scale_diag > distribution.scale_diag)


def test_probabilities_are_a_softmax_of_the_leave_one_out_means():
  x, _, y = blobs(60)
  process = ln_tfp.LogisticNormalProcess().fit(x, y)
  model, loo = process.noise_model_, process.leave_one_out_
  np.testing.assert_allclose(
      loo.probabilities, special.softmax(
          model.inverse_temperature * loo.loc + model.bias, axis=1), rtol=1e-9)


@pytest.mark.slow
def test_names_of_classes_do_not_matter_but_their_order_does_not_either():
  x, _, y = blobs(90, noise=.2)
  names = np.array(['pear', 'apple', 'fig'])
  numbers = ln_tfp.LogisticNormalProcess('linear').fit(x, y)
  words = ln_tfp.LogisticNormalProcess('linear').fit(x, names[y])
  order = [list(words.classes_).index(name) for name in names]
  np.testing.assert_array_equal(names[numbers.predict(x)], words.predict(x))
  np.testing.assert_allclose(
      numbers.predict_proba(x), words.predict_proba(x)[:, order], atol=1e-6)
  np.testing.assert_allclose(
      numbers.transition_matrix_,
      words.transition_matrix_[np.ix_(order, order)], atol=1e-6)


@pytest.mark.parametrize('kernel', ['linear', 'rbf'])
def test_units_of_the_features_do_not_matter(kernel):
  x, _, y = blobs(90)
  one = ln_tfp.LogisticNormalProcess(kernel).fit(x, y)
  other = ln_tfp.LogisticNormalProcess(kernel).fit(1e3 * x + 7., y)
  np.testing.assert_allclose(
      one.predict_proba(x), other.predict_proba(1e3 * x + 7.), atol=1e-6)


def test_one_hot_floats_are_the_same_labels():
  x, _, y = blobs(60, noise=.1)
  hard = ln_tfp.LogisticNormalProcess('linear').fit(x, y)
  soft = ln_tfp.LogisticNormalProcess('linear').fit(x, np.eye(3)[y])
  np.testing.assert_allclose(
      hard.predict_proba(x), soft.predict_proba(x), atol=1e-9)


def test_annotators_have_matrices_and_their_consensus_beats_the_majority():
  x, true, _ = blobs(900)
  random = np.random.default_rng(0)
  rates = .2, .4, .6
  labels = np.stack([
      np.where(random.random(900) < rate, random.integers(3, size=900), true)
      for rate in rates], axis=1)
  labels[random.random(labels.shape) < .3] = -1
  process = ln_tfp.LogisticNormalProcess('linear').fit(x, labels)
  assert process.transition_matrix_.shape == (3, 3, 3)
  np.testing.assert_allclose(
      process.noise_rate_, [rate * 2 / 3 for rate in rates], atol=.05)
  consensus = process.leave_one_out_.posterior.argmax(axis=1)
  majority = np.argmax([np.sum(labels == k, axis=1) for k in range(3)], axis=0)
  assert np.mean(consensus == true) > np.mean(majority == true) + .1


def test_a_row_that_nobody_labelled_is_predicted_only():
  x, true, _ = blobs(60)
  labels = np.stack([true, true], axis=1)
  labels[:10] = -1
  process = ln_tfp.LogisticNormalProcess(
      'linear', regularization=1.).fit(x, labels)
  without = ln_tfp.LogisticNormalProcess(
      'linear', regularization=1.).fit(x[10:], labels[10:])
  np.testing.assert_allclose(
      process.leave_one_out_.probabilities[:10],
      without.predict_proba(x[:10]), atol=1e-6)
  np.testing.assert_allclose(
      process.leave_one_out_.mean_variance[:10],
      without.predict_distribution(x[:10], False).scale_diag[:, 0]**2,
      rtol=1e-5)


def test_certain_labels_are_kept():
  x, true, given = blobs(300, noise=.3)
  doubted = ln_tfp.LogisticNormalProcess('linear').fit(x, given)
  wrong = np.flatnonzero(given != true)[:5]
  certain = np.isin(np.arange(300), wrong)
  process = ln_tfp.LogisticNormalProcess('linear').fit(
      x, given, certain=certain)
  rows = wrong, given[wrong]
  assert np.all(doubted.leave_one_out_.posterior[rows] < .5)
  np.testing.assert_array_equal(process.leave_one_out_.posterior[rows], 1.)


def test_a_row_of_weight_zero_is_as_if_it_were_absent():
  x, _, y = blobs(80)
  weight = np.where(np.arange(80) < 60, 1., 0.)
  arguments = dict(kernel='linear', regularization=1.)
  np.testing.assert_allclose(
      ln_tfp.LogisticNormalProcess(**arguments).fit(
          x, y, weight).predict_proba(x),
      ln_tfp.LogisticNormalProcess(**arguments).fit(
          x[:60], y[:60]).predict_proba(x), atol=1e-6)


@pytest.mark.parametrize('kernel', ['linear', 'rbf'])
def test_two_classes_are_one_regression(kernel):
  x, _, y = blobs(60, num_classes=2)
  process = ln_tfp.LogisticNormalProcess(kernel).fit(x, y == 1)
  loo = process.leave_one_out_
  np.testing.assert_allclose(loo.loc.sum(axis=1), 1., atol=1e-9)
  features = process._solution.features(x)
  if kernel == 'linear':
    features = features / features.std(axis=0)
  plain = linear_model.Ridge(process.regularization_).fit(features, y == 1)
  rounds = process._solution.rounds
  np.testing.assert_allclose(
      rounds[0].mean(process._solution.features(x))[:, 1],
      plain.predict(features), atol=1e-7)
  assert process.score(x, y == 1) > .9


def test_every_row_twice_is_every_row_with_twice_the_weight():
  x, _, y = blobs(40)
  arguments = dict(kernel='linear', regularization=2., noise_model=False)
  once, twice = (
      ln_tfp.LogisticNormalProcess(**arguments).fit(*data)._solution
      for data in ((x, y, np.full(40, 2.)),
                   (np.concatenate([x, x]), np.concatenate([y, y]))))
  np.testing.assert_allclose(twice.mean(x), once.mean(x), atol=1e-9)
  # One of the two is left out, and the other one is still there.
  rest = np.delete(np.tile(np.arange(40), 2), 7)
  scale = x.std(axis=0)
  ridge = linear_model.Ridge(2.).fit(x[rest] / scale, np.eye(3)[y[rest]])
  both = ln_tfp.LogisticNormalProcess(**arguments).fit(
      np.concatenate([x, x]), np.concatenate([y, y]))
  np.testing.assert_allclose(
      both.leave_one_out_.loc[[7, 47]],
      np.tile(ridge.predict(x[[7]] / scale), [2, 1]), atol=1e-8)


@pytest.mark.parametrize('kernel', ['linear', 'rbf'])
def test_without_its_only_row_a_class_is_unheard_of(kernel):
  x, _, y = blobs(40)
  y[7] = 9
  process = ln_tfp.LogisticNormalProcess(kernel).fit(x, y)
  np.testing.assert_array_equal(process.classes_, [0, 1, 2, 9])
  np.testing.assert_allclose(
      process._solution.rounds[0].mean(process._solution.features(x)).sum(
          axis=1), 1., atol=1e-9)
  plain = ln_tfp.LogisticNormalProcess(kernel, noise_model=False).fit(x, y)
  assert abs(plain.leave_one_out_.loc[7, 3]) < 1e-9
  others = y != 9
  assert process.score(x[others], y[others]) > .9


@pytest.mark.slow
@pytest.mark.parametrize('num_classes', [2, 3, 5])
@pytest.mark.parametrize('size, num_features', [(30, 20), (30, 100), (80, 20)])
def test_labels_without_sense_are_not_predicted_for_new_rows(
    num_classes, size, num_features):
  surprise = []
  for seed in range(3):  # of few rows, some make sense by luck
    random = np.random.default_rng(seed)
    x = random.normal(size=[size + 300, num_features])
    y = random.integers(num_classes, size=size + 300)
    process = ln_tfp.LogisticNormalProcess('linear').fit(x[:size], y[:size])
    surprise.append(metrics.log_loss(
        y[size:], process.predict_proba(x[size:]),
        labels=process.classes_))
  assert np.median(surprise) < 1.2 * np.log(num_classes)


def test_where_no_noise_can_be_learnt_the_fit_is_that_without_a_noise_model():
  random = np.random.default_rng(0)
  x, y = random.normal(size=[30, 20]), random.integers(3, size=30)
  with_model, without = (
      ln_tfp.LogisticNormalProcess('linear', noise_model=each).fit(x, y)
      for each in (True, False))
  np.testing.assert_array_equal(with_model.transition_matrix_, np.eye(3))
  np.testing.assert_array_equal(
      with_model.predict_proba(x), without.predict_proba(x))
  np.testing.assert_array_equal(
      with_model.noisy_predict_proba(x), without.predict_proba(x))
  assert not hasattr(without, 'noisy_predict_proba')


def test_an_annotator_without_labels_has_no_noise_rate():
  x, true, given = blobs(200, noise=.2)
  labels = np.stack([true, given, np.full(200, -1)], axis=1)
  process = ln_tfp.LogisticNormalProcess('linear').fit(x, labels)
  np.testing.assert_array_equal(
      np.isnan(process.noise_rate_), [False, False, True])


def test_after_a_fit_that_failed_nothing_is_fitted():
  x, _, y = blobs(30)
  for process in (ln_tfp.LogisticNormalProcess(),
                  ln_tfp.LogisticNormalProcess().fit(x, y)):
    for bad in (np.zeros_like(y), np.where(y == 0, np.nan, y)):
      with pytest.raises(ValueError):  # noqa: PT011
        process.fit(x, bad)
      for question in (process.predict, process.predict_proba):
        with pytest.raises(exceptions.NotFittedError):
          question(x)
    process.fit(x, y).predict(x)


@pytest.mark.parametrize('change', [
    lambda x, y: (x[:6], y[:6]),  # fewer rows than features
    lambda x, y: (np.concatenate([x, x]), np.concatenate([y, y])),
    lambda x, y: (np.zeros_like(x), y),
    lambda x, y: (x, np.where(np.arange(len(y)) == 0, 9, y % 2)),  # one of 9
    lambda x, y: (x, y == 0),
    lambda x, y: (x.astype(np.float32), y),
    lambda x, y: (np.round(x).astype(np.int8), y),
])
@pytest.mark.parametrize('kernel', ['linear', 'rbf', 'auto'])
def test_unusual_data_give_finite_probabilities(kernel, change):
  x, _, y = blobs(40, num_features=8)
  x, y = change(x, y)
  process = ln_tfp.LogisticNormalProcess(kernel).fit(x, y)
  for rows in (process.predict_proba(x), process.leave_one_out_.posterior,
               process.leave_one_out_.probabilities):
    assert np.all(np.isfinite(rows))
    np.testing.assert_allclose(rows.sum(axis=1), 1., rtol=1e-5)
  assert np.all(process.leave_one_out_.variance > 0.)


@pytest.mark.slow
def test_equal_seeds_give_equal_fits_and_a_pickle_predicts_the_same():
  x, y = datasets.load_digits(return_X_y=True)
  make = lambda: ln_tfp.LogisticNormalProcess(
      'rbf', num_inducing=50, random_state=3).fit(x[:400], y[:400])
  one, two = make(), make()
  expected = one.predict_proba(x[400:500])
  np.testing.assert_array_equal(expected, two.predict_proba(x[400:500]))
  again = pickle.loads(pickle.dumps(one))
  np.testing.assert_array_equal(expected, again.predict_proba(x[400:500]))


@pytest.mark.slow
def test_the_log_marginal_likelihood_prefers_the_noise_that_made_the_data():
  x, _, y = blobs(100)
  values = [
      ln_tfp.LogisticNormalProcess(
          'linear', regularization=a).fit(x, y).log_marginal_likelihood_
      for a in (1e-6, 1., 1e6)]
  assert values[1] == max(values)


@pytest.mark.parametrize('arguments, message', [
    (dict(kernel='cubic'), 'Argument `kernel` must be one of'),
    (dict(kernel=np.dot), 'Argument `kernel` must be one of'),
    (dict(kernel=kernels.ExponentiatedQuadratic(length_scale=[1., 2.])),
     'Argument `kernel` must be one kernel'),
    (dict(noise_model='yes'), 'Argument `noise_model` must be a bool'),
    (dict(num_inducing=0), 'Argument `num_inducing` must be a whole number'),
    (dict(relabel_rounds=-1), 'Argument `relabel_rounds` must be a whole'),
    (dict(regularization=0.), 'Argument `regularization` must be positive'),
    (dict(regularization='cv'), 'Argument `regularization` must be positive'),
    (dict(length_scale=-1.), 'Argument `length_scale` must be positive'),
])
def test_wrong_parameters_are_named(arguments, message):
  x, _, y = blobs(20)
  with pytest.raises(ValueError, match=message):
    ln_tfp.LogisticNormalProcess(**arguments).fit(x, y)


@pytest.mark.parametrize('change, message', [
    (lambda x, y: (np.where(x == x[3, 1], np.nan, x), y),
     'Input X contains NaN'),
    (lambda x, y: (x, np.zeros_like(y)), 'only one class'),
    (lambda x, y: (x[:-1], y), 'inconsistent numbers of samples'),
    (lambda x, y: (x[:0], y[:0]), '0 sample'),
    (lambda x, y: (x[:, 0], y), 'Expected 2D array'),
    (lambda x, y: (x, None), 'requires y to be passed'),
    (lambda x, y: (x, np.where(y == y[3], None, y)), 'a label for each row'),
    (lambda x, y: (x, y, np.zeros(len(x))), 'at least one non-zero'),
    (lambda x, y: (x, np.full([len(x), 3], -1)), 'no labelled sample'),
    (lambda x, y: (x, y, -np.ones(len(x))), 'Negative values in data'),
])
def test_bad_data_are_refused_in_scikit_learns_words(change, message):
  x, _, y = blobs(20)
  with pytest.raises(ValueError, match=message):
    ln_tfp.LogisticNormalProcess().fit(*change(x, y))


def test_new_rows_of_another_width_and_early_questions_are_refused():
  x, _, y = blobs(20)
  process = ln_tfp.LogisticNormalProcess()
  for early in (lambda: process.predict(x), lambda: process.noise_rate_):
    with pytest.raises(exceptions.NotFittedError):
      early()
  with pytest.raises(ValueError, match='X has 3 features, but'):
    process.fit(x, y).predict(x[:, :3])


def test_the_parts_of_the_noise_model_are_public():
  x, _, y = blobs(60)
  process = ln_tfp.LogisticNormalProcess().fit(x, y)
  assert isinstance(process.noise_model_, process_lib.NoiseModel)
  assert isinstance(process.leave_one_out_, process_lib.LeaveOneOut)

"""The regression and its leave-one-out predictions, against refits and TFP."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from ln_tfp.process import choosing
from ln_tfp.process import ridge

tfd = tfp.distributions


def make(size=40, num_features=5, num_classes=3, seed=0):
  random = np.random.default_rng(seed)
  z = random.normal(size=[size, num_features]) + 2.
  y = np.eye(num_classes)[random.integers(num_classes, size=size)]
  return z, y, random.uniform(.5, 2., size=size)


def fit(z, y, weight, standardize=False):
  moments = ridge.Moments(z.shape[1])
  cross = ridge.Cross(z.shape[1])
  for part in np.array_split(np.arange(len(z)), 3):
    moments.add(z[part], weight[part])
    cross.add(z[part], y[part], weight[part])
  return ridge.Spectrum.of(moments, standardize), cross


def predict(spectrum, cross, a, z):
  coefficients, intercept = spectrum.solve(cross, a)
  return z @ coefficients.astype(z.dtype) + intercept.astype(z.dtype)


def leave_out_all(z, y, weight, a):
  spectrum, cross = fit(z, y, weight)
  h = ridge.leverage(spectrum.spread(z, a), weight)
  return ridge.leave_out(predict(spectrum, cross, a, z), y, h), h


def penalized(z, y, weight, a):
  """The minimiser of the penalised squares, by a plain linear solve."""
  design = np.column_stack([z, np.ones(len(z))])
  penalty = np.diag([a] * z.shape[1] + [0.])
  solved = np.linalg.solve(
      design.T @ (weight[:, np.newaxis] * design) + penalty,
      design.T @ (weight[:, np.newaxis] * y))
  return solved[:-1], solved[-1]


@pytest.mark.parametrize('a', [1e-2, 1., 1e3])
def test_the_fit_is_that_of_penalised_least_squares(a):
  z, y, weight = make()
  spectrum, cross = fit(z, y, weight)
  np.testing.assert_allclose(
      predict(spectrum, cross, a, z),
      np.add(z @ penalized(z, y, weight, a)[0], penalized(z, y, weight, a)[1]),
      atol=1e-11)


@pytest.mark.parametrize('size, num_features', [(40, 5), (4, 5), (6, 20)])
def test_leaving_out_a_row_is_refitting_without_it(size, num_features):
  z, y, weight = make(size, num_features)
  loo, _ = leave_out_all(z, y, weight, .3)
  for i in range(size):
    rest = np.arange(size) != i
    coefficients, intercept = penalized(z[rest], y[rest], weight[rest], .3)
    np.testing.assert_allclose(
        loo[i], z[i] @ coefficients + intercept, atol=1e-10)


def test_leave_one_out_in_float32_is_close_to_float64():
  z, y, weight = make(2_000, 20)
  exact, _ = leave_out_all(z, y, weight, 3.)
  single, _ = leave_out_all(*(
      part.astype(np.float32) for part in (z, y, weight)), 3.)
  assert single.dtype == np.float32
  np.testing.assert_allclose(single, exact, atol=1e-5)


def test_a_weight_of_two_is_the_row_twice_and_of_zero_no_row():
  z, y, _ = make()
  weight = np.resize([1., 2., 0.], len(z))
  repeated = np.repeat(np.arange(len(z)), weight.astype(int))
  weighted = predict(*fit(z, y, weight), .5, z)
  np.testing.assert_allclose(
      weighted,
      predict(*fit(z[repeated], y[repeated], np.ones(len(repeated))), .5, z),
      atol=1e-11)


def test_mean_and_variance_are_those_of_tfps_gaussian_process():
  z, y, _ = make()
  new = make(7, seed=1)[0]
  a, variance = .7, .09
  spectrum, cross = fit(z, y, np.ones(len(z)))
  mean = predict(spectrum, cross, a, new)
  spread = spectrum.spread(new, a)
  for k in range(y.shape[1]):
    model = tfd.GaussianProcessRegressionModel(
        _kernel(a, variance), index_points=new, observation_index_points=z,
        observations=y[:, k], observation_noise_variance=variance,
        predictive_noise_variance=0.)
    np.testing.assert_allclose(mean[:, k], model.mean(), atol=1e-6)
    np.testing.assert_allclose(variance * spread, model.variance(), rtol=1e-4)


def test_log_marginal_likelihood_is_tfps_without_the_flat_prior():
  z, y, _ = make()
  a, variance = .7, .09
  spectrum, cross = fit(z, y, np.ones(len(z)))
  expected = 0.
  for k in range(y.shape[1]):
    process = tfd.GaussianProcess(
        _kernel(a, variance), index_points=z,
        observation_noise_variance=variance)
    # A flat prior has the density 1, N(0, FLAT) 1 / sqrt(2 pi FLAT).
    expected += process.log_prob(y[:, k]) + .5 * np.log(2. * np.pi * FLAT)
  np.testing.assert_allclose(
      spectrum.log_marginal_likelihood(cross, a, variance), expected,
      rtol=1e-5)


FLAT = 1e6


def _kernel(a, variance):
  """Coefficients of the variance sigma^2 / a, and a nearly flat intercept."""
  kernels = tfp.math.psd_kernels
  return kernels.Linear(
      bias_amplitude=tf.constant(FLAT**.5, tf.float64),
      slope_amplitude=tf.constant((variance / a)**.5, tf.float64),
      shift=tf.zeros([], tf.float64))


def test_infinite_regularisation_gives_the_shares_of_the_classes():
  z, y, weight = make()
  mean = predict(*fit(z, y, weight), 1e15, z)
  np.testing.assert_allclose(
      mean, np.broadcast_to(np.average(y, axis=0, weights=weight), y.shape),
      atol=1e-9)


def test_constant_features_take_no_part():
  z, y, weight = make()
  more = np.column_stack([z, np.full(len(z), 7.)])
  for standardize in (False, True):
    np.testing.assert_allclose(
        predict(*fit(more, y, weight, standardize), .5, more),
        predict(*fit(z, y, weight, standardize), .5, z), atol=1e-10)


def test_standardised_features_may_have_any_scale_and_origin():
  z, y, weight = make()
  other = z * np.array([1e-3, 1., 10., 1e4, 3.]) - 5.
  np.testing.assert_allclose(
      predict(*fit(other, y, weight, True), .5, other),
      predict(*fit(z, y, weight, True), .5, z), atol=1e-8)


def test_targets_of_another_scale_give_means_of_that_scale():
  z, y, weight = make()
  np.testing.assert_allclose(
      predict(*fit(z, 3. * y, weight), .5, z),
      3. * predict(*fit(z, y, weight), .5, z), atol=1e-11)


def test_the_choice_is_the_grids_least_error_of_refits():
  z, y, weight = make(30, 4)
  spectrum, cross = fit(z, y, weight)
  choice = ridge.choose(spectrum, cross, z, y, weight)
  errors = {}
  for a in spectrum.grid:
    squares = []
    for i in range(len(z)):
      rest = np.arange(len(z)) != i
      coefficients, intercept = penalized(z[rest], y[rest], weight[rest], a)
      squares.append(np.mean((y[i] - z[i] @ coefficients - intercept)**2))
    errors[a] = np.average(squares, weights=weight)
  best = min(errors, key=errors.get)
  assert choice.regularization == best
  np.testing.assert_allclose(choice.error, errors[best], rtol=1e-6)


def test_labels_without_sense_are_not_predicted_where_features_abound():
  z, y, weight = make(40, 400)  # a small regularisation interpolates
  chance = np.mean((y - y.mean(axis=0))**2)
  for dtype in (np.float32, np.float64):
    parts = [part.astype(dtype) for part in (z, y, weight)]
    assert ridge.choose(*fit(*parts), *parts).error > .9 * chance
  loo = choosing.leave_one_out(z @ z.T, y)
  assert np.mean((y - loo)**2) > .9 * chance


def test_a_kernel_is_judged_by_n_refits_at_the_best_regularisation():
  z, y, _ = make(30, 5)
  centred = z - z.mean(axis=0)
  grid = ridge.GRID * np.linalg.eigvalsh(centred @ centred.T).mean()
  trials = []
  for a in grid:
    loo = np.empty_like(y)
    for i in range(len(z)):
      rest = np.arange(len(z)) != i
      coefficients, intercept = penalized(z[rest], y[rest], np.ones(29), a)
      loo[i] = z[i] @ coefficients + intercept
    trials.append(loo)
  best = min(trials, key=lambda loo: np.mean((y - loo)**2))
  np.testing.assert_allclose(
      choosing.leave_one_out(z @ z.T, y), best, atol=1e-8)


def test_a_row_that_is_interpolated_is_predicted_by_nothing():
  h = np.array([.5, 1. - 1e-7])
  loo = ridge.leave_out(np.eye(2), np.eye(2), h)
  np.testing.assert_allclose(loo, [[1., 0.], [.5, .5]])


@pytest.mark.parametrize('dtype', [np.float32, np.float64])
def test_a_regularisation_that_interpolates_is_not_chosen(dtype):
  z, y, weight = (part.astype(dtype) for part in make(20, 300))
  spectrum, cross = fit(z, y, weight)
  choice = ridge.choose(spectrum, cross, z, y, weight)
  assert np.mean(choice.leverages < .999) > .5
  # If nothing else is offered, it is as large as can be.
  few = dataclasses.replace(spectrum, eigenvalues=spectrum.eigenvalues + 1e12)
  assert ridge.choose(
      few, cross, 1e9 * z, y, weight).regularization == few.grid[-1]

"""Tests of the figures that are measured on trained networks."""

import dataclasses

import numpy as np
import pytest

from experiments import accuracy_evolution
from experiments import data
from experiments import residuals
from experiments import toy_datasets
from experiments import training
from experiments.output import figures


@pytest.fixture(scope='module', name='trained')
def _trained(tmp_path_factory):
  """A network with its covariance, and one without."""
  directory = tmp_path_factory.mktemp('results')
  results = [
      training.train(
          training.Run(
              noise='asym:0.2', epochs=3,
              hyperparameters=dict(
                  temperature=.5, min_scale=.3, covariance=covariance)),
          output_dir=directory, keep_weights=True)
      for covariance in ('identity', 'full')]
  return directory, results


def _oracle(result, directory):
  """r^T r and r^T Sigma^-1 r with dense matrices in float64."""
  run = training.Run.from_dict(result.run)
  splits = training.load_splits(run)
  model = training.load_model(result, directory)
  packed = np.asarray(model(splits.preprocessing.normalise(
      splits.train.inputs))).astype(np.float64)
  tau, t, num = .5, .01, 10
  height = np.log(((1 - t) * (num + 1) + t) / t)
  target = tau * height * np.eye(num)[splits.train.given]
  r = target - tau * packed[:, 0]
  factor = np.sqrt(tau) * packed[:, 2:]
  scale = tau * packed[:, 1, :, None] * np.eye(num) + np.einsum(
      'nri,nrj->nij', factor, factor)
  covariance = scale @ np.swapaxes(scale, 1, 2)
  learnt = np.einsum(
      'ni,ni->n', r, np.linalg.solve(covariance, r[..., None])[..., 0])
  return np.sum(r**2, axis=1), learnt, splits


@pytest.mark.parametrize('index', [0, 1])
@pytest.mark.slow
def test_terms_agree_with_dense_matrices(trained, index):
  directory, results = trained
  identity, learnt, splits = _oracle(results[index], directory)
  terms = residuals.residual_terms(
      results[index], splits, output_dir=directory)
  np.testing.assert_allclose(terms['identity'], identity, rtol=1e-3, atol=1e-4)
  np.testing.assert_allclose(terms['learnt'], learnt, rtol=1e-3, atol=1e-4)
  assert .05 < terms['wrong'].mean() < .15  # a fifth of five of ten classes


def test_with_the_identity_both_terms_are_the_same(trained):
  directory, results = trained
  splits = training.load_splits(training.Run.from_dict(results[0].run))
  terms = residuals.residual_terms(results[0], splits, output_dir=directory)
  np.testing.assert_allclose(terms['identity'], terms['learnt'], rtol=1e-5)


@pytest.mark.slow
def test_histograms_count_every_example_once(trained):
  directory, results = trained
  splits = training.load_splits(training.Run.from_dict(results[0].run))
  identity, learnt = (
      residuals.residual_terms(result, splits, output_dir=directory)
      for result in results)
  columns = residuals.panels_of(identity, learnt)
  with figures.style():
    drawn = [residuals.draw_main(columns), residuals.draw_log(learnt),
             residuals.draw_appendix({'a': columns, 'b': columns})]
  assert [len(figure.axes) for figure in drawn] == [3, 2, 6]
  for figure in drawn:
    for ax in figure.axes:
      assert sum(bar.get_height() for bar in ax.patches) == len(splits.train)


def test_medians_are_apart_for_right_and_wrong_labels():
  terms = {'identity': np.array([1., 3., 9.]), 'learnt': np.array([2., 2., 4.]),
           'wrong': np.array([False, False, True])}
  assert residuals.medians(terms) == {
      'median, Sigma_eval = I, right labels': 2.,
      'median, Sigma_eval = I, wrong labels': 9.,
      'median, Sigma_eval = Sigma_theta, right labels': 2.,
      'median, Sigma_eval = Sigma_theta, wrong labels': 4.}


def test_accuracy_is_drawn_over_all_epochs(trained):
  _, results = trained
  cells = {('LN', 'sym:0.2'): results, ('Het-tau-Sigma', 'sym:0.2'): results}
  with figures.style():
    figure = accuracy_evolution.draw(cells)
  assert len(figure.axes) == 4
  line = figure.axes[0].lines[0]
  np.testing.assert_array_equal(line.get_xdata(), [1, 2, 3])
  expected = [50. * sum(pair) for pair in zip(
      *(r.history['validation_accuracy_clean'] for r in results))]
  np.testing.assert_allclose(line.get_ydata(), expected)


def test_each_class_that_is_moved_has_its_lines(trained):
  _, [result, *_] = trained
  assert accuracy_evolution.moved(result) == [2, 3, 5, 6, 7]
  apart = {
      f'train_accuracy_{part}/{label}': [value] * 3
      for part, value in (('clean_part', .9), ('mislabelled_given', .1))
      for label in (2, 7)}
  result = dataclasses.replace(
      result, chosen={'epoch': 2, 'metrics': {}}, history=apart | {
          name: values for name, values in result.history.items()
          if '/' not in name})
  with figures.style():
    figure = accuracy_evolution.draw_classes(
        {('LN', 'asym:0.4'): [result]}, list('abcdefgh'))
  [panel] = figure.axes
  drawn = [line for line in panel.lines if len(line.get_xdata())]
  levels = [line.get_ydata()[0] for line in drawn[1:-1]]
  np.testing.assert_allclose(levels, [90., 10., 90., 10.])
  assert drawn[-1].get_xdata()[0] == 2  # the epoch that was chosen
  [legend] = figure.legends
  assert {'c', 'h'} <= {text.get_text() for text in legend.get_texts()}


@pytest.mark.slow
def test_the_surface_is_the_probability_of_the_triangles(tmp_path):
  run = training.Run(dataset='two_moons', method='CE', batch_size=None,
                     epochs=60, learning_rate=1e-2)
  result = training.train(run, output_dir=tmp_path, keep_weights=True)
  source = data.load('two_moons')
  surface = toy_datasets.surface(result, source, output_dir=tmp_path)
  upper, lower = source.test.true == 0, source.test.true == 1
  column = np.searchsorted(surface['x'], source.test.inputs[:, 0]).clip(0, 149)
  row = np.searchsorted(surface['y'], source.test.inputs[:, 1]).clip(0, 149)
  at_points = surface['probability'][row, column].astype(float)
  assert at_points[lower].mean() > .75
  assert at_points[upper].mean() < .25
  with figures.style():
    figure = toy_datasets.draw([result], tmp_path)
  assert 'on test' in figure.axes[0].get_title()


def test_the_literal_recipe_is_that_of_the_paper():
  run = toy_datasets.literal(training.Run(dataset='circles', epochs=2000))
  assert run.optimizer == 'gd'
  assert run.learning_rate == 1e-4
  assert dict(run.model_arguments) == {'widths': (2000, 2000)}


def test_modes_are_counted_on_a_log_axis():
  rng = np.random.default_rng(0)
  one = np.exp(rng.normal(0., .5, 500))
  assert residuals.modes(one) == 1
  assert residuals.modes(np.concatenate([one, 100. * one])) == 2


def test_what_the_covariance_does_is_measured_at_both_ends():
  plain = np.linspace(1., 100., 200)
  numbers = residuals.reweighting({
      'identity': plain, 'learnt': np.where(plain < 50., 4., .25) * plain,
      'wrong': np.arange(200) % 4 == 0}, 'sym:0.2')
  assert [round(value, 6) for value in list(numbers.values())[1:]] == [
      4., .25, .25]

"""Tests of the figure on loss attenuation."""

import numpy as np
import pytest

from experiments import attenuation
from experiments.output import figures


@pytest.mark.parametrize('min_scale', [.25, .5, 2.])
def test_the_optimum_found_is_that_of_the_papers_derivation(min_scale):
  residuals = np.array([-4., -1.5, -.75, -.3, 0., .1, .25, .5, 1., 2., 3.])
  curve = attenuation.optimise(residuals, min_scale)
  variance = np.maximum(min_scale**2, residuals**2)
  np.testing.assert_allclose(curve.variance, variance, rtol=1e-5)
  np.testing.assert_allclose(
      curve.label_term, residuals**2 / variance, rtol=1e-5, atol=1e-12)
  np.testing.assert_allclose(
      curve.gradient, -residuals / variance, rtol=1e-5, atol=1e-12)


def test_the_figure_has_a_line_for_each_lambda_in_both_panels():
  curve = attenuation.optimise(attenuation.RESIDUALS, 1.)
  with figures.style():
    figure = attenuation.draw({1.: curve, 2.: curve})
  assert [len(ax.lines) for ax in figure.axes] == [2, 2]

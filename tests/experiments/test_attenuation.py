"""Tests of the figure on loss attenuation."""

import numpy as np
import pytest

from experiments import attenuation


@pytest.mark.parametrize('min_scale', [.25, 1., 2.])
def test_the_optimum_found_is_that_of_the_papers_derivation(min_scale):
  residuals = np.array([-4., -1.5, -1., -.3, 0., .1, .25, .5, 1., 2., 3.])
  curve = attenuation.optimise(residuals, min_scale)
  variance = np.maximum(min_scale**2, residuals**2)
  np.testing.assert_allclose(curve.variance, variance, rtol=1e-3)
  np.testing.assert_allclose(
      curve.label_term, residuals**2 / variance, rtol=1e-3, atol=1e-9)
  np.testing.assert_allclose(
      curve.gradient, -residuals / variance, rtol=1e-3, atol=1e-9)


def test_away_from_the_threshold_the_optimum_is_exact():
  curve = attenuation.optimise(np.array([.2, 3.]), 1.)
  np.testing.assert_allclose(curve.variance, [1., 9.], rtol=1e-6)

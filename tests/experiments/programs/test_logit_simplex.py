"""Tests of the figure of logit space and simplex."""

import numpy as np
import pytest

from experiments import logit_simplex
from experiments.output import figures


def test_the_last_class_is_further_from_the_origin_than_the_others():
  distribution = logit_simplex.example()
  norms = np.linalg.norm(
      distribution.bijector.inverse(logit_simplex.targets()), axis=-1)
  np.testing.assert_allclose(norms / norms[0], [1., 1., np.sqrt(2.)])


def test_the_ridge_of_the_normal_points_from_the_mean_to_the_label():
  distribution = logit_simplex.example()
  covariance = distribution.distribution.covariance().numpy()
  values, vectors = np.linalg.eigh(covariance)
  residual = distribution.residual(logit_simplex.targets()[1]).numpy()
  cosine = vectors[:, 1] @ residual / np.linalg.norm(residual)
  np.testing.assert_allclose(abs(cosine), 1.)
  assert values[1] > 9. * values[0]


def test_the_shades_hold_the_mass_that_the_caption_says():
  distribution = logit_simplex.example()
  levels = logit_simplex.levels(distribution.distribution)
  sample = distribution.distribution.sample(50_000, seed=5)
  log_density = distribution.distribution.log_prob(sample).numpy()
  shares = [np.mean(log_density > level) for level in levels]
  np.testing.assert_allclose(shares, logit_simplex.MASSES, atol=.01)


@pytest.mark.slow
def test_the_figure_has_two_panels():
  with figures.style():
    figure = logit_simplex.draw(logit_simplex.example())
  assert len(figure.axes) == 2

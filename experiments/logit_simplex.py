"""Figure 1: a normal in logit space and its image on the simplex.

    python -m experiments.logit_simplex

Takes a few seconds; nothing is trained. Three classes without a dummy class,
so that logit space is a plane and the simplex a triangle. On the left is the
normal that Eq. 8 calls optimal for an example of class 1 whose label says 2:
centred on the prediction, and long in the direction of the label. On the right
is the Logistic-Normal distribution that it becomes under the softmax centered
function.

Expected: the targets of classes 1 and 2 at a distance C from the origin, that
of class 3, the last, at C * sqrt(2) (the asymmetry that the dummy class
removes); and both densities have one ridge, from the prediction to the label.
"""

from __future__ import annotations

from absl import flags
from etils import epy
import numpy as np

from experiments.cli import app
from experiments.output import figures

with epy.lazy_imports():
  from matplotlib import patheffects

  import ln_tfp

FLAGS = flags.FLAGS
_LABEL_SMOOTHING = .1  # more than in training, to keep the corners apart
_MIN_SCALE = .6
# How much of the way from the prediction to the label one standard deviation
# covers: at 1 the normal is the optimum of Eq. 8.
_STRETCH = .6
MASSES = (.95, .8, .65, .5, .35, .2, .05)


def targets() -> np.ndarray:
  """The targets of the three classes on the simplex, `[3, 3]`."""
  return (1. - _LABEL_SMOOTHING) * np.eye(3) + _LABEL_SMOOTHING / 3.


def example() -> ln_tfp.LogisticNormal:
  """The distribution of an example of class 1 that is labelled 2."""
  bijector = ln_tfp.LogisticNormal(np.zeros(2), np.ones(2)).bijector
  truth, label, _ = bijector.inverse(targets()).numpy()
  loc = .8 * truth
  residual = label - loc
  length = np.linalg.norm(residual)
  # The scale's largest eigenvalue, lambda + |c|^2, is the deviation.
  factor = residual / length * np.sqrt(_STRETCH * length - _MIN_SCALE)
  return ln_tfp.LogisticNormal(
      loc, np.full(2, _MIN_SCALE), factor[:, np.newaxis])


def draw(distribution: ln_tfp.LogisticNormal):
  """The figure: logit space on the left, the simplex on the right."""
  figure, axes = figures.panels(1, 2, width=3.6, height=3.2)
  _draw_logits(axes[0, 0], distribution)
  _draw_simplex(axes[0, 1], distribution)
  return figure


def _draw_logits(ax, distribution):
  normal = distribution.distribution
  grid = np.linspace(-5., 6.5, 231)
  points = np.stack(np.meshgrid(grid, grid), axis=-1)
  ax.contourf(grid, grid, normal.log_prob(points).numpy(),
              levels=levels(normal), cmap='Blues', extend='max')
  for i, (x, y) in enumerate(distribution.bijector.inverse(targets()).numpy()):
    _mark(ax, x, y, f'$y_{i + 1}$')
  _mark(ax, *distribution.loc.numpy(), r'$\mu$', 'o', (-12, -4))
  ax.set(title='Logit space', xlabel='$z_1$', ylabel='$z_2$', aspect='equal')


def _draw_simplex(ax, distribution):
  # The image of a grid in logit space is fine near the edges, where the
  # density changes fast.
  logits = np.linspace(-9., 9., 181)
  points = distribution.bijector.forward(
      np.stack(np.meshgrid(logits, logits), axis=-1)).numpy()
  ax.contourf(
      *_corners_to_plane(points), distribution.log_prob(points).numpy(),
      levels=levels(distribution), cmap='Blues', extend='max')
  ax.plot(*_corners_to_plane(np.eye(3)[[0, 1, 2, 0]]), color='.3', lw=.8)
  for i, corner in enumerate(targets()):
    _mark(ax, *_corners_to_plane(corner), f'$p_{i + 1}$', offset=(8, -2))
  _mark(ax, *_corners_to_plane(distribution.predictive().numpy()),
        r'$S_C(\mu)$', 'o', (-34, -2))
  ax.set(title='Probability simplex', aspect='equal')
  ax.axis('off')


def levels(distribution):
  """Levels of the log density above which given shares of the mass lie."""
  log_density = distribution.log_prob(distribution.sample(20_000, seed=0))
  return np.quantile(log_density, 1. - np.array(MASSES))


def _corners_to_plane(points):
  """Barycentric to plane coordinates of an equilateral triangle."""
  corners = np.array([[1., 0.], [.5, np.sqrt(.75)], [0., 0.]])
  return np.moveaxis(points @ corners, -1, 0)


def _mark(ax, x, y, text, marker='^', offset=(4, 4)):
  ax.plot(x, y, marker, color=figures.COLOURS[1], ms=5)
  ax.annotate(
      text, (x, y), xytext=offset, textcoords='offset points',
      path_effects=[patheffects.withStroke(linewidth=2, foreground='white')])


def main(argv):
  del argv
  app.refuse('methods', 'noise', 'search', 'seeds')
  figures.publish(lambda: draw(example()), FLAGS.output_dir, figures.Record(
      name='logit_simplex',
      title='Logit space and probability simplex',
      caption=(
          'A normal in logit space (left) and its image under the softmax '
          'centered function, a Logistic-Normal (right): an example of class 1 '
          'whose label says 2. The shades hold 5, 20, 35, 50, 65, 80 and 95 % '
          'of the probability.')))


if __name__ == '__main__':
  app.start(main)

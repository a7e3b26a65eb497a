"""Figure 2: how lambda controls the attenuation of the loss.

    python -m experiments.attenuation

Takes a few seconds; nothing is trained. For binary classification (D = 1), a
residual r = y - mu and lambda, the factor c of the variance
(c^2 + lambda)^2 is found by minimising the likelihood numerically; the figure
shows the label-dependent term of the loss there, and its gradient in mu.

Expected: up to |r| = lambda the squared error r^2 / lambda^2, with the gradient
-r / lambda^2; beyond it the loss is 1 and the gradient falls off as -1 / r. The
variance is max(lambda^2, r^2). None of this is put in.
"""

from __future__ import annotations

from collections.abc import Callable
import dataclasses

from absl import flags
from etils import epy
import numpy as np

from experiments.cli import app
from experiments.output import figures

with epy.lazy_imports():
  import tensorflow_probability as tfp

  import ln_tfp

FLAGS = flags.FLAGS
_MIN_SCALES = (.25, .5, 1., 2.)
_LARGEST_FACTOR = 4.
_TRIES, _ROUNDS = 65, 6  # c to within 4 / 32^6
RESIDUALS = np.linspace(-4., 4., 321)


@dataclasses.dataclass(frozen=True)
class Curve:
  """What the best attainable variance makes of the residuals, `[N]` each."""
  variance: np.ndarray
  label_term: np.ndarray
  gradient: np.ndarray


def optimise(residuals: np.ndarray, min_scale: float) -> Curve:
  """Minimises -log p(q | mu, lambda, c) over c, for each residual alone.

  Args:
    residuals: y - mu, `[N]`, in float64.
    min_scale: lambda.
  """
  target = ln_tfp.LogisticNormal(np.zeros(1), np.ones(1)).bijector.forward(
      residuals[:, np.newaxis])

  def distribution(c, loc):
    return ln_tfp.LogisticNormal(
        loc, np.array([min_scale]), c[..., np.newaxis])

  def loss(c, loc):
    return -distribution(c, loc).log_prob(target)

  loc = np.zeros_like(target[:, :1])
  c = _minimise(lambda c: loss(c, loc).numpy(), len(residuals))
  best = distribution(c, loc)
  gradient = tfp.math.value_and_gradient(
      lambda loc: loss(c, loc), best.loc)[1]
  return Curve(
      variance=np.exp(2. * best.log_det_scale().numpy()),
      label_term=best.label_term(target).numpy(),
      gradient=gradient.numpy()[:, 0])


def _minimise(loss: Callable[[np.ndarray], np.ndarray], size: int):
  """The c >= 0, `[size, 1]`, that minimise a loss, each for itself.

  Whatever the residual, c = 0 is a stationary point, onto which a search by
  gradients can jump. This one tries values in an interval, and then in the
  part of it around the best.

  Args:
    loss: from c, `[tries, size, 1]`, to values `[tries, size]`.
    size: the number of residuals.
  """
  low, high = np.zeros([size, 1]), np.full([size, 1], _LARGEST_FACTOR)
  for _ in range(_ROUNDS):
    tried = np.linspace(low, high, _TRIES)
    best = np.argmin(loss(tried), axis=0)
    each = np.arange(size)
    low = tried[np.maximum(best - 1, 0), each]
    high = tried[np.minimum(best + 1, _TRIES - 1), each]
  return (low + high) / 2.


def draw(curves: dict[float, Curve]):
  """The figure: the loss on the left, the gradient on the right."""
  figure, axes = figures.panels(1, 2, width=3.4, height=2.6)
  loss, gradient = axes[0]
  for min_scale, curve in curves.items():
    label = rf'$\lambda = {min_scale:g}$'
    loss.plot(RESIDUALS, curve.label_term, label=label)
    gradient.plot(RESIDUALS, curve.gradient, label=label)
  residual = r'residual $y - \mu$'
  loss.set(title='Label-dependent loss', xlabel=residual,
           ylabel=r'$(y - \mu)^2 / \sigma^2$')
  loss.legend()
  gradient.set(title=r'Gradient with respect to $\mu$', xlabel=residual,
               ylabel=r'$-(y - \mu) / \sigma^2$')
  return figure


def main(argv):
  del argv
  app.refuse('methods', 'noise', 'search', 'seeds')
  curves = {value: optimise(RESIDUALS, value) for value in _MIN_SCALES}
  figures.publish(lambda: draw(curves), FLAGS.output_dir, figures.Record(
      name='attenuation',
      title='Controlling loss attenuation with lambda',
      caption=(
          'Loss and gradient at the best attainable variance, found by '
          'minimising the likelihood over c, for binary classification. '
          'Residuals above lambda are attenuated.')))


if __name__ == '__main__':
  app.start(main)

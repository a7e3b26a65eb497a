"""Figures 6 and 7, and Appendix G.3: what the covariance does to residuals.

    python -m experiments.residuals
    python -m experiments.residuals --dataset=cifar10

Histograms of the label-dependent term of the loss, r^T Sigma_eval^-1 r, over
the training examples at the end of training, apart for right and wrong labels:

- figure 6, asymmetric noise of 20 percent: trained and measured with Sigma = I;
  trained with Sigma_theta and measured with I; both Sigma_theta;
- appendix, the same three in rows, for symmetric noise of 20 percent and the
  human labels aggregate, random 2 and worst;
- figure 7, symmetric noise of 40 percent: one network, with and without
  Sigma_theta, on a log axis.

Data sets: digits (default, with digits_n), cifar10 (with cifar10n), and mnist,
fashion_mnist for the log axis alone, which in the paper is of mnist.
Time: digits about a minute and a half on two cores (11 runs); mnist 1.2
hours; cifar10 needs GPUs.
Expected: with Sigma = I in training mu comes close to more of the wrong labels
than with Sigma_theta; Sigma_theta makes small terms larger and large ones
smaller, so that the wrong labels, far from mu, lose their weight.
"""

from __future__ import annotations

import dataclasses

from absl import flags
from etils import epy
import numpy as np

from experiments import data
from experiments import training
from experiments.cli import app
from experiments.output import figures
from experiments.paper import grids
from experiments.sweep import launch

with epy.lazy_imports():
  from scipy import signal
  from scipy import stats

  from ln_tfp import heads

FLAGS = flags.FLAGS

# Data set -> the one with human labels of the same images.
HUMAN = {clean: name for name, clean in grids.CALIBRATION_DATASETS.items()}
DATASETS = (*HUMAN, 'mnist', 'fashion_mnist')
MAIN = grids.RESIDUALS_MAIN
ROWS = (r'$\Sigma_{train} = \Sigma_{eval} = I$',
        r'$\Sigma_{train} = \Sigma_\theta,\ \Sigma_{eval} = I$',
        r'$\Sigma_{train} = \Sigma_{eval} = \Sigma_\theta$')


def residual_terms(
    result: training.Result, splits: data.Source, *,
    output_dir: str) -> dict[str, np.ndarray]:
  """The label-dependent terms of the training examples, `[N]` each.

  Returns:
    'identity', r^T r, 'learnt', r^T Sigma^-1 r, and 'wrong', whether the
    label is. r is at the temperature of the head.
  """
  model = training.load_model(result, output_dir)
  method = training.Run.from_dict(result.run).resolve_method()
  train = splits.train
  batches = data.Batches(
      train, batch_size=1000, preprocessing=splits.preprocessing)
  identity, learnt = [], []
  for batch in batches.epoch(0):
    distribution = heads.to_distribution(model(batch.inputs, training=False))
    size = distribution.event_shape[-1]  # K + 1, or K without the dummy class
    t = method.label_smoothing
    target = np.float32((1. - t) * np.eye(size)[batch.labels] + t / size)
    # The head folds tau in: mu / tau and S / tau.
    residual = method.temperature * distribution.residual(target)
    identity.append(np.sum(np.square(residual), axis=-1))
    learnt.append(distribution.label_term(target))
  return {'identity': np.concatenate(identity),
          'learnt': np.concatenate(learnt), 'wrong': train.is_noisy}


def pair(base: training.Run, noise: str) -> list[training.Run]:
  """The two networks: Sigma_train = I, and Sigma_theta."""
  learnt = app.tuned_run(base, 'LN', noise)
  return [
      dataclasses.replace(learnt, hyperparameters={
          'temperature': learnt.resolve_method().temperature,
          'covariance': 'identity'}),
      learnt]


def panels_of(identity, learnt):
  """The terms of the three panels and which labels are wrong."""
  return [(identity['identity'], identity['wrong']),
          (learnt['identity'], learnt['wrong']),
          (learnt['learnt'], learnt['wrong'])]


def draw_three(ax_column, terms):
  """Draws the three panels of one noise; the first two share their axis."""
  limit = max(values.max() for values, _ in terms[:2])
  for ax, (values, wrong), top in zip(
      ax_column, terms, (limit, limit, terms[2][0].max())):
    _histogram(ax, values, wrong, np.linspace(0., top, 41))
    ax.set(yscale='log')


def draw_main(terms):
  """The main figure, in a row."""
  figure, axes = figures.panels(1, 3, width=2.7)
  draw_three(axes[0], terms)
  for ax, title in zip(axes[0], ROWS):
    ax.set(title=title, xlabel=r'$r^T \Sigma_{eval}^{-1} r$')
  axes[0, 0].set(ylabel='training examples')
  axes[0, 0].legend()
  return figure


def draw_appendix(columns):
  """The appendix: a column for each noise.

  Args:
    columns: the terms of three panels by noise.
  """
  figure, axes = figures.panels(3, len(columns), height=2.)
  for ax_column, (noise, terms) in zip(axes.T, columns.items()):
    draw_three(ax_column, terms)
    ax_column[0].set(title=noise)
    ax_column[2].set(xlabel=r'$r^T \Sigma_{eval}^{-1} r$')
  for ax, title in zip(axes[:, 0], ROWS):
    ax.set(ylabel=title)
  axes[0, 0].legend()
  return figure


def draw_log(terms):
  """One network with (left) and without (right) its covariance, log axis."""
  figure, axes = figures.panels(1, 2, width=3.2, sharex=True, sharey=True)
  both = np.concatenate([terms['learnt'], terms['identity']])
  bins = np.geomspace(max(both.min(), 1e-6), both.max(), 51)
  for ax, name, title in zip(
      axes[0], ('learnt', 'identity'),
      (r'$r^T \Sigma_\theta^{-1} r$', '$r^T r$')):
    _histogram(ax, terms[name], terms['wrong'], bins)
    ax.set(xscale='log', title=title, xlabel='label-dependent term')
  axes[0, 0].set(ylabel='training examples')
  axes[0, 0].legend()
  return figure


def _histogram(ax, values, wrong, bins):
  for part, label, colour in (
      (~wrong, 'right label', figures.CLEAN),
      (wrong, 'wrong label', figures.MISLABELLED)):
    ax.hist(np.clip(values[part], bins[0], bins[-1]), bins, alpha=.6,
            color=colour, label=label)


def medians(terms) -> dict[str, float]:
  """The median of each kind of term for right and wrong labels."""
  return {
      f'median, Sigma_eval = {sigma}, {label} labels':
          float(np.median(terms[name][part]))
      for name, sigma in (('identity', 'I'), ('learnt', 'Sigma_theta'))
      for part, label in ((~terms['wrong'], 'right'), (terms['wrong'], 'wrong'))
      if part.any()}


def reweighting(terms, noise: str) -> dict[str, float]:
  """What the covariance does to the terms of a network, and their modes.

  Args:
    terms: what `residual_terms` gives.
    noise: for the names of the numbers.
  """
  wrong, plain = terms['wrong'], terms['identity']
  quotient = terms['learnt'] / np.maximum(plain, np.finfo(np.float32).tiny)
  right_ends = np.quantile(plain[~wrong], (.1, .9))
  parts = (~wrong & (plain <= right_ends[0]), ~wrong & (plain >= right_ends[1]),
           wrong & (plain >= np.quantile(plain[wrong], .9)))
  return {f'{noise}: modes of the residuals': float(modes(plain))} | {
      f'{noise}: Sigma_theta scales {which} by':
          float(np.median(quotient[part]))
      for which, part in zip(grids.RESIDUALS_ENDS, parts)}


def modes(values: np.ndarray) -> int:
  """The modes of positive values: peaks of their density on a log axis.

  The density is a kernel estimate with Scott's bandwidth; a peak counts that
  rises by a twentieth of the highest above the valleys beside it.
  """
  logs = np.log(np.maximum(values, np.finfo(np.float32).tiny))
  grid = np.linspace(logs.min() - 1., logs.max() + 1., 512)
  density = stats.gaussian_kde(logs)(grid)
  peaks, _ = signal.find_peaks(density, prominence=.05 * density.max())
  return len(peaks)


class Figures:
  """Draws the figures of one data set from the results of its runs."""

  def __init__(self, dataset: str, results, output_dir: str):
    self._dataset = dataset
    self._results = results
    self._output_dir = output_dir

  def _terms(self, run: training.Run) -> dict[str, np.ndarray]:
    """What `residual_terms` gives, measured once."""
    [result] = figures.finished([self._results.get(run.key)])
    splits = training.load_splits(run, source=launch.load(run.dataset))
    return figures.measured(
        residual_terms, result, splits, output_dir=self._output_dir)

  def publish_pairs(self, pairs: dict[str, list[training.Run]]) -> None:
    """The main figure and the appendix, from two networks for each noise."""
    terms = {noise: [self._terms(run) for run in runs]
             for noise, runs in pairs.items()}
    columns = {noise: panels_of(*both) for noise, both in terms.items()}
    main_column = columns.pop(MAIN)
    self._publish(
        '', lambda: draw_main(main_column), pairs[MAIN],
        f'The label-dependent term on the training set, {MAIN}.',
        medians(terms[MAIN][1]) | reweighting(terms[MAIN][1], MAIN))
    self._publish(
        '_appendix', lambda: draw_appendix(columns),
        grids.flat({noise: pairs[noise] for noise in columns}),
        'The same for symmetric noise and human labels.',
        {name: value for noise in columns
         for name, value in reweighting(terms[noise][1], noise).items()})

  def publish_log(self, run: training.Run) -> None:
    """The figure with the log axis, from one network."""
    terms = self._terms(run)
    self._publish(
        '_log', lambda: draw_log(terms), [run],
        'The label-dependent term with and without the covariance, one '
        f'network, {run.noise}.', medians(terms))

  def _publish(self, kind, draw, runs, caption, numbers=None):
    figures.publish(draw, self._output_dir, figures.Record(
        name=f'residuals{kind}-{self._dataset}',
        title=f'Residuals on {self._dataset}{kind.replace("_", ", ")}',
        caption=caption, runs=tuple(run.key for run in runs),
        numbers=numbers or {}))


def pairs_of(base: training.Run) -> dict[str, list[training.Run]]:
  """Two networks for each noise of the main figure and the appendix."""
  if base.dataset not in HUMAN:
    return {}
  human = app.base_run(HUMAN[base.dataset])
  return {
      **{noise: pair(base, noise)
         for noise in (MAIN, grids.RESIDUALS_SYMMETRIC)},
      **{noise: pair(human, noise) for noise in grids.RESIDUALS_HUMAN}}


def main(argv):
  del argv
  app.refuse('methods', 'noise', 'search', 'seeds')
  app.check_dataset(DATASETS)
  base = app.base_run()
  pairs, log_run = pairs_of(base), app.tuned_run(
      base, 'LN', grids.RESIDUALS_LOG)
  results = app.train(
      [*grids.flat(pairs), log_run],
      need_weights=figures.unmeasured(residual_terms, FLAGS.output_dir))
  done = [result for result in results.values() if result.status == 'finished']
  figures.measure_in_workers(
      'experiments.residuals:residual_terms', done, splits=True,
      output_dir=FLAGS.output_dir, data_dir=FLAGS.data_dir)
  drawn = Figures(base.dataset, results, FLAGS.output_dir)
  if pairs:
    drawn.publish_pairs(pairs)
  drawn.publish_log(log_run)
  return app.exit_status(results)


if __name__ == '__main__':
  app.start(main, dataset='digits')

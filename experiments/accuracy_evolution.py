"""Figure 4: accuracy over training, Het-tau-Sigma against LN.

    python -m experiments.accuracy_evolution
    python -m experiments.accuracy_evolution --dataset=cifar10

Of each method two panels: the accuracy on clean validation labels, and the
accuracy on the given training labels, apart for examples whose label is right
(full lines) and wrong (dashed). One colour for each rate of symmetric noise;
with several --seeds the lines are means.

Data sets: digits (default), mnist, fashion_mnist, cifar10, cifar100. The
paper's figure is of cifar10.
Time: digits about a minute on two cores (6 runs, shared with synthetic_noise);
cifar10 needs GPUs.
Expected: in the paper Het-tau-Sigma comes to fit the wrong labels, and its
validation accuracy falls meanwhile; LN fits far fewer of them and falls less.
On digits (one seed) both fit few, at sym:0.4 4.8 and 6.5 percent of them.
"""

from __future__ import annotations

from absl import flags
import numpy as np

from experiments import training
from experiments.cli import app
from experiments.output import figures
from experiments.paper import grids

FLAGS = flags.FLAGS

VALIDATION = 'validation_accuracy_clean'
CLEAN, MISLABELLED = (
    'train_accuracy_clean_part', 'train_accuracy_mislabelled_given')


def curve(results: list[training.Result], quantity: str) -> np.ndarray:
  """The mean over the results of a quantity in percent, one value an epoch."""
  return 100. * np.mean(
      [result.history[quantity] for result in results], axis=0)


def draw(cells: dict[grids.Place, list[training.Result]]):
  """The figure: two panels for each method.

  Args:
    cells: the finished results by (method, noise); none may be empty.
  """
  methods = list(dict.fromkeys(method for method, _ in cells))
  figure, axes = figures.panels(
      1, 2 * len(methods), width=2.4, sharex=True, sharey=True)
  panels = dict(zip(methods, axes[0].reshape(-1, 2)))
  for (method, noise), results in cells.items():
    colour = figures.COLOURS[
        list(dict.fromkeys(noise for _, noise in cells)).index(noise)]
    epochs = np.arange(1, 1 + len(results[0].history[VALIDATION]))
    validation, train = panels[method]
    validation.plot(
        epochs, curve(results, VALIDATION), color=colour, label=noise)
    train.plot(epochs, curve(results, CLEAN), color=colour)
    train.plot(epochs, curve(results, MISLABELLED), '--', color=colour)
  for method, (validation, train) in panels.items():
    validation.set(title=f'{method}: validation (clean)', xlabel='epoch')
    train.set(title=f'{method}: training', xlabel='epoch')
  axes[0, 0].set(ylabel='accuracy (%)', ylim=(0, 101))
  axes[0, 0].legend(loc='lower right')
  handles = [axes[0, 1].plot([], [], style, color='.3')[0]
             for style in ('-', '--')]
  axes[0, 1].legend(handles, ['right labels', 'wrong labels'])
  return figure


def main(argv):
  del argv
  app.check_dataset(grids.SYNTHETIC_DATASETS)
  base, noises = app.base_run(), app.noises(grids.EVOLUTION_NOISES)
  if 'none' in noises:
    raise app.BadFlagError('--noise: without noise no label is wrong.')
  cells = grids.seeded(
      app.choose(base, app.methods(grids.EVOLUTION_METHODS), noises),
      app.seeds())
  results = app.train(grids.flat(cells))
  done = {place: figures.finished(results.get(run.key) for run in runs)
          for place, runs in cells.items()}
  figures.publish(lambda: draw(done), FLAGS.output_dir, figures.Record(
      name=f'accuracy_evolution-{base.dataset}',
      title=f'Accuracy over training on {base.dataset}',
      caption=(
          'Accuracy on clean validation labels, and on the given training '
          'labels for right and wrong labels apart, under symmetric noise. '
          f'n = {FLAGS.seeds}.'),
      runs=tuple(run.key for run in grids.flat(cells))))
  return app.exit_status(results)


if __name__ == '__main__':
  app.start(main, dataset='digits')

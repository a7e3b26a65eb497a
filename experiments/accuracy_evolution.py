"""Figure 4: accuracy over training, Het-tau-Sigma against LN.

    python -m experiments.accuracy_evolution
    python -m experiments.accuracy_evolution --dataset=cifar10
    python -m experiments.accuracy_evolution --by_class --noise=asym:0.4

Of each method two panels: the accuracy on clean validation labels, and the
accuracy on the given training labels, apart for examples whose label is right
(full lines) and wrong (dashed). One colour for each rate of symmetric noise;
with several --seeds the lines are means. --by_class draws asymmetric noise:
of each class that it moves, the same two lines, and the epoch that --stop has
chosen.

Data sets: digits (default), mnist, fashion_mnist, cifar10, cifar100. The
paper's figure is of cifar10.
Time: digits about a minute on two cores (6 runs, shared with synthetic_noise);
cifar10 needs GPUs.
Expected: in the paper Het-tau-Sigma comes to fit the wrong labels, and its
validation accuracy falls meanwhile; LN fits far fewer of them and falls less.
On digits (one seed) both fit few, at sym:0.4 4.8 and 6.5 percent of them.
"""

from __future__ import annotations

import itertools

from absl import flags
from etils import epy
import numpy as np

from experiments import data
from experiments import training
from experiments.cli import app
from experiments.output import figures
from experiments.paper import grids

with epy.lazy_imports():
  from experiments.training import evaluation

flags.DEFINE_bool(
    'by_class', False,
    'Draw each class apart whose labels asymmetric noise moves.')
FLAGS = flags.FLAGS

VALIDATION = 'validation_accuracy_clean'


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
    train.plot(epochs, curve(results, evaluation.CLEAN_PART), color=colour)
    train.plot(
        epochs, curve(results, evaluation.MISLABELLED), '--', color=colour)
  for method, (validation, train) in panels.items():
    validation.set(title=f'{method}: validation (clean)', xlabel='epoch')
    train.set(title=f'{method}: training', xlabel='epoch')
  axes[0, 0].set(ylabel='accuracy (%)', ylim=(0, 101))
  axes[0, 0].legend(loc='lower right')
  handles = [axes[0, 1].plot([], [], style, color='.3')[0]
             for style in ('-', '--')]
  axes[0, 1].legend(handles, ['right labels', 'wrong labels'])
  return figure


def draw_classes(cells: dict[grids.Place, list[training.Result]], names):
  """The figure by class: a panel for each method and noise.

  Args:
    cells: the finished results by (method, noise); none may be empty.
    names: of the classes.
  """
  figure, axes = figures.panels(
      1, len(cells), width=3., sharex=True, sharey=True)
  for panel, ((method, noise), results) in zip(axes[0], cells.items()):
    panel.set(title=f'{method}, {noise}', xlabel='epoch')
    epochs = np.arange(1, 1 + len(results[0].history[VALIDATION]))
    panel.plot(epochs, curve(results, VALIDATION), color='black',
               label='validation (clean)')
    classes = moved(results[0])
    for label, colour in zip(classes, itertools.cycle(figures.COLOURS)):
      panel.plot([], [], color=colour, label=names[label])
      for name, style in (
          (evaluation.CLEAN_PART, '-'), (evaluation.MISLABELLED, '--')):
        panel.plot(
            epochs, curve(results, evaluation.of_class(name, label)), style,
            color=colour)
    for result in results:
      if result.chosen and result.chosen['epoch'] < len(epochs):
        panel.axvline(result.chosen['epoch'], color='.5', linestyle=':')
  axes[0, 0].set(ylabel='accuracy (%)', ylim=(0, 101))
  handles, labels = axes[0, 0].get_legend_handles_labels()
  for style, label in (('-', 'right labels'), ('--', 'wrong labels'),
                       (':', 'chosen by --stop')):
    handles += axes[0, 0].plot([], [], style, color='.5')
    labels.append(label)
  figure.legend(handles, labels, loc='outside right center')
  return figure


def moved(result: training.Result) -> list[int]:
  """The classes that the history of a run has apart."""
  begin = evaluation.of_class(evaluation.MISLABELLED, '')
  return [int(name.removeprefix(begin)) for name in result.history
          if name.startswith(begin)]


def main(argv):
  del argv
  app.check_dataset(grids.SYNTHETIC_DATASETS)
  base = app.base_run()
  by_class = FLAGS.by_class
  noises = app.noises(grids.ASYMMETRIC if by_class else grids.EVOLUTION_NOISES)
  if 'none' in noises:
    raise app.BadFlagError('--noise: without noise no label is wrong.')
  if by_class and not all(noise.startswith('asym') for noise in noises):
    raise app.BadFlagError('--by_class is for asymmetric --noise.')
  cells = grids.seeded(
      app.choose(base, app.methods(grids.EVOLUTION_METHODS), noises),
      app.seeds())
  results = app.train(grids.flat(cells))
  done = {place: figures.finished(results.get(run.key) for run in runs)
          for place, runs in cells.items()}
  parts = 'right and wrong labels'
  draw_done, name = lambda: draw(done), 'accuracy_evolution'
  if by_class:
    if not all(map(moved, sum(done.values(), []))):
      raise app.BadFlagError(
          '--by_class: some runs do not have classes apart, as their data set '
          'has too many or their code is older; --retrain makes them anew.')
    names = data.traits(base.dataset).class_names
    draw_done, name = lambda: draw_classes(done, names), 'class_evolution'
    parts += ' of each class that the noise moves'
  figures.publish(draw_done, FLAGS.output_dir, figures.Record(
      name=f'{name}-{base.dataset}',
      title=f'Accuracy over training on {base.dataset}',
      caption=(
          'Accuracy on clean validation labels, and on the given training '
          f'labels for {parts} apart, under {" and ".join(noises)}. '
          f'n = {FLAGS.seeds}.'),
      runs=tuple(run.key for run in grids.flat(cells))))
  return app.exit_status(results)


if __name__ == '__main__':
  app.start(main, dataset='digits')

"""Figure 3: two moons and circles, cross entropy against LN.

    python -m experiments.toy_datasets
    python -m experiments.toy_datasets --literal

Four networks on 200 points each (a tenth of them to validate), with 20 percent
of the labels flipped; the colour is the probability of the class of the blue
triangles, points with a black edge are mislabelled.

The paper gives neither the sizes nor the noise. Here: feature noise 0.2, two
layers of 256 units, Adam at 1e-3, full batch, 2000 epochs, LN with tau = 1 and
lambda = 0.5. `--literal` is the recipe that the paper prints: two layers of
2000 units, gradient descent at 1e-4. It does not show what the paper's figure
shows: on two moons the loss of CE moves from 0.693 to 0.681 in 2000 steps (67
percent of the labels fitted, 83 percent on test), and LN, from 54 to -7.4, is
still at 50 percent on test, as good as a constant.

Time: a minute or two on two cores; --literal half an hour.
Expected: CE fits nearly all labels, wrong ones included, with islands around
them; LN has a smooth boundary, leaves most wrong labels unfitted and is more
accurate on test points by several percent.
"""

from __future__ import annotations

import dataclasses

from absl import flags
from etils import epy
import numpy as np

from experiments import data
from experiments import methods
from experiments import training
from experiments.cli import app
from experiments.output import figures
from experiments.paper import grids

with epy.lazy_imports():
  from matplotlib import colors

FLAGS = flags.FLAGS
flags.DEFINE_bool(
    'literal', False,
    "The paper's printed recipe: two layers of 2000 units, gradient descent at "
    '1e-4. Too slow to show anything.')

METHODS = {'CE': {}, 'LN': {'temperature': 1., 'min_scale': .5}}
_LITERAL = dict(model_arguments={'widths': (2000, 2000)}, optimizer='gd',
                learning_rate=1e-4)
_RESOLUTION = 150


def literal(run: training.Run) -> training.Run:
  """The run by the recipe that the paper prints (Appendix C)."""
  return dataclasses.replace(run, **_LITERAL)


def surface(
    result: training.Result, source: data.Source, *,
    output_dir: str) -> dict[str, np.ndarray]:
  """The probability of class 1 on a grid around the training points."""
  points = source.train.inputs
  low, high = points.min(axis=0) - .3, points.max(axis=0) + .3
  x, y = (np.linspace(low[i], high[i], _RESOLUTION) for i in range(2))
  grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
  run = training.Run.from_dict(result.run)
  outputs = training.load_model(result, output_dir)(
      source.preprocessing.normalise(grid.astype(np.float32)), training=False)
  probabilities = run.resolve_method().probabilities(outputs, num_classes=2)
  return {'x': x, 'y': y, 'probability': np.float16(
      probabilities[:, 1]).reshape(_RESOLUTION, _RESOLUTION)}


def draw(results: list[training.Result], output_dir: str):
  """The figure: one panel for each result."""
  figure, axes = figures.panels(1, len(results), width=2.3, height=2.6)
  for ax, result in zip(axes[0], results):
    source = data.load(result.run['dataset'])
    probabilities = figures.measured(
        surface, result, source, output_dir=output_dir)
    _draw_panel(ax, result, source, probabilities)
  return figure


def _draw_panel(ax, result, source, measured):
  grid = (measured['x'], measured['y'], measured['probability'].astype(float))
  ax.contourf(*grid, levels=np.linspace(0., 1., 11), cmap='RdBu', alpha=.6)
  ax.contour(*grid, levels=[.5], colors='k', linewidths=.8)
  run = training.Run.from_dict(result.run)
  train = training.load_splits(run, source=source).train
  shades = colors.ListedColormap(['#b2182b', '#2166ac'])
  for label, marker in ((0, 'o'), (1, '^')):
    chosen = train.given == label
    wrong = train.is_noisy[chosen]
    ax.scatter(
        *train.inputs[chosen].T, s=14, marker=marker, c=[shades(label)],
        linewidths=np.where(wrong, .9, .4),
        edgecolors=np.where(wrong, 'black', 'white'))
  accuracy = 100. * result.metrics['test_accuracy']
  name = run.dataset.replace('_', ' ')
  ax.set(title=f'{name}, {run.method}\n{accuracy:.1f} % on test', xticks=[],
         yticks=[])
  ax.grid(visible=False)


def main(argv):
  del argv
  app.refuse('methods', 'search', 'seeds')
  app.check_dataset(grids.TOY_DATASETS)
  noise = app.single_noise(grids.TOY_NOISE)
  bases = [app.base_run(dataset) for dataset in grids.TOY_DATASETS]
  if FLAGS.literal:
    bases = [literal(base) for base in bases]
  runs = [
      app.with_method(
          dataclasses.replace(base, noise=noise), methods.get(name, **values))
      for base in bases for name, values in METHODS.items()]
  results = app.train(
      runs, need_weights=figures.unmeasured(surface, FLAGS.output_dir))
  done = figures.finished(results.get(run.key) for run in runs)
  for result in done:
    print(f"{result.run['dataset']}, {result.run['method']}: "
          f"{100 * result.metrics['test_accuracy']:.1f} % on test, fits "
          f"{100 * result.metrics['train_accuracy_given']:.1f} % of the labels")
  figures.measure_in_workers(
      'experiments.toy_datasets:surface', done, splits=False,
      output_dir=FLAGS.output_dir, data_dir=FLAGS.data_dir)
  draw_them = lambda: draw(done, FLAGS.output_dir)
  figures.publish(draw_them, FLAGS.output_dir, figures.Record(
      name='toy_datasets' + ('_literal' if FLAGS.literal else ''),
      title='Two moons and circles',
      caption=(
          'Probability of the class of the blue triangles; points with a '
          'black edge are mislabelled. From left to right: two moons with CE '
          'and LN, circles with CE and LN.'),
      runs=tuple(run.key for run in runs)))
  return app.exit_status(results)


if __name__ == '__main__':
  app.start(main, dataset='two_moons')

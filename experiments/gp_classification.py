"""Classification in closed form, which the paper leaves for future work.

    python -m experiments.gp_classification
    python -m experiments.gp_classification --seeds=5 --data_dir=DIR
        --problems=digits,mnist_3000,cifar10_features

The Logistic-Normal process against scikit-learn's Gaussian process (Laplace's
approximation), logistic regression and a kernel SVM, trained on noisy labels:
clean test accuracy, negative log-likelihood, calibration error and CPU seconds
of training and tuning. How the others are tuned says
`experiments.classical.contestants`. Measurements are kept in
OUTPUT_DIR/gp_classification; what is there is not measured again.

Problems: iris, wine, breast_cancer and digits (default), mnist_3000 and
mnist_10000, and cifar10_features (5,000 rows, see experiments.embed).
Time: the default with one seed five minutes on two cores.
Expected: the process is the most accurate in most cells and has the lowest NLL
in nearly all, and mostly is the best calibrated; the SVM or scikit-learn's
Gaussian process is more accurate in the others. `summary.md` names the cells.
"""

from __future__ import annotations

import csv
import io
import itertools
import pathlib
import statistics
import sys
import time

from absl import flags
from etils import epy

from experiments.cli import app
from experiments.cli import console
from experiments.cli import recipes
from experiments.output import figures
from experiments.output import render
from experiments.output import tables
from experiments.sweep import csv_files

with epy.lazy_imports():
  from experiments.classical import contestants
  from experiments.classical import problems
  from experiments.training import evaluation

FLAGS = flags.FLAGS
NOISES = ('none', 'sym:0.2', 'sym:0.4', 'asym:0.2', 'asym:0.4')
METRICS = {
    'accuracy': ('Test accuracy (%)', 1, False),
    'nll': ('Test NLL', 3, True),
    'ece': ('Test calibration error (%)', 1, True),
    'seconds': ('CPU seconds of training and tuning', 2, True),
}
# Rows for which time is measured, too.
_TIMED, SIZES = 'digits', (100, 200, 400, 800)
_FOLDER = 'gp_classification'
_MEASUREMENTS = f'{_FOLDER}/measurements.csv'
_FIELDS = ('problem', 'noise', 'seed', 'method', 'rows', *METRICS)
_KEYS = _FIELDS[:4]

flags.DEFINE_list(
    'problems', ['iris', 'wine', 'breast_cancer', 'digits'],
    'Problems, separated by commas.')


def measure(problem: problems.Problem, method: str, seed: int) -> dict:
  """What one classifier makes of one problem."""
  begin = time.process_time()
  classifier = contestants.CONTESTANTS[method](problem, seed)
  seconds = time.process_time() - begin
  predicted = contestants.probabilities(
      classifier, problem.test_x, problem.num_classes)
  return {
      'rows': len(problem.x),
      'accuracy': 100. * float((predicted.argmax(1) == problem.test_y).mean()),
      'nll': evaluation.negative_log_likelihood(predicted, problem.test_y),
      'ece': 100. * evaluation.expected_calibration_error(
          predicted, problem.test_y),
      'seconds': seconds}


def read(output_dir: str) -> dict[tuple, dict]:
  """The measurements there are, by (problem, noise, seed, method)."""
  file = pathlib.Path(output_dir) / _MEASUREMENTS
  if not file.exists():
    return {}
  with recipes.naming('output_dir'):
    return {tuple(line[key] for key in _KEYS): {
        name: float(line[name]) for name in ('rows', *METRICS)}
            for line in csv_files.lines(file, _FIELDS)}


def write(found: dict[tuple, dict]) -> None:
  """Writes the measurements."""
  stream = io.StringIO()
  writer = csv.DictWriter(stream, _FIELDS, lineterminator='\n')
  writer.writeheader()
  for place, entry in found.items():
    writer.writerow(dict(zip(_KEYS, place)) | {
        name: f'{value:.6g}' for name, value in entry.items()})
  app.write(_MEASUREMENTS, stream.getvalue(), _KEYS)


def measure_all(names, noises, seeds) -> None:
  """Measures and writes; what was measured before is not measured again."""
  found = read(FLAGS.output_dir)
  asked = [(seed, name, noise, None) for seed, name, noise
           in itertools.product(seeds, names, noises)]
  if _TIMED in names:
    asked += [(seed, _TIMED, 'none', size) for seed, size
              in itertools.product(seeds, SIZES)]
  for seed, name, noise, size in asked:
    title = name if size is None else f'{name}: {size} rows'
    problem = None
    for method in contestants.CONTESTANTS:
      place = title, noise, str(seed), method
      if place in found or not contestants.is_feasible(method, name):
        continue
      problem = problem or problems.load(
          name, noise, seed, FLAGS.data_dir).first(size)
      print(*place, file=sys.stderr)
      found[place] = measure(problem, method, seed)
      write(found)


def make_table(found, problem, noises, metric) -> tables.Table:
  """One metric on one problem: methods against noises."""
  title, digits, lower = METRICS[metric]
  cells, sizes = {}, set()
  for method, noise in itertools.product(contestants.CONTESTANTS, noises):
    chosen = {place: entry for place, entry in found.items()
              if place[:2] == (problem, noise) and place[3] == method}
    sizes |= {round(entry['rows']) for entry in chosen.values()}
    cells[method, noise] = tables.Cell(
        tuple(entry[metric] for entry in chosen.values()),
        tuple(map('/'.join, chosen)))
  counts = sorted({len(cell.values) for cell in cells.values() if cell.values})
  return tables.Table(
      f'{title}, {problem}', list(contestants.CONTESTANTS),
      [tables.noise_column(noise) for noise in noises], cells, digits=digits,
      lower_is_better=lower, notes=[
          f'n = {" or ".join(map(str, counts))} seeds (mean and standard '
          f'deviation), {" or ".join(map(str, sorted(sizes)))} training rows.'])


def write_tables(found, names, noises) -> None:
  """Prints the tables and writes them, one file for each metric."""
  for metric in METRICS:
    made = [make_table(found, name, noises, metric) for name in names]
    for table in made:
      print(render.to_text(table), end='\n\n')
    for suffix, form in (('md', render.to_markdown), ('tex', render.to_latex)):
      app.write(f'{_FOLDER}/{metric}.{suffix}', '\n'.join(map(form, made)))
  app.write(f'{_FOLDER}/summary.md', summarize(found, names, noises))


def summarize(found, names, noises) -> str:
  """Means of all metrics in two Markdown tables, as docs/process.md has them.

  The first has accuracy / NLL / calibration error, the most accurate in bold;
  the second seconds, over all noises.
  """
  methods = list(contestants.CONTESTANTS)
  lines = [f'| problem, rows | noise | n | {" | ".join(methods)} |',
           '|---' * (3 + len(methods)) + '|']
  seconds = [f'| problem, rows | {" | ".join(methods)} |',
             '|---' * (1 + len(methods)) + '|']
  behind, less_likely = [], []
  for name in names:
    made = {metric: make_table(found, name, noises, metric).cells
            for metric in METRICS}
    rows = max(round(entry['rows']) for place, entry in found.items()
               if place[0] == name)
    title = f'{name}, {rows:,}'
    for noise in noises:
      cells = [[made[metric][method, noise] for metric in (
          'accuracy', 'nll', 'ece')] for method in methods]
      means = [round(each[0].mean or 0., 6) for each in cells]
      best = max(means)
      count = max(len(each[0].values) for each in cells)
      if means[0] < best:
        behind.append(f'{name} {noise} ({best - means[0]:.1f})')
      excess = (cells[0][1].mean or 0.) - min(
          (each[1].mean for each in cells if each[1].values), default=0.)
      if excess > 0.:
        less_likely.append(f'{name} {noise} ({excess:.2g})')
      texts = []
      for mean, (accuracy, nll, ece) in zip(means, cells):
        text = '' if not accuracy.values else (
            f'{accuracy.mean:.1f} / {nll.mean:.2f} / {ece.mean:.1f}')
        text = f'**{text}**' if text and mean == best else text
        if text and len(accuracy.values) < count:
          text += f' (n = {len(accuracy.values)})'
        texts.append(text)
      lines.append(f'| {title} | {noise} | {count} | {" | ".join(texts)} |')
    taken = [[value for noise in noises
              for value in made['seconds'][method, noise].values]
             for method in methods]
    texts = [f'{statistics.fmean(each):.2g}' if each else '' for each in taken]
    seconds.append(f'| {title} | {" | ".join(texts)} |')
  size = len(names) * len(noises)
  return '\n'.join([
      f'The process is the most accurate in {size - len(behind)} of {size} '
      f'cells and has the lowest NLL in {size - len(less_likely)}. It is less '
      'accurate than the best, by percentage points, in '
      f'{", ".join(behind) or "none"}. Its NLL is higher than the lowest, by '
      f'nats, in {", ".join(less_likely) or "none"}.', '',
      'Accuracy (%) / NLL / calibration error (%) on clean test rows, means '
      'over n seeds:', '', *lines, '',
      'CPU seconds of training and tuning, means over all noises:', '',
      *seconds, ''])


def draw(found, names, noises):
  """Accuracy against noise, a panel for each problem."""
  columns = min(4, len(names))
  figure, axes = figures.panels(
      -(-len(names) // columns), columns, width=2.3, height=2.6)
  for ax in axes.flat[len(names):]:
    ax.set_axis_off()
  for ax, name in zip(axes.flat, names):
    table = make_table(found, name, noises, 'accuracy')
    for method in table.rows:
      cells = [table.cells[method, noise] for noise in noises]
      shown = [i for i, cell in enumerate(cells) if cell.values]
      ax.errorbar(
          shown, [cells[i].mean for i in shown],
          [cells[i].std or 0. for i in shown], marker='o', ms=3, capsize=2,
          label=method)
    ax.set_xticks(range(len(noises)), noises, rotation=60)
    ax.set(title=name)
  for ax in axes[:, 0]:
    ax.set(ylabel='test accuracy (%)')
  axes[0, 0].legend()
  return figure


def draw_time(found):
  """Seconds against the number of rows."""
  figure, axes = figures.panels(1, 1, width=3.6, height=2.8)
  ax = axes[0, 0]
  for method in contestants.CONTESTANTS:
    points = {}
    for (title, noise, _, name), entry in found.items():
      if title.startswith(_TIMED) and noise == 'none' and name == method:
        points.setdefault(round(entry['rows']), []).append(entry['seconds'])
    sizes = sorted(points)
    ax.plot(sizes, [statistics.fmean(points[size]) for size in sizes],
            marker='o', ms=3, label=method)
  ax.set(xscale='log', yscale='log', xlabel='training rows',
         ylabel='CPU seconds', title=_TIMED)
  ax.legend()
  return figure


def publish(found, names, noises) -> None:
  """Writes tables and figures."""
  write_tables(found, names, noises)
  gains = {
      name: statistics.fmean(
          table.cells['LN process', noise].mean - max(
              table.cells[method, noise].mean or 0.
              for method in table.rows[1:]) for noise in noises)
      for name in names
      for table in [make_table(found, name, noises, 'accuracy')]}
  figures.publish(
      lambda: draw(found, names, noises), FLAGS.output_dir,
      figures.Record(
          name='gp_classification',
          title='Classification in closed form, trained on noisy labels',
          caption='Clean test accuracy against the noise of the training '
          'labels; bars are standard deviations over seeds.',
          numbers={f'accuracy above the best other, {name}': gain
                   for name, gain in gains.items()}))
  if _TIMED in names:
    figures.publish(
        lambda: draw_time(found), FLAGS.output_dir, figures.Record(
            name='gp_time', title='Time of classifiers against rows',
            caption='CPU seconds of training and tuning on digits without '
            'noise, mean over seeds.'))


def main(argv):
  del argv
  app.refuse('methods', 'search', 'dataset', 'hyperparameters')
  noises = app.noises(NOISES)
  with console.quiet_startup():  # of TensorFlow
    known = problems.NAMES
  for name in FLAGS.problems:
    if name not in known:
      raise app.BadFlagError(
          f'--problems: must be of {", ".join(known)}. Received: {name}')
  measure_all(FLAGS.problems, noises, app.seeds())
  publish(read(FLAGS.output_dir), FLAGS.problems, noises)  # as it is rounded


if __name__ == '__main__':
  app.start(main, computes=True)

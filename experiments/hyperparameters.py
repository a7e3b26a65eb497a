"""The search for hyperparameters: every point of the paper's grids.

    python -m experiments.hyperparameters
    python -m experiments.hyperparameters --dataset=digits --noise=sym:0.4
    python -m experiments.hyperparameters --grid=ratio --methods=LN

One seed a point; the winner has the highest accuracy on the noisy validation
set at the end of training, of equal ones that with the best mean over the last
ten epochs. The paper's winners stand below ours. The winners
are also written to OUTPUT_DIR/tuned/DATASET.csv, in the form of the files in
experiments/paper/tuned; the CSV file of the table has all points.

--grid=ratio searches LN over lambda / tau and tau, nine points as well. The
other programs take the winners that they find in OUTPUT_DIR/tuned before those
of the repository: a directory of its own keeps the two searches apart.

Data sets: all of synthetic_noise and natural_noise (default: digits).
Noise: by default the whole table of the data set: none, three symmetric and
three asymmetric rates, or all label sets where there are human labels.
Time: digits about 20 minutes on two idle cores (308 runs).
Expected: on digits with sym:0.4, GCE wins with q = 0.9 and LN with tau = 0.5,
lambda = 0.5.
"""

import csv
import dataclasses
import io
import itertools
import pathlib

from absl import flags

from experiments.cli import app
from experiments.cli import pairs
from experiments.output import tables
from experiments.paper import grids
from experiments.paper import tuned
from experiments.sweep import csv_files

flags.DEFINE_enum(
    'grid', 'paper', ['paper', 'ratio'],
    "The points of the search: the paper's, or for LN lambda / tau and tau.")


@dataclasses.dataclass(frozen=True)
class Winner(tables.Cell):
  """A cell of words: the winner with its validation accuracy."""
  text: str = tables.MISSING
  paper_text: str = ''

  def numbers(self, digits, sign='±'):
    del digits, sign
    return self.text

  def paper(self, digits, sign='±'):
    del digits, sign
    return self.paper_text


def bracket(values):
  """Values as the paper prints them: 0.5, or [0.5, 1]."""
  texts = [value if isinstance(value, str) else f'{value:g}'
           for value in values] or ['']
  return texts[0] if len(texts) == 1 else f'[{", ".join(texts)}]'


def make_winner(place, points, winner, results, dataset):
  """The cell of one method and noise."""
  paper = tuned.printed().get((dataset, *place), {})
  keys = tuple(run.key for run in points)
  paper_text = bracket(paper.values()) if paper else ''
  if winner is None:
    return Winner(keys=keys, paper_text=paper_text)
  accuracy = results[winner.key].metrics['validation_accuracy_noisy']
  values = bracket(tuned.searched(winner, points).values())
  return Winner(
      keys=keys, text=f'{values}  {100 * accuracy:.2f}', paper_text=paper_text)


def earlier_winners(dataset, there):
  """The winners of earlier searches in the directory, but for those places."""
  file = pathlib.Path(app.FLAGS.output_dir) / 'tuned' / f'{dataset}.csv'
  if not file.is_file():
    return {}
  lines = {(line['method'], line['noise']): line
           for line in csv_files.lines(file) if line['dataset'] == dataset}
  return {
      place: Winner(
          text=f"{bracket(pairs.parse(line['hyperparameters']).values())}  "
               f"{line['validation_accuracy']}",
          paper_text=bracket(
              tuned.printed().get((dataset, *place), {}).values()) or '')
      for place, line in lines.items() if place not in there}


def noises_of(dataset):
  """The kinds of noise of the whole table of a data set."""
  return grids.NATURAL_NOISES.get(dataset, grids.SYNTHETIC_NOISES)


def ordered(names, usual):
  """Names, each once, in the usual order, whatever the calls were."""
  place = {name: index for index, name in enumerate(usual)}
  return sorted(
      dict.fromkeys(names), key=lambda name: place.get(name, len(place)))


def extend(table, winners, dataset):
  """The table with the cells of other methods and noises beside its own."""
  known = {column.key: column for column in table.columns}
  rows = ordered([*table.rows, *(row for row, _ in winners)], grids.SEARCHED)
  columns = ordered([*known, *(noise for _, noise in winners)],
                    noises_of(dataset))
  cells = {place: Winner() for place in itertools.product(rows, columns)}
  return dataclasses.replace(
      table, rows=rows, cells=cells | dict(table.cells) | winners,
      columns=[known.get(noise) or tables.noise_column(noise, dataset)
               for noise in columns])


def points_csv(points, results):
  """All points of the search, one a line."""
  stream = io.StringIO()
  writer = csv.writer(stream, lineterminator='\n')
  writer.writerow(['dataset', 'method', 'noise', 'hyperparameters', 'status',
                   'validation_accuracy', 'test_accuracy', 'run'])
  for (method, noise), runs in points.items():
    for run in runs:
      result = results.get(run.key)
      metrics = result.metrics if result else {}
      writer.writerow([
          run.dataset, method, noise, pairs.write(tuned.searched(run, runs)),
          result.status if result else tables.MISSING,
          *(f'{100 * metrics[name]:.2f}' if name in metrics else ''
            for name in ('validation_accuracy_noisy', 'test_accuracy')),
          run.key])
  return stream.getvalue()


def main(argv):
  del argv
  app.refuse('search', 'seeds')
  app.check_dataset((*grids.SYNTHETIC_DATASETS, *grids.NATURAL_NOISES))
  base = app.base_run()
  noises = app.noises(noises_of(base.dataset))
  methods = app.methods(grids.SEARCHED)
  points = {(method, noise): app.search_points(
                base, method, noise, app.FLAGS.grid)
            for method in methods for noise in noises}
  results = app.train(grids.flat(points), grids.serves_calibration)
  winners = tuned.winners(points, results)
  cells = {
      place: make_winner(
          place, runs, winners.get(place), results, base.dataset)
      for place, runs in points.items()}
  table = tables.Table(
      f'Winners of the search on {base.dataset}, with their accuracy (%) on '
      'the noisy validation set', methods,
      [tables.noise_column(noise, base.dataset) for noise in noises], cells,
      notes=[
          'Het-tau: tau; Het-tau-Sigma: [tau, R]; NAN: sigma; GCE: q; LS: t; '
          'LN: [tau, lambda]. One seed.',
          *app.notes(base, ())])
  app.show(table, f'hyperparameters-{base.dataset}',
           text=points_csv(points, results),
           keys=('dataset', 'method', 'noise', 'hyperparameters'),
           whole=extend(
               table, earlier_winners(base.dataset, cells), base.dataset))
  file = app.write_winners(points, results, base.dataset)
  print(f'Winners in the form of experiments/paper/tuned: {file}.')
  return app.exit_status(results)


if __name__ == '__main__':
  app.start(main, dataset='digits')

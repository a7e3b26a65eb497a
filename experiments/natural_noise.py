"""Natural label noise: the paper's table of human labels and web captions.

    python -m experiments.natural_noise
    python -m experiments.natural_noise --dataset=cifar10n --seeds=5

Nine methods on all label sets of a data set; test accuracy at the end of
training.

Data sets: digits_n (default; digits with five sets of labels of simulated
annotators), cifar10n (five sets), cifar100n, their features (cifar10n_features,
cifar100n_features, see embed), clothing1m.
Time: digits_n about four minutes on two cores (45 runs, one seed); the others
need GPUs.
Expected: on digits_n (five seeds) LN is not significantly worse than the best
method for any label set; 85.59 against 81.29 for CE on "random3", 69.62
against 63.82 on "worst". In the paper 74.31 against 59.01 on CIFAR-10N worst.
"""

from experiments.cli import app
from experiments.output import tables
from experiments.paper import grids
from experiments.paper import published


def main(argv):
  del argv
  app.check_dataset(grids.NATURAL_NOISES)
  base = app.base_run()
  methods = app.methods()
  noises = app.noises(grids.NATURAL_NOISES[base.dataset])
  suffix, value = app.shown()
  chosen = app.choose(base, methods, noises)
  cells = grids.seeded(chosen, app.seeds())
  results = app.train(grids.flat(cells))
  columns = [tables.noise_column(noise, base.dataset) for noise in noises]
  table = tables.build(
      f'Test accuracy (%) on {base.dataset} with natural label noise',
      methods, columns, cells, results,
      notes=app.notes(base, grids.flat(cells)),
      value=value, published=published.cells('natural_noise', base.dataset))
  app.show(table, f'natural_noise{suffix}-{base.dataset}')
  return app.exit_status(results)


if __name__ == '__main__':
  app.start(main, dataset='digits_n')

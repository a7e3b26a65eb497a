"""Calibration on the training set, measured with three human annotators.

    python -m experiments.calibration
    python -m experiments.calibration --dataset=cifar10n --seeds=5

Networks trained on clean labels (the runs without noise of the synthetic-noise
table, none is trained twice); the negative log-likelihood of the labels of
three annotators, averaged over them and over the training examples. LN's is
over K + 1 classes, as in the paper. Lower is better.

Data sets: digits_n (default), cifar10n.
Time: digits_n half a minute on two cores (5 runs, one seed); cifar10n needs
GPUs.
Expected: LN has the lowest NLL, on digits_n (five seeds) 1.30 against 2.24 for
CE; in the paper 1.18 against 1.60.
"""

import dataclasses
import json
import pathlib

import numpy as np

from experiments import data
from experiments import training
from experiments.cli import app
from experiments.output import tables
from experiments.paper import grids
from experiments.paper import published
from experiments.sweep import launch
from experiments.training import evaluation


def measurement(run):
  """The file with the measurement of a run."""
  return pathlib.Path(
      app.FLAGS.output_dir) / 'calibration' / f'{run.key}.json'


def measure(run, result, source):
  """Measures a network and keeps the numbers beside the results."""
  file = measurement(run)
  if file.exists():
    return json.loads(file.read_text(encoding='utf-8'))
  # What the network was trained on: the images are those of the clean set.
  trained = training.load_splits(
      run, source=dataclasses.replace(source, name=run.dataset)).train
  examples = source.train.subset(np.isin(source.train.ids, trained.ids))
  probabilities = predict(run, result, examples, source)
  nll = {
      name: evaluation.negative_log_likelihood(
          probabilities, examples.label_sets[name])
      for name in grids.ANNOTATORS}
  document = {'key': run.key, 'annotators': source.name, 'nll': nll,
              'mean': float(np.mean(list(nll.values())))}
  app.write(f'calibration/{run.key}.json', json.dumps(document) + '\n')
  return document


def predict(run, result, examples, source):
  """Probabilities of the trained network, LN's with its dummy class."""
  model = training.load_model(result, app.FLAGS.output_dir)
  method = run.resolve_method()
  batches = data.Batches(
      examples, batch_size=1000, preprocessing=source.preprocessing)
  return np.concatenate([
      method.probabilities(
          model(batch.inputs, training=False), seed=run.seed,
          num_classes=source.num_classes, dummy_class=True)
      for batch in batches.epoch(0)])


def main(argv):
  del argv
  app.refuse('noise')
  app.check_dataset(grids.CALIBRATION_DATASETS)
  dataset = app.FLAGS.dataset
  methods = app.methods(grids.CALIBRATION_METHODS)
  base = app.base_run(grids.CALIBRATION_DATASETS[dataset])
  chosen = app.choose(base, methods, ['none'])
  cells = grids.seeded(chosen, app.seeds())
  results = app.train(
      grids.flat(cells), need_weights=lambda run: not measurement(run).exists())
  source = launch.load(dataset)
  measured = {
      run.key: measure(run, results[run.key], source)['mean']
      for run in grids.flat(cells)
      if run.key in results and results[run.key].status == 'finished'}
  table = tables.build(
      f'NLL of three annotators on the training set of {dataset}', methods,
      [tables.Column('none', 'NLL')], cells, results,
      value=lambda result: measured[result.key], lower_is_better=True,
      notes=app.notes(base, grids.flat(cells)),
      published=published.cells('calibration', dataset))
  app.show(table, f'calibration-{dataset}')
  return app.exit_status(results)


if __name__ == '__main__':
  app.start(main, dataset='digits_n')

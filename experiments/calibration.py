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
Expected: LN has the lowest NLL, on digits_n (five seeds) 1.31 against 2.24 for
CE; in the paper 1.18 against 1.60.
"""

import dataclasses
import json
import pathlib

from etils import epy
import numpy as np

from experiments import data
from experiments import training
from experiments.cli import app
from experiments.cli import recipes
from experiments.output import evidence
from experiments.output import measurements
from experiments.output import tables
from experiments.paper import grids
from experiments.paper import published
from experiments.sweep import launch
from experiments.sweep import store
from experiments.training import evaluation

with epy.lazy_imports():  # flags are parsed before TensorFlow is imported
  from ln_tfp import files


def measurement(key, output_dir):
  """The file with the measurement of a run."""
  return pathlib.Path(output_dir) / 'calibration' / f'{key}.json'


def measure(key, dataset, output_dir, data_dir):
  """Measures a network and keeps the numbers beside the results.

  A worker does, see `launch.measure`.
  """
  result = store.Store(output_dir).find(key)
  run = training.Run.from_dict(result.run)
  source = data.load(dataset, data_dir)
  # What the network was trained on: the images are those of the clean set.
  trained = training.load_splits(
      run, source=dataclasses.replace(source, name=run.dataset)).train
  examples = source.train.subset(np.isin(source.train.ids, trained.ids))
  probabilities = predict(run, result, examples, source, output_dir)
  nll = {
      name: evaluation.negative_log_likelihood(
          probabilities, examples.label_sets[name])
      for name in grids.ANNOTATORS}
  document = {'key': key, 'annotators': source.name, 'nll': nll,
              'mean': float(np.mean(list(nll.values()))),
              measurements.CODE: result.code}
  files.write_atomically(
      measurement(key, output_dir), (json.dumps(document) + '\n').encode())


def predict(run, result, examples, source, output_dir):
  """Probabilities of the trained network, LN's with its dummy class."""
  model = training.load_model(result, output_dir)
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
  is_missing = measurements.Missing(
      app.FLAGS.output_dir,
      lambda key: measurement(key, app.FLAGS.output_dir),
      measurements.code_in_json)
  results = app.train(grids.flat(cells), need_weights=is_missing)
  done = [run for run in grids.flat(cells)
          if run.key in results and results[run.key].status == 'finished']
  launch.load(dataset)  # fetched once, before the workers need it
  launch.measure('experiments.calibration:measure', [
      {'key': run.key, 'dataset': dataset, 'output_dir': app.FLAGS.output_dir,
       'data_dir': app.FLAGS.data_dir} for run in done if is_missing(run)])
  with recipes.naming('output_dir'):
    measured = {
        run.key: evidence.measured_mean(
            measurement(run.key, app.FLAGS.output_dir)) for run in done}
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

"""Figure 5: how LN's accuracy depends on tau and lambda.

    python -m experiments.sensitivity
    python -m experiments.sensitivity --dataset=cifar10 --seeds=5

Test accuracy at the end of training against the temperature tau, a line for
each lambda, under symmetric noise of 40 percent; with several --seeds the mean
with its standard deviation.

Data sets: digits (default), mnist, fashion_mnist, cifar10, cifar100. The
paper's figure is of cifar10.
Time: digits about two minutes on two cores (15 runs, 9 of them shared with
hyperparameters); cifar10 needs GPUs.
Expected: a small tau overfits to the noise whatever lambda; with a large tau
and a small lambda training is slow, as clean examples are attenuated, too.
"""

from __future__ import annotations

import dataclasses

from absl import flags

from experiments import methods
from experiments import training
from experiments.cli import app
from experiments.output import figures
from experiments.paper import grids

FLAGS = flags.FLAGS
flags.DEFINE_list(
    'temperatures', ['0.1', '0.25', '0.5', '1', '2'], 'Values of tau.')
flags.declare_key_flag('min_scales')


def cells(
    base: training.Run, temperatures: list[float], min_scales: list[float],
    seeds: range) -> figures.Cells:
  """The runs by (lambda, tau)."""
  return {
      (min_scale, temperature): [
          app.with_method(
              dataclasses.replace(base, seed=seed),
              methods.get(
                  'LN', temperature=temperature, min_scale=min_scale))
          for seed in seeds]
      for min_scale in min_scales for temperature in temperatures}


def main(argv):
  del argv
  app.refuse('methods', 'search')
  app.check_dataset(grids.SYNTHETIC_DATASETS)
  noise = app.single_noise(grids.SENSITIVITY_NOISE)
  base = dataclasses.replace(app.base_run(), noise=noise)
  runs = cells(base, figures.numbers('temperatures', FLAGS.temperatures),
               figures.numbers('min_scales', FLAGS.min_scales), app.seeds())
  results = app.train(grids.flat(runs))
  figures.publish(
      lambda: figures.draw_accuracy(runs, results, r'temperature $\tau$'),
      FLAGS.output_dir, figures.Record(
          name=f'sensitivity-{base.dataset}',
          title=f'Sensitivity to tau and lambda on {base.dataset}, {noise}',
          caption=(
              'Test accuracy at the end of training against tau, for several '
              f'lambda. n = {FLAGS.seeds}.'),
          runs=tuple(run.key for run in grids.flat(runs))))
  return app.exit_status(results)


if __name__ == '__main__':
  app.start(main, dataset='digits')

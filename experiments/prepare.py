"""Fetches a data set, through the network if need be, and checks it.

    python -m experiments.prepare --dataset=cifar10n --data_dir=DIR

The embedded data sets (two_moons, circles, digits, digits_n) are always there.
Clothing1M is not public: its licence has to be asked for, and the message says
where its files belong.

Time: MNIST and CIFAR some minutes.
Expected: one line with the numbers of examples.
"""

from experiments.cli import app
from experiments.sweep import launch


def main(argv):
  del argv
  if app.FLAGS.offline:
    raise app.BadFlagError('--offline: nothing can be fetched then.')
  source = launch.load(app.FLAGS.dataset)
  labels = ', '.join(source.train.label_sets) or 'none'
  print(f'{source.name}: {len(source.train)} training examples, '
        f'{len(source.test)} test examples, {source.num_classes} classes; '
        f'human labels: {labels}.')


if __name__ == '__main__':
  app.start(main)

"""Fetches a data set, through the network if need be, and checks it.

    python -m experiments.prepare --dataset=cifar10n --data_dir=DIR

The embedded data sets (two_moons, circles, digits, digits_n) are always there.
Clothing1M is not public: its licence has to be asked for, and the message says
where its files belong. Its network begins with ImageNet weights: prepare says
which file that is and where it belongs; --weights fetches it by
keras.applications.

Time: MNIST and CIFAR some minutes.
Expected: one line with the numbers of examples.
"""

from absl import flags

from experiments.cli import app
from experiments.models import resnet
from experiments.sweep import launch

flags.DEFINE_bool(
    'weights', False,
    "Fetch the pretrained weights of the recipe's network, where it has any.")


def prepare_weights(weights):
  """Says where the weights belong, and fetches them where that is asked for."""
  file = resnet.weights_file(weights)
  if app.FLAGS.weights and not file.is_file():
    try:
      resnet.fetch_weights()
    except Exception as error:  # of the network, the disk, ...
      raise app.BadFlagError(
          f'--weights: could not be fetched: {error}') from error
  print(f'Weights: {file} is there.' if file.is_file() else
        f'Weights: {file} is missing; copy it there, or fetch it by --weights.')


def main(argv):
  del argv
  if app.FLAGS.offline:
    raise app.BadFlagError('--offline: nothing can be fetched then.')
  weights = dict(app.base_run().model_arguments).get('weights')
  if weights is not None:
    prepare_weights(weights)
  source = launch.load(app.FLAGS.dataset)
  labels = ', '.join(source.train.label_sets) or 'none'
  print(f'{source.name}: {len(source.train)} training examples, '
        f'{len(source.test)} test examples, {source.num_classes} classes; '
        f'human labels: {labels}.')


if __name__ == '__main__':
  app.start(main)

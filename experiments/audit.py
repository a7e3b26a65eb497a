"""The audit of a data set of the laboratory, human labels included.

    python -m experiments.audit --dataset=cifar10n --noise=human:worst
        --data_dir=DIR [--output=audit] [...]

All other flags are those of `python -m ln_tfp.audit`, which does the work and
takes a user's own files.

Time: digits half a minute on two cores, CIFAR-10 by a small network an hour.
Expected: `--dataset=digits_n --noise=human:worst` finds about a third of the
wrong labels.
"""

import os
import sys

from experiments import data
from experiments.cli import console

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')  # a user's own wins
with console.quiet_startup():
  from ln_tfp import noise as noise_lib
  from ln_tfp.audit import __main__ as command
  from ln_tfp.audit import files


def load(name, noise, data_dir, seed) -> files.Dataset:
  """Returns the training split of a data set, with noise in its labels."""
  try:
    source = data.load(name, data_dir)
    train = source.train
    if train.inputs.ndim == 1:
      raise files.InputError(f'Data set {name} does not fit in memory.')
    noisy = noise_lib.corrupt(
        train.true, noise, seed, train.ids, num_classes=source.num_classes,
        mapping=data.traits(name).mapping, human_labels=train.label_sets)
  except (ValueError, data.MissingDataError) as error:
    raise files.InputError(error) from error
  return files.Dataset(train.inputs, noisy, train.ids, source.class_names,
                       train.true)


if __name__ == '__main__':
  sys.exit(command.main(load_named=load))

"""The examples of a run: what is trained on, validated on and tested on."""

import dataclasses
import os

from experiments import data
from experiments.training import runs
from ln_tfp import noise


def load_splits(
    run: runs.Run, *, source: data.Source | None = None,
    data_dir: str | os.PathLike | None = None) -> data.Source:
  """The examples of a run, a function of the run and its source alone.

  Labels are corrupted before the split, so that a label does not depend on
  the side its example falls on.

  Args:
    run: the run.
    source: the data set, if it is in memory already; None loads it by name.
    data_dir: where the data sets are.

  Returns:
    The data set with noise in the given labels of training and validation.
  """
  if source is None:
    source = data.load(run.dataset, data_dir=data_dir)
  elif source.name != run.dataset:
    raise ValueError(
        'Argument `source` must be the data set of the run. Received: '
        f'source.name={source.name!r}, run.dataset={run.dataset!r}.')
  options, traits = run.resolve_options(), data.traits(run.dataset)
  train = _corrupt(run, source.train, source.num_classes)
  if source.validation is not None:
    validation = _corrupt(run, source.validation, source.num_classes)
  else:
    sizes = traits.authors_sizes if options.split == 'authors' else None
    train, validation = data.split(train, sizes=sizes)
  preprocessing = source.preprocessing
  if preprocessing.pad:
    preprocessing = dataclasses.replace(preprocessing, pad=options.pad)
  return dataclasses.replace(
      source, train=train, validation=validation, preprocessing=preprocessing)


def _corrupt(
    run: runs.Run, examples: data.Examples,
    num_classes: int) -> data.Examples:
  options, traits = run.resolve_options(), data.traits(run.dataset)
  mapping = traits.mapping
  if options.truck:
    mapping = {**traits.mapping, **traits.mapping_of_code}
  return dataclasses.replace(examples, given=noise.corrupt(
      examples.true, run.noise, run.seed, examples.ids,
      num_classes=num_classes, mapping=mapping, mode=options.noise_mode,
      human_labels=examples.label_sets))

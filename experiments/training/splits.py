"""The examples of a run: what is trained on, validated on and tested on."""

import dataclasses
import os

import numpy as np

from experiments import data
from experiments.training import runs


@dataclasses.dataclass(frozen=True, eq=False)
class Split:
  """Examples with the labels that are given and those that are true.

  Attributes:
    images: as in `data.Examples`.
    given: the labels to train with or to select by; possibly wrong.
    true: the labels of the data set.
    ids: of the examples.
  """
  images: np.ndarray
  given: np.ndarray
  true: np.ndarray
  ids: np.ndarray

  def __len__(self) -> int:
    return len(self.given)

  @property
  def is_mislabelled(self) -> np.ndarray:
    """Which given labels are wrong."""
    return self.given != self.true


@dataclasses.dataclass(frozen=True, eq=False)
class Splits:
  """All examples of a run.

  Attributes:
    train: corrupted.
    validation: corrupted alike.
    test: never corrupted.
    num_classes: K.
    preprocessing: what happens to the pixels.
    noise: the realised 'rate' and 'transition_matrix'.
  """
  train: Split
  validation: Split
  test: Split
  num_classes: int
  preprocessing: data.Preprocessing
  noise: dict[str, object]

  @property
  def input_shape(self) -> tuple[int, ...]:
    """Of an example as the network sees it."""
    if self.train.images.ndim > 1:
      return self.train.images.shape[1:]
    return (self.preprocessing.crop, self.preprocessing.crop, 3)  # files


def load_splits(
    run: runs.Run, *, source: data.Source | None = None,
    data_dir: str | os.PathLike | None = None) -> Splits:
  """The examples of a run, a function of the run and its source alone.

  Labels are corrupted before the split, so that a label does not depend on
  the side its example falls on.

  Args:
    run: the run.
    source: the data set, if it is in memory already; None loads it by name.
    data_dir: where the data sets are.

  Returns:
    The `Splits`.
  """
  if source is None:
    source = data.load(run.dataset, data_dir=data_dir)
  elif source.name != run.dataset:
    raise ValueError(
        'Argument `source` must be the data set of the run. Received: '
        f'source.name={source.name!r}, run.dataset={run.dataset!r}.')
  options = run.resolve_options()
  noisy = _corrupt(run, source, source.train)
  everything = _split(source.train, noisy.labels)
  if source.validation is not None:
    train = everything
    validation = _split(
        source.validation,
        _corrupt(run, source, source.validation).labels)
  else:
    if options.split == 'authors':
      kept, held_out = data.authors_split(source.train.ids, source.name)
    else:
      held_out = data.validation_split(source.train.ids)
      kept = ~held_out
    train, validation = _take(everything, kept), _take(everything, held_out)
  preprocessing = source.preprocessing
  if preprocessing.pad:
    preprocessing = dataclasses.replace(preprocessing, pad=options.pad)
  return Splits(
      train, validation, _split(source.test, source.test.labels),
      source.num_classes, preprocessing,
      {'rate': noisy.rate,
       'transition_matrix': noisy.transition_matrix.tolist()})


def _corrupt(
    run: runs.Run, source: data.Source,
    examples: data.Examples) -> data.NoisyLabels:
  options = run.resolve_options()
  mapping = data.ASYMMETRIC_MAPPINGS.get(source.name)
  if options.truck:
    mapping = data.CIFAR10_MAPPING_WITH_TRUCK
  return data.corrupt(
      examples.labels, examples.ids, run.noise,
      num_classes=source.num_classes, seed=run.seed, mapping=mapping,
      mode=options.noise_mode, human_labels=examples.noisy_labels)


def _split(examples: data.Examples, given: np.ndarray) -> Split:
  return Split(examples.images, given, examples.labels, examples.ids)


def _take(split: Split, mask: np.ndarray) -> Split:
  return Split(
      split.images[mask], split.given[mask], split.true[mask], split.ids[mask])

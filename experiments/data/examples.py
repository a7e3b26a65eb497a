"""What a data set is: examples of a split, and a source of splits."""

from collections.abc import Mapping
import dataclasses

import numpy as np

from experiments.data import preprocessing as preprocessing_lib


class MissingDataError(FileNotFoundError):
  """A data set is not on this machine; the message says how to get it."""


def missing(name: str, data_dir, path) -> MissingDataError:
  """Returns the error that says what is missing and which command gets it."""
  return MissingDataError(
      f'Data set {name} needs {path}, which is missing: run '
      f'`python -m experiments.prepare --dataset={name} '
      f'--data_dir={data_dir}`.')


@dataclasses.dataclass(frozen=True, eq=False)
class Examples:
  """The examples of one split, aligned by position.

  Attributes:
    images: uint8 `[N, H, W, C]`, float32 `[N, F]`, or `[N]` paths of image
      files where the data set does not fit in memory.
    labels: int32 `[N]`, the clean labels (those of Clothing1M's training split
      are noisy: there are no others).
    ids: int64 `[N]`, stable and unique within the split. Noise, splits, orders
      and augmentation depend on ids, never on positions.
    noisy_labels: int32 `[N]` for each set of human labels, by name.
  """
  images: np.ndarray
  labels: np.ndarray
  ids: np.ndarray
  noisy_labels: Mapping[str, np.ndarray] = dataclasses.field(
      default_factory=dict)

  def __post_init__(self):
    columns = {'labels': self.labels, 'ids': self.ids, **self.noisy_labels}
    for name, values in columns.items():
      if np.shape(values) != (len(self.images),):
        raise ValueError(
            f'Argument `{name}` must have one entry for each of the '
            f'{len(self.images)} images. Received: shape={np.shape(values)}.')
    if len(np.unique(self.ids)) != len(self.ids):
      raise ValueError('Argument `ids` must be unique within the split.')

  def __len__(self):
    return len(self.labels)

  def subset(self, which) -> 'Examples':
    """Returns the examples that a mask or an array of positions selects."""
    return Examples(
        self.images[which], self.labels[which], self.ids[which],
        {name: values[which] for name, values in self.noisy_labels.items()})


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
  """A data set.

  Attributes:
    name: one of `data.NAMES`.
    class_names: the names of the classes.
    train: the training split; `data.validation_split` cuts it.
    test: the test split; its labels are clean and stay so.
    preprocessing: what happens to the pixels by default.
    validation: the data set's own validation split (Clothing1M), or None.
  """
  name: str
  class_names: tuple[str, ...]
  train: Examples
  test: Examples
  preprocessing: preprocessing_lib.Preprocessing
  validation: Examples | None = None

  @property
  def num_classes(self) -> int:
    return len(self.class_names)

"""Examples, from the loader to the metrics, and the data sets made of them."""

from collections.abc import Mapping
import dataclasses
import hashlib

import numpy as np

from experiments.data import preprocessing as preprocessing_lib
from experiments.data import registry
from ln_tfp import random


@dataclasses.dataclass(frozen=True, eq=False)
class Examples:
  """Examples of one split, aligned by position.

  Attributes:
    inputs: uint8 `[N, H, W, C]`, float32 `[N, F]`, or `[N]` paths of image
      files where the data set does not fit in memory.
    given: int32 `[N]`, the labels to train with or to select by; those of the
      data set until noise replaces them.
    true: int32 `[N]`, the labels of the data set (those of Clothing1M's
      training split are noisy: there are no others).
    ids: int64 `[N]`, stable and unique within the split. Noise, splits, orders
      and augmentation depend on ids, never on positions.
    label_sets: int32 `[N]` for each set of human labels, by name.
  """
  inputs: np.ndarray
  given: np.ndarray
  true: np.ndarray
  ids: np.ndarray
  label_sets: Mapping[str, np.ndarray] = dataclasses.field(
      default_factory=dict)

  def __post_init__(self):
    columns = {'given': self.given, 'true': self.true, 'ids': self.ids}
    for name, values in (*columns.items(), *self.label_sets.items()):
      if np.shape(values) != (len(self.inputs),):
        raise ValueError(
            f'Argument `{name}` must have one entry for each of the '
            f'{len(self.inputs)} inputs. Received: shape={np.shape(values)}.')
    if len(np.unique(self.ids)) != len(self.ids):
      raise ValueError('Argument `ids` must be unique within the split.')
    for name, values in columns.items():
      dtype = np.int64 if name == 'ids' else np.int32
      object.__setattr__(  # the dataclass is frozen
          self, name, np.asarray(values).astype(dtype, copy=False))

  def __len__(self):
    return len(self.inputs)

  @property
  def is_noisy(self) -> np.ndarray:
    """bool `[N]`: whose given label is wrong."""
    return self.given != self.true

  @property
  def rate(self) -> float:
    """The share of wrong labels, 0 of no examples at all."""
    return float(np.mean(self.is_noisy)) if len(self) else 0.

  def transition_matrix(self, num_classes: int) -> np.ndarray:
    """The realised P(given | true), `[K, K]`; rows are true classes.

    The row of a class without examples is that of the identity, so that the
    matrix is row-stochastic whatever the data.
    """
    counts = np.zeros((num_classes, num_classes))
    np.add.at(counts, (self.true, self.given), 1)
    totals = counts.sum(axis=1, keepdims=True)
    return np.where(
        totals > 0, counts / np.maximum(totals, 1), np.eye(num_classes))

  @property
  def content_hash(self) -> str:
    """SHA-256 of labels and ids: equal exactly where these are."""
    digest = hashlib.sha256()
    for values in (self.given, self.true, self.ids):
      digest.update(values.astype('<i8').tobytes())
    return digest.hexdigest()

  def subset(self, which) -> 'Examples':
    """Returns the examples that a mask or an array of positions selects."""
    return Examples(
        self.inputs[which], self.given[which], self.true[which],
        self.ids[which],
        {name: values[which] for name, values in self.label_sets.items()})


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
  """A data set.

  Attributes:
    name: one of `data.NAMES`, or one's own.
    class_names: the names of the classes.
    train: the training split.
    test: the test split; its labels are clean and stay so.
    preprocessing: what happens to the pixels by default.
    validation: the validation split; None until it is cut from the training
      split, unless the data set has its own (Clothing1M).
    provenance: of inputs that were computed: with what.
  """
  name: str
  class_names: tuple[str, ...]
  train: Examples
  test: Examples
  preprocessing: preprocessing_lib.Preprocessing
  validation: Examples | None = None
  provenance: Mapping[str, str] = dataclasses.field(default_factory=dict)

  @property
  def num_classes(self) -> int:
    return len(self.class_names)

  @property
  def input_shape(self) -> tuple[int, ...]:
    """Of an example as the network sees it."""
    if self.train.inputs.ndim > 1:
      return self.train.inputs.shape[1:]
    return (self.preprocessing.crop, self.preprocessing.crop, 3)  # files


def registered(name: str, **fields) -> Source:
  """Returns a `Source` with the class names and preprocessing of its traits."""
  traits = registry.traits(name)
  return Source(**{
      'name': name, 'class_names': traits.class_names,
      'preprocessing': traits.preprocessing, **fields})


def split(
    examples: Examples, fraction: float = 0.1, *,
    sizes: tuple[int, int] | None = None) -> tuple[Examples, Examples]:
  """Cuts examples into training and validation, by their ids alone.

  The examples whose ids have the smallest hashes validate: the split is the
  same for every seed, noise and order.

  Args:
    examples: to cut.
    fraction: of them that validate, rounded to whole examples.
    sizes: numbers of training and validation examples instead; what is left
      is not used.
  """
  if not 0. <= fraction <= 1.:
    raise ValueError(
        'Argument `fraction` must be in [0, 1]. '
        f'Received: fraction={fraction}.')
  num_validation = round(fraction * len(examples))
  num_train = len(examples) - num_validation
  if sizes is not None:
    num_train, num_validation = sizes
    if len(examples) < num_train + num_validation:
      raise ValueError(
          'Argument `sizes` must not exceed the number of examples. '
          f'Received: sizes={sizes} of {len(examples)} examples.')
  ranks = np.empty(len(examples), np.int64)
  ranks[random.order('validation split', examples.ids)] = np.arange(
      len(examples))
  end = num_validation + num_train
  return (examples.subset((ranks >= num_validation) & (ranks < end)),
          examples.subset(ranks < num_validation))

"""One pass over the rows: sums, and a sample of the rows."""

from typing import Any

import numpy as np

from ln_tfp.process import choosing
from ln_tfp.process import fitting
from ln_tfp.process import ridge
from ln_tfp.process import sources
from ln_tfp.process import votes as votes_lib


class Gatherer:
  """Collects what a fit needs to know of the rows, in O(F^2 + F K) memory.

  Args:
    reader: of the labels.
    random: draws the sample.
    kernel: see `choosing.choose`, as the following.
    num_inducing: likewise.
    length_scale: likewise.
  """

  def __init__(self, reader: votes_lib.Reader, random: np.random.Generator,
               kernel: Any, num_inducing: int, length_scale: float):
    self._reader = reader
    self._reservoir = sources.Reservoir(random)
    self._kernel = kernel
    self._num_inducing = num_inducing
    self._length_scale = length_scale
    self._sampled = False
    self._features = None
    self._moments = None
    self._cross = None

  @property
  def num_rows(self) -> int:
    """How many rows of positive weight there were."""
    return self._reservoir.num_rows

  def survey(self, source: sources.Source) -> None:
    """A pass that only looks for rows to decide the features by.

    The linear features need none.
    """
    if isinstance(self._kernel, str) and self._kernel == 'linear':
      return
    for rows in source:
      self._take(rows, self._reader.read(rows.y, rows.certain))
    self._sampled = True
    self.check_not_empty()
    x, labels, _, certain, _ = self._reservoir.rows(
        choosing.num_rows(self._num_inducing))
    self._choose(x, labels, certain)

  def check_not_empty(self) -> None:
    """Raises if there is nothing to learn from."""
    if not self.num_rows:
      raise ValueError('Found no labelled sample of positive weight while a '
                       'minimum of 1 is required.')

  def _take(self, rows, votes):
    self._reservoir.add(
        rows.x, votes.labels, rows.weight * votes.is_labelled, votes.certain)

  def _choose(self, x, labels, certain):
    votes = votes_lib.Votes(labels, len(self._reader.classes), certain)
    self._features = choosing.choose(
        self._kernel, x, votes, self._reservoir.num_rows,
        self._num_inducing, self._length_scale)

  def add(self, rows: sources.Rows) -> None:
    """Adds rows to the sums."""
    votes = self._reader.read(rows.y, rows.certain)
    if not self._sampled:
      self._take(rows, votes)
    if self._features is None:  # by the first rows, in random order if labelled
      x, labels, _, certain, _ = self._reservoir.rows() if self.num_rows else (
          rows.x, votes.labels, None, votes.certain, None)
      self._choose(x, labels, certain)
    if self._moments is None:
      self._moments = ridge.Moments(self._features.num_features)
      self._cross = ridge.Cross(self._features.num_features)
    z = self._features(rows.x)
    weight = rows.weight * votes.is_labelled
    self._moments.add(z, weight)
    self._cross.add(z, votes.targets(z.dtype), weight)

  def solve(self, settings: fitting.Settings,
            passes: fitting.Passes | None = None) -> fitting.Solution:
    """Puts the classes in order and fits; see `fitting.solve`."""
    order = self._reader.finish()
    # What is kept takes the new numbers, too: rows that follow have them.
    self._cross = self._cross.reorder(order)
    self._reservoir.relabel(lambda labels: votes_lib.renumber(labels, order))
    x, labels, weight, certain, numbers = self._reservoir.rows(
        fitting.sample_size(len(order)))
    votes = votes_lib.Votes(labels, len(order), certain)
    return fitting.solve(
        self._features, self._moments, self._cross,
        fitting.Sample(x, votes, weight, numbers, self._reservoir.length),
        settings, passes)

"""Leave-one-out predictions, chunk by chunk.

Half-relabelling refits with targets .5 Y + .5 q, where q is the posterior of
the rounds before, so the last leave-one-out means depend on all rounds. Instead
of q, of size N x K, every round's coefficients and noise model are kept, and a
chunk of rows replays the rounds.
"""

from collections.abc import Sequence
import dataclasses

import numpy as np

from ln_tfp.process import noise_model
from ln_tfp.process import ridge
from ln_tfp.process import votes as votes_lib

# A row of leverage h that is relabelled takes its own target off its mean and
# divides by 1 - h: what float32 passes round grows by that, in every round. And
# the target of such a row is of little use to any other.
_MAX_LEVERAGE = .8


@dataclasses.dataclass(frozen=True, eq=False)
class LeaveOneOut:
  """Predictions of n rows, each by a fit without its own label.

  Attributes:
    start: number of the first row.
    loc: mean of the target, `[n, K]`, where labels are one-hot: 1 is "surely
      this class", 0 "surely not".
    leverage: share of the row's own target in its ordinary prediction, `[n]`.
    variance: of the row's target about `loc`, `[n]`, the same for all classes.
    mean_variance: the part of `variance` that more rows like it would take
      away, `[n]`.
    probabilities: of the true class, the label unseen, `[n, K]`.
    posterior: of the true class, given the label, `[n, K]`.
  """
  start: int
  loc: np.ndarray
  leverage: np.ndarray
  variance: np.ndarray
  mean_variance: np.ndarray
  probabilities: np.ndarray
  posterior: np.ndarray

  def __len__(self) -> int:
    return len(self.loc)

  @property
  def rows(self) -> slice:
    """Which rows these are."""
    return slice(self.start, self.start + len(self))


@dataclasses.dataclass(frozen=True, eq=False)
class Round:
  """One fit: mu = z c + c0, and the noise model of its means."""
  coefficients: np.ndarray
  intercept: np.ndarray
  noise: noise_model.NoiseModel | None = None

  def mean(self, z: np.ndarray) -> np.ndarray:
    """mu of rows `[n, F]`, `[n, K]`."""
    return z @ self.coefficients.astype(z.dtype) + self.intercept.astype(
        z.dtype)


def replay(
    rounds: Sequence[Round], z: np.ndarray, leverages: np.ndarray,
    votes: votes_lib.Votes) -> np.ndarray:
  """Returns the leave-one-out means of the last round, `[n, K]`.

  Args:
    rounds: all but the last with noise models.
    z: features `[n, F]`.
    leverages: `[n]`.
    votes: labels of the rows.
  """
  target = votes.targets(z.dtype)
  for number, now in enumerate(rounds):
    loc = ridge.leave_out(now.mean(z), target, leverages)
    if number + 1 < len(rounds):
      target = relabel(votes, now.noise.posterior(loc, votes), leverages)
  return loc


def relabel(
    votes: votes_lib.Votes, posterior: np.ndarray,
    leverages: np.ndarray) -> np.ndarray:
  """Targets half-way between the labels and the true classes, `[n, K]`.

  Rows that hardly depend on others keep their labels.
  """
  targets = votes.targets(posterior.dtype)
  apart = leverages > _MAX_LEVERAGE
  return np.where(
      apart[:, np.newaxis], targets, .5 * targets + .5 * posterior)


def concatenate(chunks: Sequence[LeaveOneOut]) -> LeaveOneOut:
  """All chunks as one."""
  names = [field.name for field in dataclasses.fields(LeaveOneOut)][1:]
  return LeaveOneOut(chunks[0].start, *(
      np.concatenate([getattr(chunk, name) for chunk in chunks])
      for name in names))

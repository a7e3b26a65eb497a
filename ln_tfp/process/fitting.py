"""From rows to a fitted process."""

from collections.abc import Callable
from collections.abc import Iterator
import dataclasses

import numpy as np

from ln_tfp.process import features as features_lib
from ln_tfp.process import leave_one_out
from ln_tfp.process import noise_model
from ln_tfp.process import ridge
from ln_tfp.process import sources
from ln_tfp.process import votes as votes_lib

# N x K numbers that the noise model is fitted to, and that the regularisation
# is chosen by, at most; more rows would hardly change either.
_NOISE_SIZE = 10_000_000
_CHOICE_SIZE = 100_000
_MIN_ROWS = 2_000
# So many features, of all rows, are kept from one pass to the next.
_KEPT_SIZE = 2**23


@dataclasses.dataclass(frozen=True)
class Settings:
  """What a fit is asked for; see `LogisticNormalProcess`."""
  regularization: float | None
  noise_model: bool | noise_model.NoiseModel
  relabel_rounds: int


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
  """Some consecutive rows as the regression sees them.

  Attributes:
    start: number of the first one.
    z: features `[n, D]`.
    votes: labels.
    weight: `[n]`, zero where there is no label.
  """
  start: int
  z: np.ndarray
  votes: votes_lib.Votes
  weight: np.ndarray

  @property
  def range(self) -> slice:
    return slice(self.start, self.start + len(self.z))


class Passes:
  """Passes over all rows.

  Args:
    rows: begins a pass over rows and their labels.
  """

  def __init__(
      self, rows: Callable[[], Iterator[tuple[sources.Rows, votes_lib.Votes]]]):
    self._rows = rows
    self._kept = None

  def __call__(self, features: features_lib.FeatureMap) -> Iterator[Part]:
    """One pass; all passes must be with the same features."""
    if self._kept is not None:
      yield from self._kept
      return
    kept, size = [], 0
    for rows, votes in self._rows():
      part = Part(rows.start, features(rows.x), votes,
                  rows.weight * votes.is_labelled)
      yield part
      size += part.z.size
      kept = [*kept, part] if size <= _KEPT_SIZE else []
    if size <= _KEPT_SIZE:
      self._kept = kept


@dataclasses.dataclass(frozen=True, eq=False)
class Sample:
  """Rows that decide about hyperparameters.

  Attributes:
    x: `[n, F]`.
    votes: their labels.
    weight: `[n]`.
    numbers: of the rows, `[n]`.
    length: N, of all rows.
  """
  x: np.ndarray
  votes: votes_lib.Votes
  weight: np.ndarray
  numbers: np.ndarray
  length: int


@dataclasses.dataclass(frozen=True, eq=False)
class Solution:
  """A fitted process.

  Attributes:
    features: the feature map.
    spectrum: of the features of all rows.
    choice: the regularisation, and what it achieves.
    rounds: of relabelling; the last one predicts.
    wrong: estimated share of wrong labels, `[M]`, NaN where there are none.
    log_marginal_likelihood: of the targets as given.
    leverages: of all rows `[N]`, where they are known.
  """
  features: features_lib.FeatureMap
  spectrum: ridge.Spectrum
  choice: ridge.Choice
  rounds: tuple[leave_one_out.Round, ...]
  wrong: np.ndarray
  log_marginal_likelihood: float
  leverages: np.ndarray | None

  @property
  def last(self) -> leave_one_out.Round:
    return self.rounds[-1]

  def mean(self, x: np.ndarray) -> np.ndarray:
    """mu of new rows, `[n, K]`."""
    return self.last.mean(self.features(x))

  def spread(self, x: np.ndarray) -> np.ndarray:
    """Variance of the mean of new rows over sigma^2, `[n]`."""
    return self.spectrum.spread(
        self.features(x), self.choice.regularization)

  def leave_out(self, part: Part) -> leave_one_out.LeaveOneOut:
    """Predictions of rows that took part in the fit."""
    h = _leverages(
        self.spectrum, part, self.choice.regularization, self.leverages)
    loc = leave_one_out.replay(self.rounds, part.z, h, part.votes)
    # A weight w stands for the noise sigma^2 / w of the row's own target.
    counts = part.weight > 0
    scale = self.choice.variance / np.where(counts, part.weight, 1.)
    spread = h / (1. - h)
    if not np.all(counts):
      spread = np.where(counts, spread, self.spectrum.spread(
          part.z, self.choice.regularization))
    return leave_one_out.LeaveOneOut(
        part.start, loc, h, scale * (1. + spread), scale * spread,
        self.last.noise.probabilities(loc),
        self.last.noise.posterior(loc, part.votes))


def sample_size(num_classes: int) -> int:
  """How many rows decide about hyperparameters, at most."""
  return max(_MIN_ROWS, _NOISE_SIZE // num_classes)


def solve(
    features: features_lib.FeatureMap,
    moments: ridge.Moments,
    cross: ridge.Cross,
    sample: Sample,
    settings: Settings,
    passes: Passes | None = None,
) -> Solution:
  """Chooses the regularisation, fits the noise model, and relabels.

  Args:
    features: the feature map.
    moments: of the features of all rows.
    cross: of the features and labels of all rows.
    sample: some of the rows, or all.
    settings: what is asked for.
    passes: over all rows; `None` if they cannot be read again, and then there
      is no relabelling.
  """
  spectrum = ridge.Spectrum.of(moments, features.standardize)
  z = features(sample.x)
  targets = sample.votes.targets(z.dtype)
  num_classes = targets.shape[1]
  judged = slice(max(_MIN_ROWS, _CHOICE_SIZE // num_classes))
  choice = ridge.choose(
      spectrum, cross, z[judged], targets[judged], sample.weight[judged],
      settings.regularization)
  a = choice.regularization
  rest = slice(judged.stop, None)
  h = np.append(choice.leverages, ridge.leverage(
      spectrum.spread(z[rest], a), sample.weight[rest]))
  target, rounds = targets, []
  complete = passes is not None and len(z) == moments.rows
  all_leverages = None
  if complete:  # others have no weight
    all_leverages = np.zeros(sample.length)
    all_leverages[sample.numbers] = h
  log_marginal = spectrum.log_marginal_likelihood(cross, a, choice.variance)
  for number in range(settings.relabel_rounds + 1):
    now = leave_one_out.Round(*spectrum.solve(cross, a))
    loc = ridge.leave_out(now.mean(z), target, h)
    noise = settings.noise_model
    if not isinstance(noise, noise_model.NoiseModel):
      noise = noise_model.fit(
          loc, sample.votes, sample.weight, noise,
          rounds[-1].noise if rounds else None)
    rounds.append(dataclasses.replace(now, noise=noise))
    posterior = noise.posterior(loc, sample.votes)
    if (number == settings.relabel_rounds or passes is None
        or noise.is_exact):  # right labels stay as they are
      break
    target = leave_one_out.relabel(sample.votes, posterior, h)
    if complete:
      cross = ridge.Cross(*now.coefficients.shape)
      cross.add(z, target, sample.weight)
    else:
      cross, all_leverages = _relabel_all(
          spectrum, a, rounds, all_leverages, passes(features))
  return Solution(
      features, spectrum, choice, tuple(rounds),
      share_of_wrong(posterior, sample), log_marginal, all_leverages)


def _leverages(spectrum, part, a, known):
  """h of some rows `[n]`, from those of all where they are known."""
  if known is not None:
    return known[part.range]
  return ridge.leverage(spectrum.spread(part.z, a), part.weight)


def _relabel_all(spectrum, a, rounds, known, parts):
  """One pass: the sums of the relabelled targets, and all leverages."""
  cross = ridge.Cross(*rounds[0].coefficients.shape)
  found = []
  for part in parts:
    h = _leverages(spectrum, part, a, known)
    found.append(h)
    loc = leave_one_out.replay(rounds, part.z, h, part.votes)
    posterior = rounds[-1].noise.posterior(loc, part.votes)
    cross.add(
        part.z, leave_one_out.relabel(part.votes, posterior, h), part.weight)
  return cross, np.concatenate(found) if known is None else known


def share_of_wrong(posterior: np.ndarray, sample: Sample) -> np.ndarray:
  """The expected share of each annotator's labels that are wrong, `[M]`.

  NaN for one who has not labelled anything.
  """
  right = sample.votes.agreement(posterior)
  present = ~np.isnan(right)
  counted = present & ~sample.votes.certain[:, np.newaxis]
  weight = np.where(counted, sample.weight[:, np.newaxis], 0.)
  wrong = np.sum(weight * (1. - np.where(counted, right, 1.)), axis=0)
  return np.where(present.any(axis=0),
                  wrong / np.maximum(weight.sum(axis=0), 1e-30), np.nan)

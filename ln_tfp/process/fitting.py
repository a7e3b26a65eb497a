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
# is chosen by, at most; more rows would change neither.
_NOISE_SIZE = 10_000_000
_CHOICE_SIZE = 2_000_000
_MIN_ROWS = 2_000

# Begins another pass over all rows and their labels.
Passes = Callable[[], Iterator[tuple[sources.Rows, votes_lib.Votes]]]


@dataclasses.dataclass(frozen=True)
class Settings:
  """What a fit is asked for; see `LogisticNormalProcess`."""
  regularization: float | None
  noise_model: bool
  relabel_rounds: int


@dataclasses.dataclass(frozen=True, eq=False)
class Sample:
  """Rows that decide about hyperparameters.

  Attributes:
    x: `[n, F]`.
    votes: their labels.
    weight: `[n]`.
  """
  x: np.ndarray
  votes: votes_lib.Votes
  weight: np.ndarray

  def __len__(self) -> int:
    return len(self.x)

  def first(self, size: int) -> 'Sample':
    """The first of these rows; their order is random."""
    size = max(size, _MIN_ROWS)
    return Sample(self.x[:size], self.votes[:size], self.weight[:size])


@dataclasses.dataclass(frozen=True, eq=False)
class Solution:
  """A fitted process.

  Attributes:
    features: the feature map.
    spectrum: of the features of all rows.
    choice: the regularisation, and what it achieves.
    rounds: of relabelling; the last one predicts.
    wrong: estimated share of wrong labels, `[M]`.
    log_marginal_likelihood: of the targets as given.
    leverage: of all rows `[N]`, where it is known.
  """
  features: features_lib.FeatureMap
  spectrum: ridge.Spectrum
  choice: ridge.Choice
  rounds: tuple[leave_one_out.Round, ...]
  wrong: np.ndarray
  log_marginal_likelihood: float
  leverage: np.ndarray | None

  @property
  def last(self) -> leave_one_out.Round:
    return self.rounds[-1]

  def mean(self, x: np.ndarray) -> np.ndarray:
    """mu of new rows, `[n, K]`."""
    return self.last.mean(self.features(x))

  def spread(self, x: np.ndarray) -> np.ndarray:
    """Variance of the mean of new rows over sigma^2, `[n]`."""
    return self.spectrum.spread(
        self.spectrum.project(self.features(x)), self.choice.regularization)

  def leave_out(
      self, rows: sources.Rows,
      votes: votes_lib.Votes) -> leave_one_out.LeaveOneOut:
    """Predictions of rows that took part in the fit."""
    z = self.features(rows.x)
    weight = rows.weight * votes.is_labelled
    if self.leverage is None:
      h = leverages(
          self.spectrum, z, weight, self.choice.regularization)
    else:
      h = self.leverage[rows.range]
    loc = leave_one_out.replay(self.rounds, z, h, votes)
    # A weight w stands for the noise sigma^2 / w of the row's own target.
    scale = self.choice.variance / np.where(weight > 0, weight, 1.)
    spread = h / (1. - h)
    if not np.all(weight > 0):
      spread = np.where(weight > 0, spread, self.spread(rows.x))
    return leave_one_out.LeaveOneOut(
        rows.start, loc, h, scale * (1. + spread), scale * spread,
        self.last.noise.probabilities(loc),
        self.last.noise.posterior(loc, votes))


def leverages(
    spectrum: ridge.Spectrum, z: np.ndarray, weight: np.ndarray,
    a: float) -> np.ndarray:
  """h of rows `[n, F]`, `[n]`."""
  return ridge.leverage(spectrum.spread(spectrum.project(z), a), weight)


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
    passes: begins another pass over all rows; `None` if they cannot be read
      again, and then there is no relabelling.
  """
  spectrum = ridge.Spectrum.of(moments, features.standardize)
  choice = choose_regularization(
      spectrum, cross, features, sample, settings.regularization)
  a = choice.regularization
  num_classes = sample.votes.num_classes
  sample = sample.first(_NOISE_SIZE // num_classes)
  z = features(sample.x)
  h = leverages(spectrum, z, sample.weight, a)
  target = sample.votes.targets(z.dtype)
  rounds, all_leverages = [], None
  log_marginal = spectrum.log_marginal_likelihood(cross, a, choice.variance)
  for number in range(settings.relabel_rounds + 1):
    now = leave_one_out.Round(*spectrum.solve(cross, a))
    loc = ridge.leave_out(now.mean(z), target, h)
    noise = noise_model.fit(
        loc, sample.votes, sample.weight, settings.noise_model,
        rounds[-1].noise if rounds else None)
    rounds.append(dataclasses.replace(now, noise=noise))
    posterior = noise.posterior(loc, sample.votes)
    if number == settings.relabel_rounds or passes is None:
      break
    target = leave_one_out.relabel(sample.votes, posterior)
    cross, all_leverages = relabel_all(
        features, spectrum, a, rounds, all_leverages, passes())
  return Solution(
      features, spectrum, choice, tuple(rounds),
      share_of_wrong(posterior, sample), log_marginal, all_leverages)


def relabel_all(features, spectrum, a, rounds, known, rows):
  """One pass: the sums of the relabelled targets, and all leverages."""
  num_classes = len(rounds[0].intercept)
  cross = ridge.Cross(features.num_features, num_classes)
  parts = []
  for part, votes in rows:
    z = features(part.x)
    weight = part.weight * votes.is_labelled
    h = (leverages(spectrum, z, weight, a) if known is None
         else known[part.range])
    parts.append(h)
    loc = leave_one_out.replay(rounds, z, h, votes)
    cross.add(z, leave_one_out.relabel(
        votes, rounds[-1].noise.posterior(loc, votes)), weight)
  return cross, np.concatenate(parts) if known is None else known


def choose_regularization(
    spectrum: ridge.Spectrum, cross: ridge.Cross,
    features: features_lib.FeatureMap, sample: Sample,
    regularization: float | None) -> ridge.Choice:
  """The regularisation of least leave-one-out error on some rows."""
  sample = sample.first(_CHOICE_SIZE // sample.votes.num_classes)
  z = features(sample.x)
  return ridge.choose(
      spectrum, cross, spectrum.project(z), sample.votes.targets(z.dtype),
      sample.weight, regularization)


def share_of_wrong(posterior: np.ndarray, sample: Sample) -> np.ndarray:
  """The expected share of each annotator's labels that are wrong, `[M]`."""
  right = sample.votes.agreement(posterior)
  counted = ~np.isnan(right) & ~sample.votes.certain[:, np.newaxis]
  weight = np.where(counted, sample.weight[:, np.newaxis], 0.)
  wrong = np.sum(weight * (1. - np.where(counted, right, 1.)), axis=0)
  return wrong / np.maximum(weight.sum(axis=0), 1e-30)

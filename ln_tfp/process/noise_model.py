"""From out-of-sample means to "this label is wrong".

The true class j of row i has the probability p_ij = softmax(beta mu_i + b)_j,
an annotator names class g with the probability T_jg, so the posterior of the
true class is

    q_ij = p_ij prod_m T^m_{j, g_im} / sum.

That the mean mu_i does not contain the row's own label (leave-one-out) is what
justifies the product. beta, b and T maximise the likelihood of the labels by a
generalised EM: T from the expected confusions C in closed form, (log beta, b)
by one damped Newton step.

T is shrunk to the symmetric matrix T0(r) = (1 - (K - 1) r) I + r (11^T - I) by

    T_j = (kappa T0_j + C_j) / (kappa + n_j),

the maximum of sum_g C_jg log T_jg - kappa KL(T0_j || T_j). This is the
gamma-Poisson posterior mean of confusions whose ratios to r have the variance
v = 1 / (kappa r) over the pairs of classes; v is estimated by its moments
(empirical Bayes), as is r. Noise that confuses all pairs alike has v = 0 and
shares one rate; noise of few pairs keeps them.
"""

from collections.abc import Sequence
import dataclasses

import numpy as np
from scipy import linalg
from scipy import special

from ln_tfp.process import votes as votes_lib

_START_NOISE = .1
_WORTH = 3.  # nats for each class that the labels must be likelier by
_MAX_STEPS = 100
_TOLERANCE = 1e-5  # of the objective, per row
_TINY = 1e-10
# Weak priors keep beta finite where classes are separable, and b where one of
# them has few rows: log beta ~ N(log 20, 1), b ~ N(0, 1).
_LOG_BETA = np.log(20.)
_MIN_VARIANCE = 1e-4
_BOLD = 3.  # times beta
_HELD_OUT = 1_000_000  # numbers n x K that the start is chosen by, at most
_MIN_HELD_OUT = 2_000  # but no fewer rows
_FEW = 50_000  # numbers n x K of which half are too few to learn from


@dataclasses.dataclass(frozen=True, eq=False)
class NoiseModel:
  """How means become probabilities, and true classes labels.

  Attributes:
    inverse_temperature: beta.
    bias: b, `[K]`, of mean zero.
    transition: T, `[M, K, K]` (annotator, true, given).
    objective: penalised log-likelihood after every step of the EM.
  """
  inverse_temperature: float
  bias: np.ndarray
  transition: np.ndarray
  objective: tuple[float, ...] = ()

  @property
  def is_exact(self) -> bool:
    """Whether labels cannot be wrong."""
    return bool(np.all(self.transition == np.eye(len(self.bias))))

  def logits(self, loc: np.ndarray) -> np.ndarray:
    """beta mu + b, `[n, K]`."""
    return (loc.dtype.type(self.inverse_temperature) * loc
            + self.bias.astype(loc.dtype))

  def probabilities(self, loc: np.ndarray) -> np.ndarray:
    """Of the true class, before the label is seen, `[n, K]`."""
    return _softmax(self.logits(loc))[0]

  def posterior(
      self, loc: np.ndarray, votes: votes_lib.Votes) -> np.ndarray:
    """Of the true class, given the label, `[n, K]`."""
    return _posterior(self, self.logits(loc), votes)[0]

  def log_likelihood(
      self, loc: np.ndarray, votes: votes_lib.Votes) -> np.ndarray:
    """log P(votes) of each row, `[n]`."""
    return _posterior(self, self.logits(loc), votes)[2]


def fit(
    loc: np.ndarray,
    votes: votes_lib.Votes,
    weight: np.ndarray,
    learn_transition: bool = True,
    start: NoiseModel | None = None) -> NoiseModel:
  """Fits a noise model.

  It must be worth its parameters: where means tell nothing of the labels, the
  likeliest model is that all rows are of one class and all else is noise. So
  labels count as right if the noise model is hardly likelier than constant
  shares of the classes.

  Args:
    loc: means `[n, K]`, each without its own row.
    votes: the labels.
    weight: `[n]`.
    learn_transition: whether labels may be wrong; else T is the identity.
    start: where the EM begins; by default at the `(beta, b)` that explain the
      labels without noise.
  """
  if start is not None:
    return _climb_with_prior(loc, votes, weight, start)
  num_classes = loc.shape[1]
  exact = np.stack([np.eye(num_classes)] * votes.num_annotators)
  plain = _Climb(loc, votes.as_certain(), weight, None).run(
      NoiseModel(np.exp(_LOG_BETA), np.zeros(num_classes), exact))
  if not learn_transition:
    return plain
  model = _climb_with_prior(
      loc, votes, weight, _best_start(loc, votes, weight, plain))
  gain = (np.sum(weight * model.log_likelihood(loc, votes))
          - votes.constant_log_likelihood(weight))
  return model if gain > _WORTH * num_classes else plain


def _best_start(loc, votes, weight, plain):
  """Where the EM begins: some noise, at the plain or at a higher beta.

  The EM may have two basins: classes overlap and hardly a label is wrong, or
  classes are apart and many are. It begins in the second one only if rows that
  are held out are likelier then, by twice the standard error.
  """
  size = len(plain.bias)
  noisy = (1. - _START_NOISE) * plain.transition + _START_NOISE / size
  cautious, bold = (
      NoiseModel(factor * plain.inverse_temperature, plain.bias, noisy)
      for factor in (1., _BOLD))
  rows = slice(max(_MIN_HELD_OUT, _HELD_OUT // size))
  loc, votes, weight = loc[rows], votes[rows], weight[rows]
  gain = weight * (_held_out(loc, votes, weight, bold)
                   - _held_out(loc, votes, weight, cautious))
  error = np.sqrt(len(gain)) * gain.std()
  return bold if gain.sum() > 2. * error else cautious


def _held_out(loc, votes, weight, start):
  """Log-likelihood of each row by a model of other rows, `[n]`."""
  numbers = np.arange(len(loc))
  result = np.zeros(len(loc))
  folds = 4 if loc.size <= _FEW else 2
  for fold in range(folds):
    out = numbers % folds == fold
    model = _climb_with_prior(loc[~out], votes[~out], weight[~out], start)
    result[out] = model.log_likelihood(loc[out], votes[out])
  return result


def _climb_with_prior(loc, votes, weight, start):
  """Alternates between the EM and the moments of T's prior."""
  model = start
  for _ in range(3):
    posterior = model.posterior(loc, votes)
    counts = votes.counts(posterior * weight.astype(loc.dtype)[:, np.newaxis])
    prior = [concentration(c) for c in counts]
    model = _Climb(loc, votes, weight, prior).run(model)
  return model


def concentration(counts: np.ndarray) -> float:
  """kappa of one annotator, from confusions `[K, K]`, by the moments of v."""
  off = ~np.eye(len(counts), dtype=bool)
  rate = _pooled_rate(counts)
  expected = np.broadcast_to(
      counts.sum(axis=1, keepdims=True) * rate, counts.shape)[off]
  excess = np.sum((counts[off] - expected)**2 - expected)
  variance = max(excess / max(np.sum(expected**2), _TINY), _MIN_VARIANCE)
  return 1. / (variance * rate)


def _pooled_rate(counts):
  """r, the mean probability of one confusion."""
  size = len(counts)
  wrong = counts.sum() - np.trace(counts)
  return min(max(wrong / max(counts.sum() * (size - 1), _TINY), 1e-8),
             1. / size)


def _symmetric(size, rate):
  return (1. - size * rate) * np.eye(size) + rate


def _penalty(transition, kappa, rate):
  """-kappa sum_j KL(T0_j || T_j)."""
  centre = np.maximum(_symmetric(len(transition), rate), _TINY)
  return -kappa * np.sum(
      centre * (np.log(centre) - np.log(np.maximum(transition, _TINY))))


def _shrink(counts, kappa, rate):
  """The T of largest objective for confusions C and a prior (kappa, r)."""
  centre = _symmetric(len(counts), rate)
  return np.maximum(
      (kappa * centre + counts) / (kappa + counts.sum(axis=1, keepdims=True)),
      _TINY)


class _Climb:
  """One ascent of the penalised likelihood.

  Every step ends at an objective no lower than before, but for rounding.
  """

  def __init__(self, loc, votes, weight, kappas: Sequence[float] | None):
    """`kappas`: T's prior for each annotator; `None` leaves T alone."""
    self._loc = np.asfortranarray(loc)  # most work is along the rows
    self._votes = votes
    self._weight = weight
    self._column = weight.astype(loc.dtype)[:, np.newaxis]
    self._kappas = kappas
    self._rates = None

  def run(self, model: NoiseModel) -> NoiseModel:
    """Steps until the objective rises no more."""
    if self._kappas is not None:
      self._rates = [_rate_of(t) for t in model.transition]
    trace = []
    value, state = self._evaluate(model, self._rates)
    for _ in range(_MAX_STEPS):
      trace.append(value)
      model, new_value, state = self._step(model, value, state)
      if new_value - value < _TOLERANCE * self._weight.sum():
        trace.append(new_value)
        break
      value = new_value
    return dataclasses.replace(model, objective=tuple(trace))

  def _evaluate(self, model, rates):
    posterior, probabilities, log_likelihood = _posterior(
        model, model.logits(self._loc), self._votes)
    value = float(np.sum(self._weight * log_likelihood))
    value -= .5 * (np.log(model.inverse_temperature) - _LOG_BETA)**2
    value -= .5 * np.sum(model.bias**2)
    if self._kappas is not None:
      value += sum(map(_penalty, model.transition, self._kappas, rates))
    return value, (posterior, probabilities)

  def _step(self, model, value, state):
    posterior, probabilities = state
    transition, rates = self._maximize_transition(model, posterior)
    log_step, bias_step = self._newton(model, posterior, probabilities)
    lowest = value - np.finfo(self._loc.dtype).eps * abs(value)
    for scale in (1., .5, .25, .1, 0.):
      bias = model.bias + scale * bias_step
      trial = NoiseModel(
          float(model.inverse_temperature * np.exp(scale * log_step)),
          bias - bias.mean(), transition)
      new_value, new_state = self._evaluate(trial, rates)
      if new_value >= lowest:
        self._rates = rates
        return trial, new_value, new_state
    return model, value, state

  def _maximize_transition(self, model, posterior):
    """T, with its rates, at the pooled rates or the former ones.

    The first move faster, the second cannot lower the objective.
    """
    if self._kappas is None:
      return model.transition, None
    best = []
    for counts, kappa, former in zip(
        self._votes.counts(posterior * self._column), self._kappas,
        self._rates):
      trials = []
      for rate in (former, _pooled_rate(counts)):
        transition = _shrink(counts, kappa, rate)
        expected = np.sum(counts * np.log(transition)) + _penalty(
            transition, kappa, rate)
        trials.append((expected, rate, transition))
      best.append(max(trials, key=lambda trial: trial[0]))
    return np.stack([t for *_, t in best]), [rate for _, rate, _ in best]

  def _newton(self, model, posterior, probabilities):
    """Newton's step of (log beta, b) for E[log p(true class)]."""
    beta, weight = model.inverse_temperature, self._column[:, 0]
    slope = beta * self._loc
    centred = slope - np.einsum(
        'nk,nk->n', probabilities, slope)[:, np.newaxis]
    residual = posterior - probabilities
    spread = probabilities * centred
    size = len(model.bias)
    hessian = np.empty([size + 1, size + 1])
    hessian[1:, 1:] = np.diag(weight @ probabilities + 1.) - (
        (probabilities * self._column).T @ probabilities)
    hessian[0, 1:] = hessian[1:, 0] = weight @ spread
    hessian[0, 0] = weight @ np.einsum('nk,nk->n', spread, centred) + 1.
    gradient = np.empty(size + 1)
    gradient[0] = weight @ np.einsum('nk,nk->n', residual, slope) - (
        np.log(beta) - _LOG_BETA)
    gradient[1:] = weight @ residual - model.bias
    step = linalg.solve(hessian, gradient, assume_a='pos')
    step *= min(1., 1. / max(abs(step[0]), _TINY))  # beta at most e times
    return step[0], step[1:]


def _rate_of(transition):
  size = len(transition)
  return float((size - np.trace(transition)) / (size * (size - 1)))


def _softmax(logits):
  """Returns probabilities and their logarithms."""
  log_probabilities = logits - logits.max(axis=1, keepdims=True)
  probabilities = np.exp(log_probabilities)
  total = probabilities.sum(axis=1, keepdims=True)
  probabilities /= total
  log_probabilities -= np.log(total)
  return probabilities, log_probabilities


def _posterior(model, logits, votes):
  """Returns q, p `[n, K]` and the log-likelihood of the votes `[n]`."""
  transition = np.maximum(model.transition, _TINY)
  if votes.plain is not None and not votes.certain.any():
    # One factor T, no less than _TINY: no need of logarithms.
    probabilities = special.softmax(logits, axis=1)
    posterior = transition[0].astype(logits.dtype)[:, votes.plain].T
    posterior *= probabilities
    total = posterior.sum(axis=1, keepdims=True)
    posterior /= total
    return posterior, probabilities, np.log(total[:, 0])
  probabilities, log_probabilities = _softmax(logits)
  log_transition = np.log(transition).astype(logits.dtype)
  joint = log_probabilities + votes.log_evidence(log_transition)
  top = joint.max(axis=1, keepdims=True)
  joint -= top
  posterior = np.exp(joint, out=joint)
  total = posterior.sum(axis=1, keepdims=True)
  log_likelihood = (top + np.log(total))[:, 0]
  posterior /= total
  sure = np.flatnonzero(votes.certain & votes.is_labelled)
  if sure.size:
    targets = votes[sure].targets(logits.dtype)
    posterior[sure] = targets
    log_likelihood[sure] = np.sum(targets * log_probabilities[sure], axis=1)
  return posterior, probabilities, log_likelihood

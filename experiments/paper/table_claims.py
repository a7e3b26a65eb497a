"""Predicates over the numbers of tables, for `claims`."""

from collections.abc import Callable
from collections.abc import Sequence
import statistics

from experiments import ablation
from experiments import natural_noise
from experiments.output import evidence
from experiments.output import tables

RELATED = ('Forward', 'Het', 'Het-tau', 'Het-tau-Sigma')
BASELINES = ('CE', 'GCE', 'NAN', 'Forward', 'LS', 'Het', 'Het-tau',
             'Het-tau-Sigma')
SYMMETRIC = ('sym:0.2', 'sym:0.4', 'sym:0.6')
ASYMMETRIC = ('asym:0.2', 'asym:0.3', 'asym:0.4')

# Whether it holds, and the numbers that were compared.
Outcome = tuple[bool, str]
Check = Callable[[evidence.Facts, str], Outcome]


def leads(
    table: str, method: str, others: Sequence[str],
    columns: Sequence[str]) -> Check:
  """`method` has a higher mean than each of `others` in all columns."""

  def check(facts, dataset):
    cells = facts.cells(table, dataset)
    parts, holds = [], True
    for column in columns:
      best = max(others, key=lambda other: cells[other, column].mean)
      ours, theirs = cells[method, column].mean, cells[best, column].mean
      holds &= ours > theirs
      parts.append(f'{column}: {method} {ours:.2f}, {best} {theirs:.2f}')
    return holds, '; '.join(parts)

  return check


def degrades_least(facts: evidence.Facts, dataset: str) -> Outcome:
  """Of the related methods, LN loses least under each noise."""
  cells = facts.cells('synthetic_noise', dataset)
  loss = lambda method, noise: (
      cells[method, 'none'].mean - cells[method, noise].mean)
  parts, holds = [], True
  for noise in SYMMETRIC + ASYMMETRIC:
    best = min(RELATED, key=lambda method: loss(method, noise))
    holds &= loss('LN', noise) < loss(best, noise)
    parts.append(f'{noise}: LN loses {loss("LN", noise):.2f}, '
                 f'{best} {loss(best, noise):.2f}')
  return holds, '; '.join(parts)


def gains_more_from_asymmetric(
    facts: evidence.Facts, dataset: str) -> Outcome:
  """LN's lead over the best baseline is larger under asymmetric noise."""
  symmetric = _lead(facts, dataset, SYMMETRIC)
  asymmetric = _lead(facts, dataset, ASYMMETRIC)
  return asymmetric > symmetric, (
      f'mean lead over the best baseline: asymmetric {asymmetric:+.2f}, '
      f'symmetric {symmetric:+.2f}')


def gains_most_on_cifar100(facts: evidence.Facts, dataset: str) -> Outcome:
  """LN's lead over the best baseline is largest on CIFAR-100."""
  del dataset
  leads_ = {name: _lead(facts, name, SYMMETRIC + ASYMMETRIC)
            for name in ('mnist', 'cifar10', 'cifar100')}
  return max(leads_, key=leads_.get) == 'cifar100', (
      'mean lead over the best baseline: ' + ', '.join(
          f'{name} {value:+.2f}' for name, value in leads_.items()))


def _lead(facts, dataset, columns):
  cells = facts.cells('synthetic_noise', dataset)
  return statistics.fmean(
      cells['LN', column].mean
      - max(cells[other, column].mean for other in BASELINES)
      for column in columns)


def by_ten_points(facts: evidence.Facts, dataset: str) -> Outcome:
  """At 40 % asymmetric noise LN leads by more than ten points."""
  lead = _lead(facts, dataset, ['asym:0.4'])
  return lead > 10., f'LN leads by {lead:+.2f} points'


def barely_affected(facts: evidence.Facts, dataset: str) -> Outcome:
  """From 20 to 30 % asymmetric noise LN loses less than one point."""
  cells = facts.cells('synthetic_noise', dataset)
  low, high = cells['LN', 'asym:0.2'].mean, cells['LN', 'asym:0.3'].mean
  return low - high < 1., f'asym:0.2 {low:.2f}, asym:0.3 {high:.2f}'


def natural_leads(facts: evidence.Facts, dataset: str) -> Outcome:
  """LN beats the related methods on all human label sets."""
  return leads('natural_noise', 'LN', RELATED, natural_noise.NOISES[dataset])(
      facts, dataset)


def natural_strong(facts: evidence.Facts, dataset: str) -> Outcome:
  """GCE and NAN beat CE on all natural label sets."""
  cells = facts.cells('natural_noise', dataset)
  rows = ('GCE', 'NAN', 'CE')
  holds, parts = True, []
  for column in natural_noise.NOISES[dataset]:
    *strong, ce = (cells[row, column].mean for row in rows)
    holds &= min(strong) > ce
    parts.append(f'{column}: {_means(cells, rows, column)}')
  return holds, '; '.join(parts)


def natural_second(facts: evidence.Facts, dataset: str) -> Outcome:
  """Of all methods but GCE, none is significantly better than LN."""
  cells = facts.cells('natural_noise', dataset)
  others = [name for name in BASELINES if name != 'GCE']
  parts, holds = [], True
  for column in natural_noise.NOISES[dataset]:
    best = max(others, key=lambda other: cells[other, column].mean)
    text, worse = _significantly_below(
        cells, ('LN', column), (best, column))
    holds &= not worse
    parts.append(f'{column}: {text}')
  return holds, '; '.join(parts)


def as_good_as_het(facts: evidence.Facts, dataset: str) -> Outcome:
  """LN is not significantly worse than Het-tau and Het-tau-Sigma."""
  cells = facts.cells('natural_noise', dataset)
  texts, worse = zip(*(
      _significantly_below(cells, ('LN', 'none'), (other, 'none'))
      for other in ('Het-tau', 'Het-tau-Sigma')))
  return not any(worse), '; '.join(texts)


def identity_is_worst(facts: evidence.Facts, dataset: str) -> Outcome:
  """Every covariance that is learnt beats the identity significantly."""
  cells, column = facts.cells('ablation', dataset), ablation.NOISES[dataset]
  return _all_below(cells, [
      (('LN-identity', column), (row, column))
      for row in ('LN-isotropic', 'LN-diagonal', 'LN')])


def full_is_best(facts: evidence.Facts, dataset: str) -> Outcome:
  """The full covariance beats the other three significantly."""
  cells, column = facts.cells('ablation', dataset), ablation.NOISES[dataset]
  return _all_below(cells, [
      ((row, column), ('LN', column))
      for row in ('LN-identity', 'LN-isotropic', 'LN-diagonal')])


def dummy_makes_no_difference(facts: evidence.Facts, dataset: str) -> Outcome:
  """With ten classes, full with and without dummy do not differ."""
  cells, column = facts.cells('ablation', dataset), ablation.NOISES[dataset]
  places = sorted((('LN', column), ('LN-no-dummy', column)),
                  key=lambda place: cells[place].mean)
  text, worse = _significantly_below(cells, *places)
  return not worse, text


def dummy_is_crucial(facts: evidence.Facts, dataset: str) -> Outcome:
  """With a hundred classes it costs more than ten points to leave it out."""
  cells, column = facts.cells('ablation', dataset), ablation.NOISES[dataset]
  lead = cells['LN', column].mean - cells['LN-no-dummy', column].mean
  return lead > 10., _means(cells, ('LN', 'LN-no-dummy'), column)


def best_calibrated(facts: evidence.Facts, dataset: str) -> Outcome:
  """LN's NLL under three annotators is significantly below all others."""
  cells = facts.cells('calibration', dataset)
  return _all_below(cells, [
      (('LN', 'none'), (row, 'none'))
      for row in ('CE', 'GCE', 'NAN', 'Het-tau-Sigma')])


def _means(cells, rows, column):
  return ', '.join(f'{row} {cells[row, column].mean:.2f}' for row in rows)


def _all_below(cells, places) -> Outcome:
  """Whether the first of each two places is significantly below the other."""
  texts, below = zip(*(_significantly_below(cells, *two) for two in places))
  return all(below), '; '.join(texts)


def _significantly_below(cells, one, other) -> tuple[str, bool]:
  """Welch's t-test; raises `NotRun` where there is a single seed."""
  a, b = cells[one], cells[other]
  if min(a.seeds, b.seeds) < 2:
    raise evidence.NotRun('a test needs at least two seeds')
  p = tables.p_value((a.mean, a.std, a.seeds), (b.mean, b.std, b.seeds))
  text = f'{one[0]} {a.mean:.2f}, {other[0]} {b.mean:.2f} (p = {p:.3f})'
  return text, a.mean < b.mean and p < tables.SIGNIFICANCE

"""The claims of the paper that rest on its tables."""

import statistics

from experiments.output import tables
from experiments.paper import claims
from experiments.paper import grids

CLAIMS = claims.Claims()

_RELATED = ('Forward', 'Het', 'Het-tau', 'Het-tau-Sigma')
_BASELINES = tuple(name for name in grids.METHODS if name != 'LN')
_HUMAN = tuple(grids.ABLATION_NOISES)


@CLAIMS.add(
    'Among Forward and the Het methods, LN degrades least under all noise '
    'types and rates.',
    '5.4, table 1', grids.SYNTHETIC_DATASETS)
def _degrades_least(facts, dataset):
  cells = facts.cells('synthetic_noise', dataset)
  loss = lambda method, noise: (
      cells[method, 'none'].mean - cells[method, noise].mean)
  parts, holds = [], True
  for noise in grids.SYNTHETIC_NOISES[1:]:
    best = min(_RELATED, key=lambda method: loss(method, noise))
    holds &= loss('LN', noise) < loss(best, noise)
    parts.append(f'{noise}: LN loses {loss("LN", noise):.2f}, '
                 f'{best} {loss(best, noise):.2f}')
  return holds, '; '.join(parts)


@CLAIMS.add(
    'GCE performs remarkably well on symmetric noise (one of the three best, '
    'and more than ten points above CE).',
    '5.4, table 1', grids.SYNTHETIC_DATASETS)
def _gce_performs_well(facts, dataset):
  cells = facts.cells('synthetic_noise', dataset)
  parts, holds = [], True
  for column in grids.SYMMETRIC:
    gce, ce = (cells[name, column].mean for name in ('GCE', 'CE'))
    better = [name for name in grids.METHODS if cells[name, column].mean > gce]
    holds &= len(better) < 3 and gce > ce + 10.
    parts.append(f'{column}: GCE {gce:.2f}, CE {ce:.2f}, better: '
                 f'{", ".join(better) or "none"}')
  return holds, '; '.join(parts)


@CLAIMS.add(
    'LN leads under asymmetric noise.',
    '5.4, table 1', grids.SYNTHETIC_DATASETS)
def _ln_leads(facts, dataset):
  return _leads(facts.cells('synthetic_noise', dataset), 'LN', _BASELINES,
                grids.ASYMMETRIC)


def _leads(cells, method, others, columns) -> claims.Outcome:
  """Whether a method has a higher mean than each other in all columns."""
  parts, holds = [], True
  for column in columns:
    best = max(others, key=lambda other: cells[other, column].mean)
    ours, theirs = cells[method, column].mean, cells[best, column].mean
    holds &= ours > theirs
    parts.append(f'{column}: {method} {ours:.2f}, {best} {theirs:.2f}')
  return holds, '; '.join(parts)


@CLAIMS.add(
    "LN's lead over the best baseline is larger under asymmetric than under "
    'symmetric noise.',
    '5.4, table 1', grids.SYNTHETIC_DATASETS)
def _gains_more_from_asymmetric(facts, dataset):
  symmetric = _lead(facts, dataset, grids.SYMMETRIC)
  asymmetric = _lead(facts, dataset, grids.ASYMMETRIC)
  return asymmetric > symmetric, (
      f'mean lead over the best baseline: asymmetric {asymmetric:+.2f}, '
      f'symmetric {symmetric:+.2f}')


@CLAIMS.add(
    "LN's lead over the best baseline is largest on CIFAR-100.",
    '5.4, table 1', ('cifar100',))
def _gains_most_on_cifar100(facts, dataset):
  del dataset
  leads_ = {name: _lead(facts, name, grids.SYNTHETIC_NOISES[1:])
            for name in ('mnist', 'cifar10', 'cifar100')}
  return max(leads_, key=leads_.get) == 'cifar100', (
      'mean lead over the best baseline: ' + ', '.join(
          f'{name} {value:+.2f}' for name, value in leads_.items()))


def _lead(facts, dataset, columns):
  cells = facts.cells('synthetic_noise', dataset)
  return statistics.fmean(
      cells['LN', column].mean
      - max(cells[other, column].mean for other in _BASELINES)
      for column in columns)


@CLAIMS.add(
    'Under 40 % asymmetric noise LN leads by more than ten points (the '
    'paper: 61 against 46).',
    '5.4, table 1', ('cifar100',))
def _by_ten_points(facts, dataset):
  lead = _lead(facts, dataset, ['asym:0.4'])
  return lead > 10., f'LN leads by {lead:+.2f} points'


@CLAIMS.add(
    'LN is barely affected (less than one point) when asymmetric noise '
    'rises from 20 to 30 %.',
    '5.4, table 1', grids.SYNTHETIC_DATASETS)
def _barely_affected(facts, dataset):
  cells = facts.cells('synthetic_noise', dataset)
  low, high = cells['LN', 'asym:0.2'].mean, cells['LN', 'asym:0.3'].mean
  return low - high < 1., f'asym:0.2 {low:.2f}, asym:0.3 {high:.2f}'


@CLAIMS.add(
    'LN generalises better than Forward and the Het methods on human '
    'labels.',
    '5.5, table 2', _HUMAN)
def _natural_leads(facts, dataset):
  return _leads(facts.cells('natural_noise', dataset), 'LN', _RELATED,
                grids.NATURAL_NOISES[dataset])


@CLAIMS.add(
    'GCE and NAN are better than CE.',
    '5.5, table 2', grids.NATURAL_NOISES)
def _natural_strong(facts, dataset):
  cells = facts.cells('natural_noise', dataset)
  rows = ('GCE', 'NAN', 'CE')
  holds, parts = True, []
  for column in grids.NATURAL_NOISES[dataset]:
    *strong, ce = (cells[row, column].mean for row in rows)
    holds &= min(strong) > ce
    parts.append(f'{column}: {_means(cells, rows, column)}')
  return holds, '; '.join(parts)


@CLAIMS.add(
    'GCE apart, no method is significantly better than LN.',
    '5.5, table 2', grids.NATURAL_NOISES)
def _natural_second(facts, dataset):
  cells = facts.cells('natural_noise', dataset)
  others = [name for name in _BASELINES if name != 'GCE']
  parts, holds = [], True
  for column in grids.NATURAL_NOISES[dataset]:
    best = max(others, key=lambda other: cells[other, column].mean)
    text, worse = _significantly_below(
        cells, ('LN', column), (best, column))
    holds &= not worse
    parts.append(f'{column}: {text}')
  return holds, '; '.join(parts)


@CLAIMS.add(
    'LN is as good as Het-tau and Het-tau-Sigma (not significantly worse).',
    '5.5, table 2', ('clothing1m',))
def _as_good_as_het(facts, dataset):
  cells = facts.cells('natural_noise', dataset)
  texts, worse = zip(*(
      _significantly_below(cells, ('LN', 'none'), (other, 'none'))
      for other in ('Het-tau', 'Het-tau-Sigma')))
  return not any(worse), '; '.join(texts)


@CLAIMS.add(
    'Every covariance that is learnt beats the identity significantly.',
    '5.6, table 3', grids.ABLATION_NOISES)
def _identity_is_worst(facts, dataset):
  cells, column = _ablation(facts, dataset)
  return _all_below(cells, [
      (('LN-identity', column), (row, column))
      for row in ('LN-isotropic', 'LN-diagonal', 'LN')])


@CLAIMS.add(
    'The full covariance is significantly better than all others.',
    '5.6, table 3', grids.ABLATION_NOISES)
def _full_is_best(facts, dataset):
  cells, column = _ablation(facts, dataset)
  return _all_below(cells, [
      ((row, column), ('LN', column))
      for row in ('LN-identity', 'LN-isotropic', 'LN-diagonal')])


@CLAIMS.add(
    'With ten classes the dummy class makes no significant difference.',
    '5.6, table 3', ('digits_n', 'cifar10n'))
def _dummy_makes_no_difference(facts, dataset):
  cells, column = _ablation(facts, dataset)
  places = sorted((('LN', column), ('LN-no-dummy', column)),
                  key=lambda place: cells[place].mean)
  text, worse = _significantly_below(cells, *places)
  return not worse, text


@CLAIMS.add(
    'With a hundred classes the dummy class is crucial (more than ten '
    'points).',
    '5.6, table 3', ('cifar100n',))
def _dummy_is_crucial(facts, dataset):
  cells, column = _ablation(facts, dataset)
  lead = cells['LN', column].mean - cells['LN-no-dummy', column].mean
  return lead > 10., _means(cells, ('LN', 'LN-no-dummy'), column)


@CLAIMS.add(
    'LN has a significantly lower NLL under three annotators than all '
    'others.',
    'G.2, table 4', grids.CALIBRATION_DATASETS)
def _best_calibrated(facts, dataset):
  cells = facts.cells('calibration', dataset)
  return _all_below(cells, [
      (('LN', 'none'), (row, 'none'))
      for row in ('CE', 'GCE', 'NAN', 'Het-tau-Sigma')])


def _ablation(facts, dataset):
  """The numbers of the table, and its only column."""
  return facts.cells('ablation', dataset), grids.ABLATION_NOISES[dataset]


def _means(cells, rows, column):
  return ', '.join(f'{row} {cells[row, column].mean:.2f}' for row in rows)


def _all_below(cells, places):
  """Whether the first of each two places is significantly below the other."""
  texts, below = zip(*(_significantly_below(cells, *two) for two in places))
  return all(below), '; '.join(texts)


def _significantly_below(cells, one, other) -> tuple[str, bool]:
  """Welch's t-test; raises `NotRun` where there is a single seed."""
  a, b = cells[one], cells[other]
  if min(a.seeds, b.seeds) < 2:
    raise claims.NotRun('a test needs at least two seeds')
  p = tables.p_value((a.mean, a.std, a.seeds), (b.mean, b.std, b.seeds))
  text = f'{one[0]} {a.mean:.2f}, {other[0]} {b.mean:.2f} (p = {p:.3f})'
  return text, a.mean < b.mean and p < tables.SIGNIFICANCE

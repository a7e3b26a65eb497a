"""The claims of the paper's results section as predicates over results.

A claim is checked per data set on our results, and on the paper's own numbers
where it prints them. It holds or fails, or was not run: a claim of which any
number is missing is never taken to hold.
"""

from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
from typing import NamedTuple

from experiments import ablation
from experiments import natural_noise
from experiments import synthetic_noise
from experiments.output import evidence
from experiments.paper import figure_claims as on_figures
from experiments.paper import table_claims as on_tables

HOLDS, FAILS, NOT_RUN = 'holds', 'fails', 'not run'


class Claim(NamedTuple):
  """A claim.

  Attributes:
    text: what is claimed.
    source: of the paper: section, table or figure.
    datasets: on which it can be checked.
    check: called with the facts and a data set; raises `evidence.NotRun`.
  """
  text: str
  source: str
  datasets: Sequence[str]
  check: on_tables.Check


@dataclasses.dataclass(frozen=True)
class Verdict:
  """What became of a claim on a data set.

  Attributes:
    claim: the claim.
    dataset: the data set.
    status: HOLDS, FAILS or NOT_RUN.
    detail: the numbers compared, or what is missing.
    basis: how many seeds and epochs are behind each number.
    paper: HOLDS or FAILS on the paper's own numbers; '' where it prints none.
  """
  claim: Claim
  dataset: str
  status: str
  detail: str
  basis: str
  paper: str


def judge(facts: evidence.Facts) -> Iterator[Verdict]:
  """Checks all claims, in the order of the paper."""
  published = evidence.PublishedFacts()
  for claim in CLAIMS:
    for dataset in claim.datasets:
      facts.basis.clear()
      verdict, detail = status(claim, facts, dataset)
      paper, _ = status(claim, published, dataset)
      yield Verdict(
          claim, dataset, verdict, detail,
          basis='' if verdict == NOT_RUN else facts.basis.text(),
          paper='' if paper == NOT_RUN else paper)


def status(
    claim: Claim, facts: evidence.Facts | evidence.PublishedFacts,
    dataset: str) -> tuple[str, str]:
  """HOLDS, FAILS or NOT_RUN, and the numbers compared or what is missing."""
  try:
    holds, detail = claim.check(facts, dataset)
  except evidence.NotRun as reason:
    return NOT_RUN, str(reason)
  except KeyError as missing:  # a part of a figure, left out by its flags
    return NOT_RUN, f'{missing.args[0]} is not in the figure'
  return (HOLDS if holds else FAILS), detail


_SYNTHETIC = synthetic_noise.DATASETS
_HUMAN = tuple(name for name in natural_noise.NOISES if name != 'clothing1m')
_ABLATION = tuple(ablation.NOISES)
_ALL_BUT_GCE = (
    *(name for name in on_tables.BASELINES if name != 'GCE'), 'LN')

CLAIMS = (
    Claim(
        'CE fits nearly all noisy labels (more than 90 %); LN does not, and '
        'generalises better.',
        '5.3, figure 3', ('two_moons', 'circles'), on_figures.toy_boundary),
    Claim(
        'Among Forward and the Het methods, LN degrades least under all noise '
        'types and rates.',
        '5.4, table 1', _SYNTHETIC, on_tables.degrades_least),
    Claim(
        'GCE leads under symmetric noise.', '5.4, table 1', _SYNTHETIC,
        on_tables.leads(
            'synthetic_noise', 'GCE', _ALL_BUT_GCE, on_tables.SYMMETRIC)),
    Claim(
        'LN leads under asymmetric noise.', '5.4, table 1', _SYNTHETIC,
        on_tables.leads(
            'synthetic_noise', 'LN', on_tables.BASELINES,
            on_tables.ASYMMETRIC)),
    Claim(
        "LN's lead over the best baseline is larger under asymmetric than "
        'under symmetric noise.',
        '5.4, table 1', _SYNTHETIC, on_tables.gains_more_from_asymmetric),
    Claim(
        "LN's lead over the best baseline is largest on CIFAR-100.",
        '5.4, table 1', ('cifar100',), on_tables.gains_most_on_cifar100),
    Claim(
        'Under 40 % asymmetric noise LN leads by more than ten points (the '
        'paper: 61 against 46).',
        '5.4, table 1', ('cifar100',), on_tables.by_ten_points),
    Claim(
        'LN is barely affected (less than one point) when asymmetric noise '
        'rises from 20 to 30 %.',
        '5.4, table 1', _SYNTHETIC, on_tables.barely_affected),
    Claim(
        'LN generalises better than Forward and the Het methods on human '
        'labels.',
        '5.5, table 2', _HUMAN, on_tables.natural_leads),
    Claim(
        'LN is as good as Het-tau and Het-tau-Sigma (not significantly worse).',
        '5.5, table 2', ('clothing1m',), on_tables.as_good_as_het),
    Claim(
        'GCE and NAN are better than CE.',
        '5.5, table 2', (*_HUMAN, 'clothing1m'), on_tables.natural_strong),
    Claim(
        'GCE apart, no method is significantly better than LN.',
        '5.5, table 2', (*_HUMAN, 'clothing1m'), on_tables.natural_second),
    Claim(
        'LN fits fewer wrong labels than Het-tau-Sigma, and its validation '
        'accuracy falls less.',
        '5.6, figure 4', _SYNTHETIC, on_figures.fits_fewer_wrong_labels),
    Claim(
        'Het-tau-Sigma improves early and degrades then (by more than one '
        'point).',
        '5.6, figure 4', _SYNTHETIC, on_figures.het_degrades),
    Claim(
        'A small tau overfits to the noise.',
        '5.6, figure 5', _SYNTHETIC, on_figures.small_tau_overfits),
    Claim(
        'A large tau with a small lambda converges slowly (at the end at least '
        'one point fewer of the right labels is fitted).',
        '5.6, figure 5', _SYNTHETIC, on_figures.slow_convergence),
    Claim(
        'Where the covariance is learnt, fewer of the wrong labels are fitted.',
        '5.6, figure 6', ('digits', 'cifar10'),
        on_figures.covariance_resists),
    Claim(
        'Every covariance that is learnt beats the identity significantly.',
        '5.6, table 3', _ABLATION, on_tables.identity_is_worst),
    Claim(
        'The full covariance is significantly better than all others.',
        '5.6, table 3', _ABLATION, on_tables.full_is_best),
    Claim(
        'With ten classes the dummy class makes no significant difference.',
        '5.6, table 3', ('digits_n', 'cifar10n'),
        on_tables.dummy_makes_no_difference),
    Claim(
        'With a hundred classes the dummy class is crucial (more than ten '
        'points).',
        '5.6, table 3', ('cifar100n',), on_tables.dummy_is_crucial),
    Claim(
        'The covariance raises the loss of right labels and lowers that of '
        'wrong ones.',
        'D, figure 7', ('digits', 'mnist', 'fashion_mnist', 'cifar10'),
        on_figures.covariance_reweights),
    Claim(
        'Where the covariance is learnt, fewer of the wrong labels are fitted '
        '(symmetric noise and human labels).',
        'G.3', ('digits', 'cifar10'),
        on_figures.covariance_resists_others),
    Claim(
        'Label smoothing matters little (less than three points) for small '
        'lambda.',
        'G.1, figure 8', _SYNTHETIC, on_figures.smoothing_matters_little),
    Claim(
        'For lambda = 1 more label smoothing degrades accuracy.',
        'G.1, figure 8', _SYNTHETIC, on_figures.smoothing_hurts),
    Claim(
        'LN has a significantly lower NLL under three annotators than all '
        'others.',
        'G.2, table 4', ('digits_n', 'cifar10n'), on_tables.best_calibrated),
)

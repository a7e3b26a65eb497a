"""The claims of the paper's results section as predicates over results.

A claim is checked per data set on our results, and on the paper's own numbers
where it prints them. It holds or fails, or was not run: a claim of which any
number is missing is never taken to hold.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import NamedTuple
from typing import Protocol

from experiments import training
from experiments.paper import grids
from experiments.paper import published

HOLDS, FAILS, NOT_RUN = 'holds', 'fails', 'not run'


class NotRun(Exception):
  """A number is missing; the message says which."""


@dataclasses.dataclass(frozen=True)
class Number:
  """Mean and standard deviation over `seeds` runs.

  `settings` says how these were trained, see `evidence.Facts.settings`.
  """
  mean: float
  std: float | None
  seeds: int
  settings: frozenset[str] = frozenset()


@dataclasses.dataclass
class Basis:
  """What is behind the numbers that were asked for."""
  seeds: set[int] = dataclasses.field(default_factory=set)
  settings: set[str] = dataclasses.field(default_factory=set)

  def clear(self) -> None:
    """Forgets."""
    self.seeds.clear()
    self.settings.clear()

  def text(self) -> str:
    """Such as 'n = 5, the recipe of digits'."""
    return f'n = {_ends(self.seeds)}, {", ".join(sorted(self.settings))}'


def _ends(values: set[int]) -> str:
  return ' to '.join(map(str, sorted({min(values), max(values)})))


class Cells(dict[grids.Place, Number]):
  """Numbers by (row, column); a missing one raises `NotRun`.

  Args:
    numbers: the numbers there are.
    basis: where is noted what is behind each number that is asked for.
    why_not: of numbers that are not there: what became of their runs.
  """

  def __init__(
      self, numbers: Mapping[grids.Place, Number], basis: Basis,
      why_not: Mapping[grids.Place, str] | None = None):
    super().__init__(numbers)
    self._basis = basis
    self._why_not = why_not or {}

  def __getitem__(self, place: grids.Place) -> Number:
    if place not in self:
      why = self._why_not.get(place, NOT_RUN)
      raise NotRun(f'{place[0]} with {place[1]}: {why}')
    number = super().__getitem__(place)
    self._basis.seeds.add(number.seeds)
    self._basis.settings |= number.settings
    return number


class Facts(Protocol):
  """Where numbers come from: `evidence.Facts`, or the paper."""
  basis: Basis

  def cells(self, table: str, dataset: str) -> Cells:
    """The numbers of a table of which all runs have finished."""

  def figure(self, name: str, *noises: str) -> list[training.Result]:
    """The results behind a figure; all of them have to be there."""

  def numbers(self, name: str, *noises: str) -> dict[str, float]:
    """The numbers noted with a figure, whose runs have to be there."""


class PublishedFacts:
  """The paper's own numbers; it prints none of figures."""

  def __init__(self):
    self.basis = Basis()

  def cells(self, table: str, dataset: str) -> Cells:
    """The numbers of a table."""
    return Cells({
        place: Number(number.mean, number.std, published.SEEDS)
        for place, number in published.cells(table, dataset).items()},
                 self.basis)

  def figure(self, name: str, *noises: str):
    raise NotRun('the paper prints no numbers')

  numbers = figure


# Whether it holds, and the numbers that were compared.
Outcome = tuple[bool, str]
# Called with the facts and a data set; raises `NotRun`.
Check = Callable[[Facts, str], Outcome]


class Claim(NamedTuple):
  """A claim.

  Attributes:
    text: what is claimed.
    source: of the paper: section, table or figure.
    datasets: on which it can be checked.
    check: whether it holds.
  """
  text: str
  source: str
  datasets: Sequence[str]
  check: Check


class Claims(list[Claim]):
  """Claims, each of which is written above its check."""

  def add(
      self, text: str, source: str,
      datasets: Iterable[str]) -> Callable[[Check], Check]:
    """A decorator that makes a check a claim, see `Claim`."""
    def decorate(check):
      self.append(Claim(text, source, tuple(datasets), check))
      return check
    return decorate


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


def judge(facts: Facts, claims: Iterable[Claim]) -> Iterator[Verdict]:
  """Checks claims, in the order of the paper."""
  paper_facts = PublishedFacts()
  for claim in sorted(claims, key=lambda claim: claim.source):
    for dataset in claim.datasets:
      facts.basis.clear()
      verdict, detail = status(claim, facts, dataset)
      paper, _ = status(claim, paper_facts, dataset)
      yield Verdict(
          claim, dataset, verdict, detail,
          basis='' if verdict == NOT_RUN else facts.basis.text(),
          paper='' if paper == NOT_RUN else paper)


def status(claim: Claim, facts: Facts, dataset: str) -> tuple[str, str]:
  """HOLDS, FAILS or NOT_RUN, and the numbers compared or what is missing."""
  try:
    holds, detail = claim.check(facts, dataset)
  except NotRun as reason:
    return NOT_RUN, str(reason)
  except KeyError as missing:  # a part of a figure, left out by its flags
    return NOT_RUN, f'{missing.args[0]} is not in the figure'
  return (HOLDS if holds else FAILS), detail

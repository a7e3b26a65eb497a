"""Contestants that take turns, and the ratios that come of it."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import math
import statistics
import time

import numpy as np

# Runs for a while; returns how many times it did what is measured.
Contestant = Callable[[], int]


@dataclasses.dataclass(frozen=True)
class Row:
  """One line of the report.

  Attributes:
    name: what is compared with what.
    value: the ratio of the minima, or another number.
    median: the ratio of the medians.
    low: the smallest ratio of a round.
    high: the largest ratio of a round.
    n: number of rounds.
    goal: as '<= 1.3'; '' where there is none.
    detail: figures that explain the value.
  """
  name: str
  value: float
  median: float | None = None
  low: float | None = None
  high: float | None = None
  n: int = 1
  goal: str = ''
  detail: str = ''

  @property
  def is_met(self) -> bool | None:
    """Whether the goal is met; None where there is none."""
    if not self.goal:
      return None
    sign, bound = self.goal.split()
    return (self.value <= float(bound) if sign == '<='
            else self.value >= float(bound))


def take_turns(
    contestants: Mapping[str, Contestant], rounds: int
) -> dict[str, list[float]]:
  """Milliseconds for one unit of work of each contestant, round by round.

  A round before the first warms up.
  """
  times = {name: [] for name in contestants}
  for number in range(rounds + 1):
    for name, contestant in contestants.items():
      begin = time.perf_counter()
      units = contestant()
      if number:
        times[name].append(1e3 * (time.perf_counter() - begin) / units)
  return times


def repeat(
    function: Callable[[], object], seconds: float = .05) -> Contestant:
  """Calls of a function that take about so long together."""
  function()  # traces and compiles
  begin = time.perf_counter()
  function()
  once = time.perf_counter() - begin
  count = max(1, math.ceil(seconds / once))

  def contestant():
    for _ in range(count):
      function()
    return count

  return contestant


def ratio(
    name: str, times: Mapping[str, list[float]], first: str, second: str,
    goal: str = '') -> Row:
  """The time of the first contestant in units of the second's."""
  one, two = times[first], times[second]
  rounds = [a / b for a, b in zip(one, two)]
  return Row(
      name, min(one) / min(two),
      statistics.median(one) / statistics.median(two),
      min(rounds), max(rounds), len(rounds), goal,
      f'{first} {min(one):.3g} ms, {second} {min(two):.3g} ms')


def slope(
    name: str, sizes: list[float], values: list[float], unit: str) -> Row:
  """The slope of log(value) over log(size), by least squares; goal: 1."""
  value = np.polyfit(np.log(sizes), np.log(values), 1)[0]
  points = ', '.join(f'{size:,}: {v:.3g}' for size, v in zip(sizes, values))
  return Row(name, float(value), n=len(sizes), goal='<= 1',
             detail=f'{points} {unit}')

"""What programs want trained, noted instead of trained.

    agenda = Agenda(launch.make_plan)
    with agenda.noting():
      try:
        program.main(argv)   # its `launch.train` asks the agenda
      except agenda_lib.Unfinished:
        ...                  # `agenda.runs` has what it waits for

A dry run is an agenda that is never worked off; `experiments.all` has one of
all tables and figures, and trains it in one sweep.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
import contextlib

from experiments import training
from experiments.sweep import plan as plan_lib

_noting: list[Agenda] = []


class Unfinished(Exception):
  """A program cannot go on: runs that it needs are not finished."""


def current() -> Agenda | None:
  """The agenda that notes what is asked for now, if any."""
  return _noting[-1] if _noting else None


class Agenda:
  """Runs that programs have asked for.

  Args:
    make_plan: makes the plan of runs, see `plan.Plan`.
    is_forecast: nothing will be trained; programs stop where they would train
      their last runs, finished or not.
    guesses: whether hyperparameters that are not tuned yet may be guessed,
      because a search for them is on the agenda, too.

  Attributes:
    runs: all that were asked for, by key.
    pending: those that are not finished, with their prerequisites, by key.
    settled: keys of runs that were tried, whatever became of them.
  """

  def __init__(
      self, make_plan: Callable[..., plan_lib.Plan],
      is_forecast: bool = False, guesses: bool = False):
    self.is_forecast = is_forecast
    self.guesses = guesses
    self.runs: dict[str, training.Run] = {}
    self.pending: dict[str, training.Run] = {}
    self.settled: dict[str, str] = {}
    self._make_plan = make_plan
    self._keep: dict[str, list[plan_lib.Predicate]] = {}
    self._need: dict[str, list[plan_lib.Predicate]] = {}

  @contextlib.contextmanager
  def noting(self) -> Iterator[None]:
    """What `launch.train` is asked for meanwhile goes to this agenda."""
    _noting.append(self)
    try:
      yield
    finally:
      _noting.remove(self)

  def note(
      self, runs: Iterable[training.Run],
      keep_weights: plan_lib.Predicate = plan_lib.never,
      need_weights: plan_lib.Predicate = plan_lib.never) -> plan_lib.Plan:
    """Adds runs, see `launch.train`; returns the plan of these alone."""
    runs = list(runs)
    plan = self._make_plan(runs, keep_weights, need_weights)
    for run in runs:
      self.runs[run.key] = run
      self._keep.setdefault(run.key, []).append(keep_weights)
      self._need.setdefault(run.key, []).append(need_weights)
    self.pending |= plan.pending
    return plan

  def take(
      self, runs: Iterable[training.Run], keep_weights: plan_lib.Predicate,
      need_weights: plan_lib.Predicate) -> plan_lib.Results:
    """Adds runs; the results of those that are finished.

    Raises `Unfinished` where a run is neither finished nor settled.
    """
    plan = self.note(runs, keep_weights, need_weights)
    if self.is_forecast or set(plan.pending) - set(self.settled):
      raise Unfinished
    for key in plan.pending:
      plan.results.failures[key] = self.settled[key]
    return plan.results

  def settle(self, results: plan_lib.Results) -> None:
    """Takes the outcome of a sweep over all that is pending."""
    for key in self.pending:
      self.settled[key] = results.failures.get(key, 'left no result')
    self.pending.clear()

  def plan(self) -> plan_lib.Plan:
    """The plan of all that was asked for."""
    return self._make_plan(
        self.runs.values(), self.keeps_weights, self.needs_weights)

  def keeps_weights(self, run: training.Run) -> bool:
    """Whether a program wants a run's weights kept."""
    return any(asks(run) for asks in self._keep.get(run.key, ()))

  def needs_weights(self, run: training.Run) -> bool:
    """Whether a program needs a run's weights."""
    return any(asks(run) for asks in self._need.get(run.key, ()))

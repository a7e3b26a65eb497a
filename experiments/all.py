"""Every table and figure of the paper: one plan, one sweep, then all output.

    python -m experiments.all
    python -m experiments.all --data=features --data_dir=DIR
    python -m experiments.all --data=paper --dry_run

Collects the runs of all programs, trains each once, however many tables and
figures share it, and writes every table, figure, the tables in the paper's own
layout (OUTPUT_DIR/tables/paper-*.tex) and the report. Where hyperparameters are
not tuned yet, their search comes first, and a second sweep trains the winners.
--dry_run gives the runs and the time by table. --programs chooses some of them.

Data: embedded (default), features (of CIFAR and CIFAR-N, see embed), mnist,
cifar, paper (all that the paper has: mnist, cifar and clothing1m).
Time: embedded, five seeds, about 80 minutes on two idle cores (1,146 runs);
the others: --dry_run.
Expected: the paths of what is written, and at the end how many claims of the
paper hold, fail and were not run.
"""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses
import pathlib
import sys

from absl import flags

from experiments import ablation
from experiments import accuracy_evolution
from experiments import attenuation
from experiments import calibration
from experiments import hyperparameters
from experiments import label_smoothing
from experiments import logit_simplex
from experiments import natural_noise
from experiments import residuals
from experiments import sensitivity
from experiments import synthetic_noise
from experiments import toy_datasets
from experiments.cli import app
from experiments.cli import recipes
from experiments.data import registry
from experiments.output import assembled
from experiments.output import evidence
from experiments.output import report
from experiments.paper import grids
from experiments.paper import tuned
from experiments.sweep import agenda as agenda_lib
from experiments.sweep import estimates as estimates_lib
from experiments.sweep import launch

FLAGS = flags.FLAGS

_CIFAR = ('cifar10', 'cifar100', 'cifar10n', 'cifar100n')
DATA = {
    'embedded': (*grids.TOY_DATASETS, 'digits', 'digits_n'),
    'features': tuple(
        name for name in registry.NAMES if registry.traits(name).images),
    'mnist': ('mnist',),
    'cifar': _CIFAR,
    'paper': (*grids.TOY_DATASETS, 'mnist', *_CIFAR, 'clothing1m'),
}
# The paper's figures are of CIFAR-10; these stand for it.
_FIGURES = ('digits', 'cifar10', 'cifar10_features')
# Program -> the data sets it is called for. The three figures of the end are of
# no data set, or of both toy sets.
PROGRAMS = {
    'synthetic_noise': grids.SYNTHETIC_DATASETS,
    'natural_noise': tuple(grids.NATURAL_NOISES),
    'ablation': tuple(grids.ABLATION_NOISES),
    'calibration': tuple(grids.CALIBRATION_DATASETS),
    'hyperparameters': (*grids.SYNTHETIC_DATASETS, *grids.NATURAL_NOISES),
    'accuracy_evolution': _FIGURES,
    'sensitivity': _FIGURES,
    'label_smoothing': _FIGURES,
    'residuals': (*_FIGURES, 'mnist'),
    'toy_datasets': grids.TOY_DATASETS[:1],
    'logit_simplex': grids.TOY_DATASETS[:1],
    'attenuation': grids.TOY_DATASETS[:1],
}
_MODULES = {
    module.__name__.rpartition('.')[2]: module for module in (
        ablation, accuracy_evolution, attenuation, calibration,
        hyperparameters, label_smoothing, logit_simplex, natural_noise,
        residuals, sensitivity, synthetic_noise, toy_datasets)}
_UNTRAINED = ('logit_simplex', 'attenuation')
_SEARCHING = ('synthetic_noise', 'natural_noise', 'ablation', 'calibration',
              'accuracy_evolution')
_SEEDED = (*_SEARCHING, 'sensitivity', 'label_smoothing')

flags.DEFINE_enum('data', 'embedded', tuple(DATA), 'On which data.')
flags.DEFINE_list(
    'programs', None,
    f'Some of: {", ".join(PROGRAMS)}. Default: all of them.')


@dataclasses.dataclass(frozen=True)
class Job:
  """A table or figure: a program, called for a data set.

  Attributes:
    program: its name.
    arguments: what one would type to have this table or figure alone.
  """
  program: str
  arguments: tuple[str, ...]

  @property
  def name(self) -> str:
    """Such as synthetic_noise-digits."""
    return f'{self.program}-{self.arguments[0].partition("=")[2]}'

  def call(self, agenda: agenda_lib.Agenda) -> int:
    """Calls the program; raises `Unfinished` where runs are missing."""
    own, sys.argv = sys.argv, [self.program, *self.arguments]
    try:
      recipes.parse(sys.argv)
      with agenda.noting():
        return _MODULES[self.program].main(sys.argv[:1]) or 0
    except app.BadFlagError as error:
      if isinstance(error.__cause__, tuned.NotTunedError):
        raise agenda_lib.Unfinished(str(error)) from error
      raise
    finally:
      sys.argv = own
      recipes.parse(own)


def jobs() -> Iterator[Job]:
  """All tables and figures of the data that the flags ask for."""
  names = list(FLAGS.programs or PROGRAMS)
  for name in names:
    if name not in PROGRAMS:
      raise app.BadFlagError(
          f'--programs: must be some of {", ".join(PROGRAMS)}. '
          f'Received: {name}')
  given = _given()
  for name, datasets in PROGRAMS.items():
    refused = [] if name in _SEEDED else ['seeds']
    refused += [] if name in _SEARCHING else ['search']
    passed = [text for flag, text in given.items() if flag not in refused]
    for dataset in DATA[FLAGS.data]:
      if name in names and dataset in datasets:
        yield Job(name, (f'--dataset={dataset}', *passed))


def _given() -> dict[str, str]:
  """The flags of the command line for all programs, and how to type them."""
  FLAGS.unparse_flags()
  FLAGS(sys.argv)  # without a recipe, whose flags would seem to be given
  given = {
      name: FLAGS[name].serialize() for name in FLAGS
      if FLAGS[name].present and name not in ('data', 'programs')}
  given.setdefault('seeds', f'--seeds={FLAGS.seeds}')
  recipes.parse(sys.argv)
  return given


def forecast(chosen: list[Job]) -> None:
  """Prints runs and time by table; a run counts where it comes first."""
  searched = any(job.program == 'hyperparameters' for job in chosen)
  slots, seen, lines, everything = launch.slots(), set(), [], []
  for job in chosen:
    if job.program in _UNTRAINED:
      continue
    agenda = agenda_lib.Agenda(
        launch.make_plan, is_forecast=True, guesses=searched)
    try:
      job.call(agenda)
    except agenda_lib.Unfinished as reason:
      if str(reason):
        raise app.BadFlagError(f'{job.name}: {reason}') from reason
    plan = agenda.plan()
    new = [run for key, run in plan.pending.items() if key not in seen]
    lines.append((job.name, len(plan.pending) + len(plan.results), new))
    seen |= set(plan.pending)
    everything += new
  estimates = launch.make_plan([]).estimate()
  duration = lambda runs: estimates_lib.duration(
      estimates.all_seconds(runs, slots)) if runs else ''
  print(f'{"":38}{"runs":>6}{"to train":>10}{"time":>12}')
  for name, count, new in lines:
    print(f'{name:38}{count:6}{len(new):10}{duration(new):>12}'.rstrip())
  print(f'{"all":38}{"":6}{len(everything):10}'
        f'{duration(everything):>12}'.rstrip())
  print(f'{slots} runs at a time. A run counts once, in the first line that '
        'has it.')


def main(argv):
  del argv
  app.refuse('dataset', 'methods', 'noise', 'grid')
  chosen = list(jobs())
  if FLAGS.dry_run:
    forecast(chosen)
    return 0
  status = work_off(chosen)
  directory = pathlib.Path(FLAGS.output_dir)
  for file in assembled.write(directory):
    print(file)
  facts = evidence.Facts(directory)
  report.build(directory, facts).save(directory / 'report.html')
  print(directory / 'report.html')
  print(f'Claims: {report.counts(facts)}.')
  return status


def work_off(waiting: list[Job]) -> int:
  """Trains and writes all; returns the exit status."""
  agenda, status = agenda_lib.Agenda(launch.make_plan), 0
  # Winners are written before they are asked for.
  waiting = sorted(waiting, key=lambda job: job.program != 'hyperparameters')
  while waiting:
    left = {}
    for job in waiting:
      try:
        status |= job.call(agenda)
      except agenda_lib.Unfinished as reason:
        left[job] = str(reason)
      except launch.IncompleteError as error:
        print(f'{job.name}: {error}', file=sys.stderr)
        status = 1
    if not agenda.pending:
      for job, reason in left.items():  # nothing more will come
        print(f'{job.name}: {reason}', file=sys.stderr)
        status = 1
      return status
    agenda.settle(launch.train(
        agenda.pending.values(), agenda.keeps_weights, agenda.needs_weights))
    waiting = list(left)
  return status


if __name__ == '__main__':
  app.start(main, seeds=5)

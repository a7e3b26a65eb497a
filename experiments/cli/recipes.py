"""Recipes: `--dataset` loads `flags/DATASET.cfg`, the command line overrides.

A data set without such a file brings its recipe itself (`data.Traits.recipe`).

A recipe is an absl flagfile with all that does not depend on the method
(Appendix C of the paper); `base_run` turns it into a `training.Run`.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import dataclasses
import inspect
import pathlib
import sys

from absl import flags

from experiments import data
from experiments import models
from experiments import training
from experiments.cli import pairs
from experiments.paper import protocols
from experiments.training import runs

DIRECTORY = pathlib.Path(__file__).resolve().parents[2] / 'flags'
FLAGS = flags.FLAGS


class BadFlagError(ValueError):
  """What the user asked for cannot be; the message is one line."""


@contextlib.contextmanager
def naming(flag: str) -> Iterator[None]:
  """Turns errors about values into a `BadFlagError` that names the flag."""
  try:
    yield
  except BadFlagError:  # names its flag already
    raise
  except (TypeError, ValueError) as error:
    raise BadFlagError(f'--{flag}: {error}') from error


def _define(values: flags.FlagValues) -> None:
  """Defines the flags that a recipe sets."""
  define = dict(flag_values=values, module_name=__name__)
  flags.DEFINE_string(
      'dataset', 'digits',
      f'Data set; loads its recipe, flags/DATASET.cfg. One of: '
      f'{", ".join(data.NAMES)}.', **define)
  flags.DEFINE_integer(
      'epochs', 100, 'Passes over the training set.', **define)
  flags.DEFINE_string(
      'model', 'mlp', f'Network: {", ".join(models.NAMES)}.', **define)
  flags.DEFINE_string(
      'model_arguments', '',
      'Arguments of the network, such as "widths=[2000,2000]".', **define)
  flags.DEFINE_string(
      'optimizer', 'adam',
      f'Optimiser: {", ".join(runs.OPTIMIZERS)}. sgd has Nesterov momentum '
      '0.9, gd has none.', **define)
  flags.DEFINE_float('learning_rate', 1e-3, 'Learning rate.', **define)
  flags.DEFINE_float(
      'weight_decay', 0.,
      'w adds w/2 * sum(p^2) over all that is trainable to the loss.',
      **define)
  flags.DEFINE_integer(
      'batch_size', 64,
      'Batch of all devices together; 0 takes all examples.', **define)
  flags.DEFINE_integer(
      'per_class', 0,
      'An epoch is a balanced subset with this many examples of each class, '
      'redrawn each time; 0 takes all examples.', **define)
  flags.DEFINE_bool('jit', False, 'Compile the training step (XLA).', **define)
  flags.DEFINE_bool(
      'mixed_precision', False, 'Compute in bfloat16.', **define)
  flags.DEFINE_enum(
      'stop', 'none', runs.STOPS,
      'A rule that chooses an epoch without clean labels; results then have '
      'its metrics beside those of the last epoch, see --at.', **define)
  flags.DEFINE_string(
      'protocol', 'paper',
      f'Whose protocol: {" or ".join(protocols.NAMES)}. Where the text of the '
      "paper and the authors' code differ, see docs/protocol.md.", **define)
  flags.DEFINE_string(
      'options', '',
      'Single options of the protocol, such as "pad=4 truck=true"; see '
      'docs/protocol.md.', **define)


_define(FLAGS)


def path(dataset: str) -> pathlib.Path:
  """The recipe of a data set."""
  if dataset not in data.NAMES:
    raise BadFlagError(
        f'--dataset: must be one of {", ".join(data.NAMES)}. '
        f'Received: {dataset}')
  return DIRECTORY / f'{dataset}.cfg'


def _recipe(dataset: str) -> list[str]:
  """The recipe of a data set as arguments."""
  file = path(dataset)
  own = data.traits(dataset).recipe
  return list(own) if own and not file.exists() else [f'--flagfile={file}']


def parse(argv: Sequence[str]) -> list[str]:
  """Parses the command line on top of the recipe that it names."""
  FLAGS.unparse_flags()  # what was parsed before counts for nothing
  FLAGS(argv)
  recipe = _recipe(FLAGS.dataset)
  FLAGS.unparse_flags()
  return FLAGS([argv[0], *recipe, *argv[1:]])


def base_run(dataset: str | None = None) -> training.Run:
  """The run that recipe and flags describe, without method, noise and seed.

  Args:
    dataset: another data set than that of the flag, with its own recipe; the
      command line overrides that one, too.
  """
  if dataset in (None, FLAGS.dataset):
    return _to_run(FLAGS)
  return _to_run(_parse_apart(
      dataset, [*sys.argv[1:], f'--dataset={dataset}']))


def deviations(run: training.Run) -> list[str]:
  """A note for a table of runs that do not follow their recipe.

  Of method, noise and seed a recipe says nothing.
  """
  recipe = _to_run(_parse_apart(run.dataset, [f'--dataset={run.dataset}']))
  changed = [
      f'{field.name}={getattr(run, field.name)}'
      for field in dataclasses.fields(run)
      if field.name not in ('method', 'hyperparameters', 'noise', 'seed')
      and getattr(run, field.name) != getattr(recipe, field.name)]
  if not changed:
    return []
  return [f'Not the recipe of {run.dataset}: {", ".join(changed)}.']


def _parse_apart(dataset: str, arguments: list[str]) -> flags.FlagValues:
  """A recipe with arguments, parsed without touching the program's flags."""
  values = flags.FlagValues()
  _define(values)
  values([sys.argv[0], *_recipe(dataset), *arguments], known_only=True)
  return values


def _to_run(values: flags.FlagValues) -> training.Run:
  if values.model not in models.NAMES:
    raise BadFlagError(
        f'--model: must be one of {", ".join(models.NAMES)}. '
        f'Received: {values.model}')
  with naming('model_arguments'):
    model_arguments = pairs.parse(values.model_arguments)
    backbone = getattr(models, values.model)
    inspect.signature(backbone).bind((), **model_arguments)
  with naming('options'):
    options = pairs.parse(values.options)
    protocols.options('paper', values.dataset, options)
  try:
    return training.Run(
        dataset=values.dataset, model=values.model,
        model_arguments=model_arguments, optimizer=values.optimizer,
        learning_rate=values.learning_rate, weight_decay=values.weight_decay,
        batch_size=values.batch_size or None,
        per_class=values.per_class or None, epochs=values.epochs,
        jit=values.jit, mixed_precision=values.mixed_precision,
        protocol=values.protocol, options=options, stop=values.stop)
  except ValueError as error:  # the message names the setting
    raise BadFlagError(str(error)) from error

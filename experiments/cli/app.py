"""What all experiment programs share: flags, start, sweep and output.

    def main(argv):
      base = app.base_run()
      runs = [...]
      results = app.train(runs)
      ...
      return app.exit_status(results)

    if __name__ == '__main__':
      app.start(main)
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import csv
import dataclasses
import functools
import json
import os
import pathlib
import re
import signal
import sys

from absl import app
from absl import flags
from etils import epy

from experiments import data
from experiments import methods as methods_lib
from experiments import training
from experiments.cli import console
from experiments.cli import pairs
from experiments.cli import recipes
from experiments.output import evidence
from experiments.output import render
from experiments.output import tables
from experiments.paper import grids
from experiments.paper import tuned
from experiments.sweep import agenda as agenda_lib
from experiments.sweep import csv_files
from experiments.sweep import launch
from experiments.sweep import multi_worker
from experiments.sweep import store

with epy.lazy_imports():
  from ln_tfp import files

FLAGS = flags.FLAGS
base_run = recipes.base_run
train = launch.train
exit_status = launch.exit_status
BadFlagError = recipes.BadFlagError

_MOST_SEEDS = 10_000  # of which nobody needs more, and a plan can be made
_NOISE = re.compile(r'none|a?sym:[\d.e-]+|human:\w+')

flags.DEFINE_list(
    'methods', None,
    f'Methods, separated by commas, of: {", ".join(methods_lib.NAMES)}; or '
    f'groups of them: {", ".join(methods_lib.GROUPS)}. '
    'Default: those of the paper.')
flags.DEFINE_list(
    'noise', None,
    'Label noise, separated by commas: none, sym:RATE (redrawn from all '
    'classes), asym:RATE (moved to a similar class), human:NAME (labels that '
    'the data set brings). Default: those of the paper.')
flags.DEFINE_integer(
    'seeds', 1, 'Number of seeds, 0..N-1; the paper has 5.')
flags.DEFINE_bool(
    'search', False,
    'Search for hyperparameters first (seed 0, highest noisy validation '
    'accuracy at the end of training) instead of taking the tuned ones.')
flags.DEFINE_string(
    'hyperparameters', '',
    'Replaces hyperparameters, as "METHOD.NAME=VALUE ...", such as '
    '"Het.samples=10000 Forward.estimate_from=best NAN.gradient=log_softmax".')
flags.DEFINE_bool(
    'printed_lambda', False,
    "Take LN's lambda on MNIST as the paper's table prints it, 0.1; by default "
    'that is read as lambda^2 (docs/protocol.md).')
flags.DEFINE_enum(
    'at', 'last', ['last', 'chosen'],
    'Which epoch tables show: the last one, as the paper does, or the one that '
    '--stop chose.')


def start(
    main: Callable[[Sequence[str]], int | None], *, computes: bool = False,
    **defaults) -> None:
  """Runs a program; a mistake of the user ends it with one line.

  Args:
    main: called with what is left of the command line.
    computes: whether it uses the GPUs itself; they are hidden from all others.
    **defaults: of flags, where this program has its own.
  """
  for name, value in defaults.items():
    FLAGS.set_default(name, value)
  for module in (__name__, recipes.__name__, launch.__name__,
                 multi_worker.__name__):
    # So that --help shows them as flags of the program.
    for flag in FLAGS.flags_by_module_dict().get(module, ()):
      FLAGS.register_key_flag_for_module(sys.argv[0], flag)
  signal.signal(signal.SIGTERM, _interrupt)
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')  # a user's own wins
  console.quiet_tensorflow()
  app.run(lambda argv: guard(lambda: check_and_call(main, argv, computes)),
          flags_parser=lambda argv: guard(lambda: recipes.parse(argv)))


def _interrupt(*unused):
  raise KeyboardInterrupt


def check_and_call(main, argv, computes=False):
  """Checks what all programs have in common, and calls one."""
  if len(argv) > 1:
    raise BadFlagError(f'Not a flag: {argv[1]}')
  check_backend()
  launch.choose_devices(computes)  # before anybody imports TensorFlow
  methods(), _noise_texts(()), seeds()  # also where they are not used
  launch.check_flags()
  return launch.call(lambda: main(argv))


def check_backend() -> None:
  """Refuses a backend of Keras on which nothing here would run."""
  name = _keras_backend()
  if name != 'tensorflow':
    raise BadFlagError(
        "The experiments need Keras's TensorFlow backend: set "
        f'KERAS_BACKEND=tensorflow. Received: {name}')


def _keras_backend() -> str:
  """The backend that Keras will have, found without importing it."""
  if name := os.environ.get('KERAS_BACKEND'):
    return name
  home = os.environ.get('KERAS_HOME', '~/.keras')
  try:
    path = pathlib.Path(home, 'keras.json').expanduser()
    return json.loads(path.read_bytes()).get('backend', 'tensorflow')
  except (AttributeError, OSError, RuntimeError, ValueError):
    return 'tensorflow'  # no such file, or not one that Keras would read


def guard(function):
  """Calls a function; mistakes of the user end the program with a line."""
  program = pathlib.Path(sys.argv[0]).stem
  try:
    return function()
  except (flags.Error, BadFlagError, data.BadDataError,
          data.MissingDataError, launch.IncompleteError) as error:
    sys.exit(f'{program}: {" ".join(str(error).split())}')
  except BrokenPipeError:  # nobody reads on, as in `--help | head`
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(128 + signal.SIGPIPE)
  except OSError as error:
    if error.filename is None:
      raise
    sys.exit(f'{program}: {error.strerror}: {error.filename}')
  except KeyboardInterrupt:
    print(f'{program}: interrupted; the same command goes on from here.',
          file=sys.stderr)
    sys.exit(128 + signal.SIGINT)


def refuse(*names: str) -> None:
  """Refuses flags that mean nothing to a program."""
  for name in names:
    if FLAGS[name].present:
      raise BadFlagError(f'--{name}: this program has no use for it.')


def single_noise(default: str) -> str:
  """The one kind of label noise that `--noise` may name."""
  names = noises([default])
  if len(names) > 1:
    raise BadFlagError(
        f'--noise: here it must be a single one. Received: {",".join(names)}')
  return names[0]


def check_dataset(known: Iterable[str]) -> None:
  """Refuses a data set that is not one of the table's."""
  if FLAGS.dataset not in known:
    raise BadFlagError(
        f'--dataset: here it must be one of {", ".join(known)}. '
        f'Received: {FLAGS.dataset}')


def methods(default: Sequence[str] = grids.METHODS) -> list[str]:
  """The methods that `--methods` names."""
  names = FLAGS.methods if FLAGS.methods is not None else default
  names = [method for name in names
           for method in methods_lib.GROUPS.get(name, (name,))]
  for name in names:
    if name not in methods_lib.NAMES:
      raise BadFlagError(
          f'--methods: must be one of {", ".join(methods_lib.NAMES)}. '
          f'Received: {name}')
  return _distinct('methods', names)


def shown() -> tuple[str, Callable[[training.Result], float]]:
  """What `--at` asks a table of accuracies for.

  Returns:
    What follows the table's name in that of its files, and the number.
  """
  if FLAGS.at == 'last':
    return '', tables.accuracy
  if FLAGS.stop == 'none':
    raise BadFlagError('--at: chosen needs a rule that chooses, see --stop.')
  return '_chosen', tables.chosen_accuracy


def noises(default: Sequence[str]) -> list[str]:
  """The kinds of label noise that `--noise` names."""
  with recipes.naming('noise'):
    return _distinct('noise', [
        str(data.parse_noise(text)) for text in _noise_texts(default)])


def _noise_texts(default: Sequence[str]) -> Sequence[str]:
  """What `--noise` says; looked at without TensorFlow, which takes seconds."""
  texts = FLAGS.noise if FLAGS.noise is not None else default
  for text in texts:
    if not _NOISE.fullmatch(text):
      raise BadFlagError(
          '--noise: must be none, sym:RATE, asym:RATE or human:NAME, separated '
          f'by commas. Received: {text}')
  return texts


def seeds() -> range:
  """The seeds that `--seeds` asks for."""
  if FLAGS.seeds < 1:
    raise BadFlagError(f'--seeds: must be at least 1. Received: {FLAGS.seeds}')
  if FLAGS.seeds > _MOST_SEEDS:
    raise BadFlagError(f'--seeds: must be at most {_MOST_SEEDS}. '
                       f'Received: {FLAGS.seeds}')
  return range(FLAGS.seeds)


def with_method(
    run: training.Run, method: methods_lib.Method) -> training.Run:
  """The run with a method and its hyperparameters, `--hyperparameters` too."""
  values = method.hyperparameters()
  with recipes.naming('hyperparameters'):
    for name, value in pairs.parse(FLAGS.hyperparameters).items():
      owner, _, field = name.rpartition('.')
      methods_lib.get(owner, **{field: value})
      if owner == method.name:
        values[field] = value
    return dataclasses.replace(
        run, method=method.name, hyperparameters=values)


def tuned_run(
    run: training.Run, method: str, noise: str, seed: int = 0) -> training.Run:
  """The run with a method, tuned for its data set and a noise."""
  agenda = agenda_lib.current()
  with recipes.naming('noise'):
    run = dataclasses.replace(run, noise=noise, seed=seed)
    try:
      chosen = tuned.method(
          method, run.dataset, noise, printed_lambda=FLAGS.printed_lambda,
          directory=tuned_dir())
    except tuned.NotTunedError:
      if agenda is None or not agenda.guesses:
        raise
      chosen = next(tuned.points(run, method))
    return with_method(run, chosen)


def tuned_dir() -> pathlib.Path:
  """Where the winners of searches are, which are read before ours."""
  return pathlib.Path(FLAGS.output_dir) / 'tuned'


def notes(base: training.Run, runs: Iterable[training.Run]) -> list[str]:
  """Notes for a table: where its runs are not as in the paper.

  Args:
    base: what the runs have in common.
    runs: the runs.
  """
  found = recipes.deviations(base)
  if FLAGS.hyperparameters:
    found.append(f'Replaced hyperparameters: {FLAGS.hyperparameters}.')
  if not FLAGS.search and any(map(tuned.is_reinterpreted, runs)):
    found.append("LN's lambda is 0.316 where the paper's table prints 0.1, "
                 'which is read as lambda^2 (docs/protocol.md).')
  return found


def choose(
    run: training.Run, names: Sequence[str],
    kinds: Sequence[str]) -> dict[grids.Place, training.Run]:
  """The run of each (method, noise) with its hyperparameters, seed 0.

  They are the tuned ones, or the winners of a search where `--search` asks for
  it; a place of which no point has finished is left out.
  """
  places = [(method, noise) for method in names for noise in kinds]
  if not FLAGS.search:
    return {place: tuned_run(run, *place) for place in places}
  return search({
      (method, noise): search_points(run, method, noise)
      for method, noise in places}, run.dataset)


def search_points(
    run: training.Run, method: str, noise: str,
    grid: str = 'paper') -> list[training.Run]:
  """The runs of the search for one method and noise, seed 0."""
  run = dataclasses.replace(run, noise=noise, seed=0)
  return [with_method(run, point)
          for point in tuned.points(run, method, grid)]


def search(
    points: Mapping[grids.Place, Sequence[training.Run]], name: str
) -> dict[grids.Place, training.Run]:
  """Trains all points, and returns the winner of each place.

  The winners are written to OUTPUT_DIR/tuned/NAME.csv, too, beside those of
  earlier searches.
  """
  agenda = agenda_lib.current()
  if agenda is not None and agenda.is_forecast:
    # Whichever wins, as many runs follow.
    agenda.note(grids.flat(points), grids.serves_calibration)
    return {place: runs[0] for place, runs in points.items()}
  if agenda is None:
    print('The search; its winners are trained with the other seeds then.',
          file=sys.stderr)
  results = train(grids.flat(points), grids.serves_calibration)
  if results.failures:
    raise launch.IncompleteError(
        f'The search has no winners yet: {len(results.failures)} of its runs '
        'failed. The same command tries them again.')
  write_winners(points, results, name)
  return tuned.winners(points, results)


def write_winners(
    points: Mapping[grids.Place, Sequence[training.Run]],
    results: Mapping[str, training.Result], name: str) -> pathlib.Path:
  """Writes the winners of a search in the form of `experiments/paper/tuned`."""
  return write(
      f'tuned/{name}.csv',
      tuned.to_csv(points, tuned.winners(points, results), results),
      ('dataset', 'method', 'noise'))


def show(
    table: tables.Table, name: str, text: str | None = None,
    keys: Sequence[str] = ('row', 'column'),
    whole: tables.Table | None = None) -> None:
  """Prints a table and writes it to OUTPUT_DIR/tables/NAME.{md,tex,csv}.

  The files keep what earlier calls have written for other cells, or for more
  seeds. The CSV file is what the report reads.

  Args:
    table: the table.
    name: of its files.
    text: the content of the CSV file, where it is not that of the cells.
    keys: the columns that tell the lines of the CSV file apart.
    whole: what is written, where it is not to be found by the CSV file.
  """
  print(render.to_text(table))
  if launch.is_read_only():
    print(f'{FLAGS.output_dir} cannot be written: the table is only shown.')
    return
  try:
    file = write(f'tables/{name}.csv', text or render.to_csv(table), keys)
    if whole is None:
      stored = functools.cache(lambda: store.Store(FLAGS.output_dir))
      whole = evidence.whole_table(
          table, file, lambda key: stored().find_or_none(key))
  except (AttributeError, KeyError, TypeError, ValueError) as error:
    raise BadFlagError(
        f'{pathlib.Path(FLAGS.output_dir)}/tables/{name}.csv is not a table of '
        f'ours, move it away: {error}') from error
  write(f'tables/{name}.md', render.to_markdown(whole))
  write(f'tables/{name}.tex', render.to_latex(whole))
  print(f'Written to {file.with_suffix("")}.md, .tex and .csv.')


def write(name: str, text: str, keys: Sequence[str] = ()) -> pathlib.Path:
  """Writes a file below the output directory.

  Args:
    name: of the file.
    text: its content.
    keys: of a CSV file that is merged with one that is there already.
  """
  file = pathlib.Path(FLAGS.output_dir) / name
  if not keys:
    files.write_atomically(file, text.encode())
    return file
  try:
    return csv_files.write(FLAGS.output_dir, name, text, keys)
  except (csv.Error, UnicodeDecodeError) as error:
    raise BadFlagError(
        f'{file} is not a table of ours, move it away: {error}') from error


def _distinct(flag: str, names: Sequence[str]) -> list[str]:
  if len(set(names)) < len(names) or not names:
    raise BadFlagError(
        f'--{flag}: needs distinct values. Received: {",".join(names)}')
  return list(names)

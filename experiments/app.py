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

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import os
import pathlib
import signal
import sys

from absl import app
from absl import flags
import tensorflow as tf

from experiments import estimates as estimates_lib
from experiments import grids
from experiments import pairs
from experiments import recipes
from experiments import render
from experiments import sweep
from experiments import tables
from experiments import tuned
from ln_tfp import console
from ln_tfp import data
from ln_tfp import methods as methods_lib
from ln_tfp import training

FLAGS = flags.FLAGS
base_run = recipes.base_run
BadFlagError = recipes.BadFlagError

_STRATEGIES = ('auto', 'one', 'mirrored')

flags.DEFINE_list(
    'methods', None,
    f'Methods, separated by commas, of: {", ".join(methods_lib.NAMES)}. '
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
flags.DEFINE_integer(
    'jobs', None,
    'Worker processes. Default: one per GPU, or per core where there is none.')
flags.DEFINE_enum(
    'strategy', 'auto', _STRATEGIES,
    'Devices of a run: one, or all GPUs of the machine (mirrored). auto gives '
    'each worker its GPU.')
flags.DEFINE_string(
    'data_dir', None, 'Directory of the data sets. Default: that of TFDS.')
flags.DEFINE_bool(
    'offline', False, 'Never fetch data; say what is missing instead.')
flags.DEFINE_string(
    'output_dir', 'results',
    'Directory for results, tables and figures. Runs whose results are there '
    'are not trained again.')
flags.DEFINE_bool(
    'dry_run', False, 'List the runs with an estimate of the time, and end.')
flags.DEFINE_string(
    'tensorboard', None, 'Directory for TensorBoard logs, one per run.')


def start(main: Callable[[Sequence[str]], int | None], **defaults) -> None:
  """Runs a program; a mistake of the user ends it with one line.

  Args:
    main: called with what is left of the command line.
    **defaults: of flags, where this program has its own.
  """
  for name, value in defaults.items():
    FLAGS.set_default(name, value)
  for module in (__name__, recipes.__name__):  # so that --help shows them
    for flag in FLAGS.flags_by_module_dict().get(module, ()):
      FLAGS.register_key_flag_for_module(sys.argv[0], flag)
  signal.signal(signal.SIGTERM, _interrupt)
  app.run(lambda argv: _guard(lambda: _main(main, argv)),
          flags_parser=lambda argv: _guard(lambda: recipes.parse(argv)))


def _interrupt(*unused):
  raise KeyboardInterrupt


def _main(main, argv):
  if len(argv) > 1:
    raise BadFlagError(f'Not a flag: {argv[1]}')
  _check_output_dir()
  if FLAGS.jobs is not None and FLAGS.jobs < 1:
    raise BadFlagError(f'--jobs: must be at least 1. Received: {FLAGS.jobs}')
  return main(argv)


def _guard(function):
  program = pathlib.Path(sys.argv[0]).stem
  try:
    return function()
  except (flags.Error, BadFlagError, data.MissingDataError) as error:
    sys.exit(f'{program}: {" ".join(str(error).split())}')
  except KeyboardInterrupt:
    print(f'{program}: interrupted; the same command goes on from here.',
          file=sys.stderr)
    sys.exit(128 + signal.SIGINT)


def methods(default: Sequence[str] = methods_lib.NAMES) -> list[str]:
  """The methods that `--methods` names."""
  names = FLAGS.methods if FLAGS.methods is not None else default
  for name in names:
    with recipes.naming('methods'):
      methods_lib.get(name)
  return _distinct('methods', names)


def noises(default: Sequence[str]) -> list[str]:
  """The kinds of label noise that `--noise` names."""
  names = FLAGS.noise if FLAGS.noise is not None else default
  with recipes.naming('noise'):
    return _distinct('noise', [str(data.parse_noise(name)) for name in names])


def seeds() -> range:
  """The seeds that `--seeds` asks for."""
  if FLAGS.seeds < 1:
    raise BadFlagError(f'--seeds: must be at least 1. Received: {FLAGS.seeds}')
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
  with recipes.naming('noise'):
    chosen = tuned.method(
        method, run.dataset, noise, printed_lambda=FLAGS.printed_lambda)
    return with_method(
        dataclasses.replace(run, noise=noise, seed=seed), chosen)


def choose(
    run: training.Run, methods: Sequence[str],  # pylint: disable=redefined-outer-name
    noises: Sequence[str]) -> dict[grids.Place, training.Run]:
  """The run of each (method, noise) with its hyperparameters, seed 0.

  They are the tuned ones, or the winners of a search where `--search` asks for
  it; a method of which no point has finished is left out.
  """
  places = [(method, noise) for method in methods for noise in noises]
  if not FLAGS.search:
    return {place: tuned_run(run, *place) for place in places}
  return search({
      (method, noise): search_points(run, method, noise)
      for method, noise in places})


def search_points(
    run: training.Run, method: str, noise: str) -> list[training.Run]:
  """The runs of the search for one method and noise, seed 0."""
  run = dataclasses.replace(run, noise=noise, seed=0)
  return [with_method(run, point) for point in grids.points(run, method)]


def search(
    points: Mapping[grids.Place, Sequence[training.Run]]
) -> dict[grids.Place, training.Run]:
  """Trains all points, and returns the winner of each place."""
  results = train(grids.flat(points))
  winners = {
      place: grids.winner(runs, results) for place, runs in points.items()}
  return {place: run for place, run in winners.items() if run is not None}


def train(
    runs: Iterable[training.Run],
    keep_weights: sweep.KeepWeights = lambda run: False) -> sweep.Results:
  """Trains runs as the flags say; ends the program where `--dry_run` does."""
  runs = list(runs)
  plan = sweep.Plan(runs, FLAGS.output_dir, keep_weights)
  for problem in plan.problems():
    print(f'Not a result, left alone: {problem}', file=sys.stderr)
  gpus = [] if FLAGS.strategy == 'mirrored' else _gpus()
  jobs = FLAGS.jobs or (1 if FLAGS.strategy == 'mirrored' else None)
  _announce(plan, jobs or len(gpus) or len(os.sched_getaffinity(0)))
  if FLAGS.dry_run:
    sys.exit(0)
  if plan.pending:
    _prepare(plan.pending.values())
  results = sweep.run(
      runs, output_dir=FLAGS.output_dir, jobs=jobs, gpus=gpus,
      data_dir=FLAGS.data_dir, strategy=FLAGS.strategy,
      keep_weights=keep_weights, tensorboard_dir=FLAGS.tensorboard)
  for key, reason in results.failures.items():
    print(f'Failed: {key}: {reason}', file=sys.stderr)
  return results


def exit_status(results: sweep.Results) -> int:
  """For the shell: 1 where runs have failed."""
  return 1 if results.failures else 0


def show(table: tables.Table, name: str) -> None:
  """Prints a table and writes it to OUTPUT_DIR/tables/NAME.{md,tex,csv}."""
  print(render.to_text(table))
  directory = pathlib.Path(FLAGS.output_dir) / 'tables'
  directory.mkdir(parents=True, exist_ok=True)
  for suffix, text in (
      ('md', render.to_markdown(table)), ('tex', render.to_latex(table)),
      ('csv', render.to_csv(table))):
    (directory / f'{name}.{suffix}').write_text(text, encoding='utf-8')
  print(f'{directory / name}.md, .tex, .csv')


def _announce(plan: sweep.Plan, slots: int) -> None:
  """Says what is to come, and lists it where `--dry_run` asks for that."""
  estimates = plan.estimate()
  pending = list(plan.pending.values())
  seconds = sum(map(estimates.seconds, pending)) / min(
      slots, max(1, len(pending)))
  if FLAGS.dry_run:
    for run in pending:
      settings = pairs.write(dict(run.hyperparameters))
      print(f'{estimates_lib.duration(estimates.seconds(run)):>8}  {run.key}'
            f'  {run.epochs} epochs  {settings}'.rstrip())
  about = estimates_lib.duration(seconds)
  basis = ('from finished runs' if pending and all(
      map(estimates.knows, pending)) else 'a guess for two CPU cores')
  print(f'{len(plan.results)} runs finished before, {len(pending)} to train, '
        f'{slots} at a time'
        + (f': about {about} ({basis}).' if pending else '.'),
        file=sys.stdout if FLAGS.dry_run else sys.stderr)
  if seconds > sweep.LONG_SECONDS and not FLAGS.dry_run:
    print(f'This will take more than an hour: about {about}. It can be '
          'interrupted and goes on with the same command.', file=sys.stderr)


def _prepare(runs: Iterable[training.Run]) -> None:
  """Makes sure of the data, and that the runs fit it, before any training."""
  checked = {}
  for run in runs:
    checked.setdefault((run.dataset, run.noise), run)
  sources = {}
  for run in checked.values():
    if run.dataset not in sources:
      sources = {run.dataset: _load(run.dataset)}  # one at a time
    with recipes.naming('noise'):
      training.load_splits(run, source=sources[run.dataset])


def _load(dataset: str) -> data.Source:
  try:
    return data.load(dataset, FLAGS.data_dir)
  except data.MissingDataError:
    if FLAGS.offline:
      raise
  print(f'Fetching {dataset}.', file=sys.stderr)
  data.prepare(dataset, FLAGS.data_dir)
  return data.load(dataset, FLAGS.data_dir)


def _check_output_dir() -> None:
  directory = pathlib.Path(FLAGS.output_dir)
  try:
    directory.mkdir(parents=True, exist_ok=True)
    probe = directory / f'.probe-{os.getpid()}'
    probe.touch()
    probe.unlink()
  except OSError as error:
    raise BadFlagError(
        f'--output_dir: cannot be written: {error}') from error


def _gpus() -> list[str]:
  """The GPUs that this process may use, by their CUDA names."""
  with console.quiet_startup():
    count = len(tf.config.list_physical_devices('GPU'))
  visible = os.environ.get('CUDA_VISIBLE_DEVICES')
  if visible:
    return visible.split(',')[:count]
  return [str(index) for index in range(count)]


def _distinct(flag: str, names: Sequence[str]) -> list[str]:
  if len(set(names)) < len(names) or not names:
    raise BadFlagError(
        f'--{flag}: needs distinct values. Received: {",".join(names)}')
  return list(names)

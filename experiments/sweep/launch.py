"""Trains the runs of an experiment as the flags say."""

from __future__ import annotations

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import errno
import functools
import importlib.util
import os
import pathlib
import pkgutil
import sys
import tempfile
from typing import Any
from typing import TextIO

from absl import flags

from experiments import data
from experiments import methods
from experiments import models
from experiments import training
from experiments.cli import pairs
from experiments.cli import recipes
from experiments.sweep import agenda as agenda_lib
from experiments.sweep import estimates as estimates_lib
from experiments.sweep import in_process
from experiments.sweep import logs
from experiments.sweep import machine
from experiments.sweep import multi_worker
from experiments.sweep import plan as plan_lib
from experiments.sweep import pool as pool_lib
from experiments.training import fingerprint

FLAGS = flags.FLAGS

_STRATEGIES = ('auto', 'one', 'mirrored', 'multi_worker')

flags.DEFINE_enum(
    'launcher', 'local', ('local', 'ray'),
    'Where runs are trained: by processes of this machine, or as tasks of a '
    'Ray cluster (docs/scaling.md).')
flags.DEFINE_string(
    'ray_address', None,
    'HOST:PORT of a Ray cluster that this machine is a node of, or auto. '
    'Default: a cluster of this machine alone, started for the sweep.')
flags.DEFINE_float(
    'cpus_per_run', None,
    'CPUs that Ray reserves for a run; also its threads. Default: 1.')
flags.DEFINE_float(
    'gpus_per_run', None,
    'GPUs that Ray reserves for a run, or a fraction of one. Default: 1 where '
    'the cluster has GPUs, otherwise 0.')
flags.DEFINE_integer(
    'jobs', None,
    'Worker processes. Default: one per GPU, or per core where there is none.')
flags.DEFINE_enum(
    'strategy', 'auto', _STRATEGIES,
    'Devices of a run: one, all GPUs of the machine (mirrored), or several '
    'machines that all start the same command with their TF_CONFIG '
    '(multi_worker, see docs/scaling.md). auto gives each worker process its '
    'GPU.')
flags.DEFINE_string(
    'data_dir', None, 'Directory of the data sets. Default: that of TFDS.')
flags.DEFINE_bool(
    'offline', False, 'Never fetch data; say what is missing instead.')
flags.DEFINE_string(
    'output_dir', 'results',
    'Directory for results, tables and figures. Runs whose results are there '
    'are not trained again.')
flags.DEFINE_bool(
    'retrain', False,
    'Train runs anew whose results are of other code than this, or do not say '
    'of which. The old results are replaced.')
flags.DEFINE_enum(
    'keep_weights', 'first', ('none', 'first', 'all'),
    'Of which runs the final weights are kept beside the result: none (but '
    'those that a figure needs), the first seed of networks of at most a '
    'million parameters, or all.')
flags.DEFINE_bool(
    'dry_run', False, 'List the runs with an estimate of the time, and end.')
flags.DEFINE_string(
    'tensorboard', None, 'Directory for TensorBoard logs, one per run.')
flags.DEFINE_bool(
    'keep_logs', False,
    'Keep the logs of all runs in OUTPUT_DIR/logs; by default only those of '
    'runs that failed stay.')
flags.DEFINE_bool(
    'in_process', False,
    'With --jobs=1: train in this process, for a debugger. A run that fails '
    'ends the program with its traceback.')


class IncompleteError(RuntimeError):
  """Runs have failed that everything else depends on."""


def check_flags() -> None:
  """Refuses what cannot work, before anything is computed."""
  if FLAGS.jobs is not None and FLAGS.jobs < 1:
    raise recipes.BadFlagError(
        f'--jobs: must be at least 1. Received: {FLAGS.jobs}')
  _check_launcher()
  if FLAGS.in_process and (
      FLAGS.launcher != 'local' or FLAGS.strategy == 'multi_worker'
      or FLAGS.jobs != 1):
    raise recipes.BadFlagError(
        '--in_process: needs --jobs=1, --launcher=local and a --strategy '
        'other than multi_worker.')
  if FLAGS.strategy == 'multi_worker':
    multi_worker.check_flags()
    if not multi_worker.is_chief():
      return  # it writes nothing
  if FLAGS.tensorboard is not None:
    _check_tensorboard()
  try:
    _check_writable()
  except (OSError, ValueError) as error:  # ValueError: a byte that is zero
    if not is_read_only():  # finished results can be shown
      raise recipes.BadFlagError(
          f'--output_dir: cannot be written: {error}') from error


def _check_writable() -> None:
  """Raises `OSError` where the output directory cannot be written."""
  directory = pathlib.Path(FLAGS.output_dir)
  directory.mkdir(parents=True, exist_ok=True)
  probe = directory / f'.probe-{os.getpid()}'
  probe.touch()
  probe.unlink()


def is_read_only() -> bool:
  """Whether the output directory can be read, but not written."""
  if not os.path.isdir(FLAGS.output_dir):
    return False
  try:
    _check_writable()
  except OSError as error:
    return error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
  return False


def _check_tensorboard() -> None:
  """The workers would find out, each of them, at their first log."""
  directory = pathlib.Path(FLAGS.tensorboard)
  try:
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=directory):
      pass
  except (OSError, ValueError) as error:
    raise recipes.BadFlagError(
        f'--tensorboard: cannot be written: {error}') from error


def call(program: Callable[[], int | None]) -> int | None:
  """Calls a program; with several workers the chief calls it for all."""
  if FLAGS.dry_run:
    return _forecast(program)
  if FLAGS.strategy == 'multi_worker':
    return multi_worker.call(program, _load_once)
  return program()


def _check_launcher() -> None:
  """Refuses flags of another launcher, and Ray where it is not installed."""
  if FLAGS.launcher == 'local':
    for name in ('ray_address', 'cpus_per_run', 'gpus_per_run'):
      if FLAGS[name].present:
        raise recipes.BadFlagError(f'--{name}: needs --launcher=ray.')
    return
  if FLAGS.strategy == 'multi_worker':
    raise recipes.BadFlagError(
        '--strategy: multi_worker needs --launcher=local; on a Ray cluster '
        'experiments.tf_config starts its workers (docs/scaling.md).')
  if FLAGS.jobs is not None:
    raise recipes.BadFlagError(
        '--jobs: needs --launcher=local; with Ray, --cpus_per_run and '
        '--gpus_per_run say how many runs there are at a time.')
  if '://' in (FLAGS.ray_address or ''):
    raise recipes.BadFlagError(
        '--ray_address: must be HOST:PORT or auto. '
        f'Received: {FLAGS.ray_address}')
  cpus, gpus = _per_run()
  if not 0 < cpus < float('inf'):
    raise recipes.BadFlagError(
        f'--cpus_per_run: must be positive. Received: {cpus}')
  if gpus is not None and (
      not 0 <= gpus < float('inf') or (gpus > 1 and gpus != int(gpus))):
    raise recipes.BadFlagError(
        '--gpus_per_run: must be a fraction of 1 or a whole number. '
        f'Received: {gpus}')
  if importlib.util.find_spec('ray') is None:
    raise recipes.BadFlagError(
        "--launcher: Ray is not installed; pip install -e '.[ray]' does that.")


def _per_run() -> tuple[float, float | None]:
  """CPUs and GPUs that Ray reserves for a run; None asks the cluster."""
  cpus = 1. if FLAGS.cpus_per_run is None else FLAGS.cpus_per_run
  return cpus, FLAGS.gpus_per_run


def make_plan(
    runs: Iterable[training.Run],
    keep_weights: plan_lib.Predicate = plan_lib.never,
    need_weights: plan_lib.Predicate = plan_lib.never) -> plan_lib.Plan:
  """The plan of runs as the flags say, see `train`."""
  return plan_lib.Plan(
      runs, FLAGS.output_dir,
      lambda run: keep_weights(run) or _keeps_weights(run), need_weights,
      FLAGS.retrain)


def train(
    runs: Iterable[training.Run],
    keep_weights: plan_lib.Predicate = plan_lib.never,
    need_weights: plan_lib.Predicate = plan_lib.never) -> plan_lib.Results:
  """Trains runs as the flags say, or notes them where there is an agenda.

  Args:
    runs: the runs; prerequisites are added.
    keep_weights: of which runs the weights are kept, where they are trained.
    need_weights: which runs are trained again where their weights are gone.

  Raises:
    agenda.Unfinished: if the runs are to be trained later, or never.
  """
  agenda = agenda_lib.current()
  if agenda is not None:
    return agenda.take(runs, keep_weights, need_weights)
  plan = make_plan(runs, keep_weights, need_weights)
  for problem in plan.problems():
    print(f'Not a result, left alone: {problem}', file=sys.stderr)
  if plan.pending and is_read_only():
    raise recipes.BadFlagError(
        f'--output_dir: {len(plan.pending)} runs are to be trained, and '
        f'{FLAGS.output_dir} cannot be written.')
  if plan.pending:
    _prepare(plan.pending.values())
  with contextlib.closing(_make_pool(bool(plan.pending))) as pool:
    if plan.pending:
      _say_on_what(pool)
    _announce(plan, pool.slots)
    results = plan_lib.execute(
        plan, pool, data_dir=FLAGS.data_dir, strategy=FLAGS.strategy,
        tensorboard_dir=FLAGS.tensorboard, keep_logs=FLAGS.keep_logs,
        in_process=FLAGS.in_process)
  for line in fingerprint.notes(results.values(), names=False):
    print(line, file=sys.stderr)
  for line in results.remarks:
    print(line, file=sys.stderr)
  for key, reason in results.failures.items():
    print(f'Failed: {key}: {reason}', file=sys.stderr)
  return results


def _forecast(program: Callable[[], int | None]) -> int | None:
  """Calls a program up to where it would train, and says what it would."""
  agenda = agenda_lib.Agenda(make_plan, is_forecast=True)
  try:
    with agenda.noting():
      return program()
  except agenda_lib.Unfinished:
    foreseen = agenda.plan()
    estimates = foreseen.estimate()
    for run in foreseen.pending.values():
      settings = pairs.write(dict(run.hyperparameters))
      print(f'{estimates_lib.duration(estimates.seconds(run)):>8}  {run.key}'
            f'  {run.epochs} epochs  {settings}'.rstrip())
    _announce(foreseen, slots(), sys.stdout)
  return 0


def slots() -> int:
  """How many runs there are at a time."""
  with contextlib.closing(_make_pool(needed=True)) as pool:
    return pool.slots


def _keeps_weights(run: training.Run) -> bool | str:
  """Whether weights are kept though nothing needs them yet."""
  if FLAGS.keep_weights == 'first' and run.seed == 0:
    return 'small'
  return FLAGS.keep_weights == 'all'


def exit_status(results: plan_lib.Results) -> int:
  """For the shell: 1 where runs have failed."""
  return 1 if results.failures else 0


def _make_pool(needed: bool) -> plan_lib.Pool:
  """The pool of the flags; no cluster is used where nothing is to be done."""
  if needed and FLAGS.launcher == 'ray':
    from experiments.sweep import ray_pool  # Ray need not be installed
    cpus, gpus = _per_run()
    try:
      pool = ray_pool.Pool(FLAGS.ray_address, cpus, gpus)
    except (ConnectionError, RuntimeError, ValueError) as error:
      flag = 'launcher' if FLAGS.ray_address is None else 'ray_address'
      raise recipes.BadFlagError(f'--{flag}: {error}') from error
    if not pool.slots:
      pool.close()
      raise recipes.BadFlagError(
          '--cpus_per_run, --gpus_per_run: no node of the cluster has that '
          f'much. Received: {cpus:g} and {pool.gpus_per_run:g}')
    return pool
  if FLAGS.strategy == 'multi_worker' and not FLAGS.dry_run:
    return multi_worker.connect(_load_once)
  takes_all = FLAGS.strategy in ('mirrored', 'multi_worker')
  if FLAGS.in_process:
    return in_process.Pool()
  gpus = [] if takes_all else machine.gpu_ids()
  return pool_lib.Pool(FLAGS.jobs or (1 if takes_all else None), gpus)


def _announce(
    plan: plan_lib.Plan, slots: int, stream: TextIO | None = None) -> None:
  """Says what is to come."""
  estimates = plan.estimate()
  pending = list(plan.pending.values())
  seconds = estimates.all_seconds(pending, slots)
  about = estimates_lib.duration(seconds)
  basis = ('from finished runs' if pending and all(
      map(estimates.knows, pending)) else 'a guess for two CPU cores')
  print(f'{len(plan.results)} runs finished before, {len(pending)} to train, '
        f'{slots} at a time'
        + (f': about {about} ({basis}).' if pending else '.'),
        file=stream or sys.stderr)
  if seconds > plan_lib.LONG_SECONDS and not FLAGS.dry_run:
    print(f'This will take more than an hour: about {about}. It can be '
          'interrupted and goes on with the same command.', file=sys.stderr)


def _prepare(runs: Iterable[training.Run]) -> None:
  """Makes sure of the data, and that the runs fit it, before any training."""
  by_dataset = {}
  for run in runs:
    by_dataset.setdefault(run.dataset, []).append(run)
  for dataset, same in by_dataset.items():
    source = load(dataset)  # one at a time
    for run in {run.noise: run for run in same}.values():
      with recipes.naming('noise'):
        splits = training.load_splits(run, source=source)
      _check_per_class(run, splits.train)
    for run in same:
      _check_network(run, source.input_shape, source.num_classes)


def _check_per_class(run: training.Run, train: data.Examples) -> None:
  least = min(collections.Counter(train.given.tolist()).values())
  if run.per_class is not None and run.per_class > least:
    raise recipes.BadFlagError(
        f'--per_class: the smallest class of {run.dataset} has {least} '
        f'examples. Received: {run.per_class}')


@functools.lru_cache(maxsize=1000)
def _check_parts(model, arguments, method, hyperparameters, shape, num_classes):
  """Refuses a network, or a head, that does not fit; builds neither."""
  with recipes.naming('model'):
    models.check(model, shape, dict(arguments))
  with recipes.naming('hyperparameters'):
    methods.get(method, **dict(hyperparameters)).head(num_classes)


def _check_network(run, shape, num_classes):
  _check_parts(run.model, run.model_arguments, run.method, run.hyperparameters,
               shape, num_classes)


def load(dataset: str) -> data.Source:
  """A data set, fetched where it is missing and `--offline` is not given."""
  try:
    return data.load(dataset, FLAGS.data_dir)
  except data.MissingDataError:
    if FLAGS.offline:
      raise
  print(f'Fetching {dataset}.', file=sys.stderr)
  try:
    data.prepare(dataset, FLAGS.data_dir)
  except data.MissingDataError:  # not to be fetched at all
    raise
  except Exception as error:  # of the network, TFDS, the disk, ...
    raise data.MissingDataError(
        f'{dataset} is missing and could not be fetched: '
        f'{type(error).__name__}: {error}') from error
  return data.load(dataset, FLAGS.data_dir)


@functools.lru_cache(maxsize=1)
def _load_once(dataset: str) -> data.Source:
  return load(dataset)


def choose_devices(computes: bool = False) -> None:
  """Hides the GPUs from this process, unless it is the one that computes."""
  if computes or FLAGS.strategy == 'multi_worker' or FLAGS.in_process:
    machine.show_gpus()
  else:
    machine.hide_gpus()


def _say_on_what(pool: plan_lib.Pool) -> None:
  """The first line of a sweep: on what it trains."""
  text = getattr(pool, 'trains_on', machine.trains_on)()
  print(f'Trains on {text}.', file=sys.stderr)
  if FLAGS.launcher == 'local' and machine.warning():
    print(machine.warning(), file=sys.stderr)


def measure(function: str, calls: Sequence[Mapping[str, Any]]) -> None:
  """Calls a function that needs a trained network, in worker processes.

  Args:
    function: MODULE:NAME; what it finds it writes to files.
    calls: the arguments of each call, by name, as JSON-able values; the 'key'
      of a run among them names the log of a call that fails.
  """
  if FLAGS.strategy == 'multi_worker' or FLAGS.in_process:
    for arguments in calls:  # the devices are this process's
      pkgutil.resolve_name(function)(**arguments)
    return
  name = function.rpartition(':')[2]
  left = {f'{name}-{arguments.get("key", index)}': arguments
          for index, arguments in enumerate(calls)}
  if not left:
    return
  gpus = machine.gpu_ids()
  running, failures = 0, []
  with contextlib.closing(pool_lib.Pool(FLAGS.jobs, gpus)) as pool:
    while left or running:
      while left and running < pool.slots:
        key, arguments = left.popitem()
        pool.submit(key, {
            'call': function, 'arguments': dict(arguments), 'key': key,
            'output_dir': os.path.abspath(FLAGS.output_dir)})
        running += 1
      for key, answer in pool.wait(1.):
        running -= 'status' in answer
        if answer.get('status') in ('failed', 'died'):
          failures.append(
              answer['message'] + logs.mention(FLAGS.output_dir, key))
  if failures:
    raise IncompleteError(
        f'{len(failures)} of {len(calls)} measurements failed: {failures[0]}')

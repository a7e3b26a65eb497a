"""Where a run computes: one device, several, or the workers of a cluster.

What is said when a worker is lost, too: TensorFlow's heartbeats notice within
half a minute that one is dead or hangs.
"""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import faulthandler
import functools
import pathlib
import platform
import re
import signal
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import ops  # nothing public will do

from experiments.cli import console
from experiments.training import cluster as cluster_lib

NAMES = ('auto', 'one', 'mirrored', 'multi_worker')
# For TensorFlow, once all workers are there.
_START_SECONDS = 120.
_LOSSES = (
    tf.errors.AbortedError, tf.errors.CancelledError,
    tf.errors.DeadlineExceededError, tf.errors.UnavailableError)


def create(
    name: str = 'auto', *,
    wait_seconds: float = cluster_lib.WAIT_SECONDS,
    allow_public: bool = False) -> tf.distribute.Strategy:
  """A strategy by name; GPUs take memory only as they need it.

  Args:
    name: 'one' device (the first GPU, or the CPU), 'mirrored' over all GPUs of
      this machine, 'multi_worker' over the machines of `TF_CONFIG` (make it
      before TensorFlow computes anything), or 'auto', which is 'mirrored' where
      there are several GPUs and 'one' otherwise.
    wait_seconds: how long 'multi_worker' waits for all workers to come.
    allow_public: whether its workers may have addresses of the internet.

  Returns:
    A `tf.distribute.Strategy`. Processes that train several runs make one and
    use it for all. Raises `BadClusterError` where `TF_CONFIG` describes no
    workers, and `LostWorkerError` where one does not come.
  """
  if name not in NAMES:
    raise ValueError(
        f'Argument `strategy` must be one of {NAMES}. '
        f'Received: strategy={name!r}.')
  with console.quiet_startup():  # the first look for GPUs may complain
    gpus = tf.config.list_physical_devices('GPU')
  # Where the program has used its GPUs already, it has chosen for itself.
  with contextlib.suppress(RuntimeError):
    for gpu in gpus:
      tf.config.experimental.set_memory_growth(gpu, True)
  if name == 'multi_worker':
    return _connect(wait_seconds, allow_public)
  if name == 'mirrored' or (name == 'auto' and len(gpus) > 1):
    return tf.distribute.MirroredStrategy()
  return tf.distribute.OneDeviceStrategy('GPU:0' if gpus else 'CPU:0')


def worker(strategy: tf.distribute.Strategy) -> tuple[int, int]:
  """The index of this worker and the number of workers."""
  resolver = strategy.cluster_resolver
  if resolver is None or not resolver.cluster_spec().as_dict():
    return 0, 1
  return resolver.task_id, resolver.cluster_spec().num_tasks('worker')


def local_replicas(strategy: tf.distribute.Strategy) -> int:
  """The number of replicas of this worker."""
  return strategy.num_replicas_in_sync // worker(strategy)[1]


def sum_over_workers(
    strategy: tf.distribute.Strategy, values: np.ndarray) -> np.ndarray:
  """The sum of an array over all workers, the same on each of them."""
  if worker(strategy)[1] == 1:
    return values

  def first_replica_has_it(context):
    first = context.replica_id_in_sync_group % local_replicas(strategy) == 0
    return tf.constant(values if first else np.zeros_like(values))

  parts = strategy.experimental_distribute_values_from_function(
      first_replica_has_it)
  totals = _make_sum(strategy)(parts)
  return strategy.experimental_local_results(totals)[0].numpy()


@functools.lru_cache(maxsize=1)
def _make_sum(strategy: tf.distribute.Strategy) -> Callable[[Any], Any]:
  """The sum over all replicas; kept, so that it is traced once per shape."""
  def replica_sum(part):
    # The identity stands on the replica's device, which the reduction needs.
    return tf.distribute.get_replica_context().all_reduce(
        tf.distribute.ReduceOp.SUM, tf.identity(part))

  return tf.function(
      lambda parts: strategy.run(replica_sum, args=(parts,)), autograph=False)


def share_from_chief(
    strategy: tf.distribute.Strategy, content: bytes | None) -> bytes | None:
  """The chief's bytes on every worker, whatever the others pass.

  Workers need no common file system then: the chief alone reads and writes.
  """
  index, count = worker(strategy)
  if count == 1:
    return content
  if index > 0:
    content = None
  size = -1 if content is None else len(content)
  size = int(sum_over_workers(
      strategy, np.array([size if index == 0 else 0], np.int64))[0])
  if size < 0:
    return None
  padded = np.zeros(-(-size // 4) * 4, np.uint8)
  if content is not None:
    padded[:size] = np.frombuffer(content, np.uint8)
  shared = sum_over_workers(strategy, padded.view(np.int32))
  return shared.view(np.uint8)[:size].tobytes()


def synchronise(
    strategy: tf.distribute.Strategy, model: keras.Model) -> bool:
  """Has several replicas normalise their batches as one device would.

  With one replica nothing changes, not even the rounding.

  Returns:
    Whether there was anything to do.
  """
  if strategy.num_replicas_in_sync == 1:
    return False
  found = [
      layer for layer in model._flatten_layers(include_self=False)
      if isinstance(layer, keras.layers.BatchNormalization)]
  for layer in found:
    layer.synchronized = True
  return bool(found)


def describe(strategy: tf.distribute.Strategy) -> dict[str, Any]:
  """Kind and name of the device, number of replicas and of workers."""
  gpus = tf.config.list_physical_devices('GPU')
  if gpus:
    details = tf.config.experimental.get_device_details(gpus[0])
    name = details.get('device_name', 'unknown')
  else:
    name = _processor()
  return {
      'kind': 'GPU' if gpus else 'CPU',
      'name': name,
      'replicas': strategy.num_replicas_in_sync,
      'workers': worker(strategy)[1],
  }


def _processor() -> str:
  information = pathlib.Path('/proc/cpuinfo')
  if information.exists():
    for line in information.read_text(encoding='utf-8').splitlines():
      if line.startswith('model name'):
        return line.partition(':')[2].strip()
  return platform.processor() or platform.machine()


def _connect(
    seconds: float,
    allow_public: bool) -> tf.distribute.MultiWorkerMirroredStrategy:
  """The strategy over the workers of `TF_CONFIG`, once all have come.

  Args:
    seconds: how long to wait for them. Raises `LostWorkerError` then.
    allow_public: whether they may have addresses of the internet.
  """
  cluster = cluster_lib.read()
  if not allow_public:
    cluster_lib.check_private(cluster)
  cluster_lib.meet(cluster, seconds)
  # Its C++ thread can end the process whatever holds the interpreter's lock.
  faulthandler.dump_traceback_later(_START_SECONDS, exit=True)
  try:
    return tf.distribute.MultiWorkerMirroredStrategy()
  except tf.errors.OpError as error:
    raise cluster_lib.LostWorkerError(
        'The workers are there, but TensorFlow cannot connect them (is one '
        f'left over from a start before?): {_first_line(error)}') from error
  finally:
    faulthandler.cancel_dump_traceback_later()
    _take_back_sigterm()


def _take_back_sigterm() -> None:
  """TensorFlow takes SIGTERM for itself, and then nothing ends a worker."""
  with contextlib.suppress(ValueError):  # only the main thread may
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))


@contextlib.contextmanager
def naming_lost_workers(
    strategy: tf.distribute.Strategy,
    describe: Callable[[], str] = lambda: '') -> Iterator[None]:
  """Turns TensorFlow's errors about a lost worker into `LostWorkerError`.

  Args:
    strategy: of a single worker it changes nothing.
    describe: called for what more there is to say.
  """
  try:
    yield
  except tf.errors.OpError as error:
    resolver = strategy.cluster_resolver
    addresses = resolver.cluster_spec().as_dict() if resolver else {}
    if not addresses or not _tells_a_loss(error):
      raise
    cluster = cluster_lib.Cluster(tuple(addresses['worker']), resolver.task_id)
    raise cluster_lib.LostWorkerError(
        f'{_culprit(str(error), cluster)} was lost. {describe()}'.strip()
    ) from error


@contextlib.contextmanager
def forgetting_gradients() -> Iterator[None]:
  """Lets go of the traces that are made inside, which nobody differentiates.

  TensorFlow registers each `tf.custom_gradient` of a trace for good, and with
  it the whole trace: megabytes for each run of a process that trains many.
  """
  registry = ops.gradient_registry._registry  # pylint: disable=protected-access
  before = set(registry)
  try:
    yield
  finally:
    for name in set(registry) - before:
      del registry[name]


def _tells_a_loss(error: tf.errors.OpError) -> bool:
  return isinstance(error, _LOSSES) or 'Collective ops is aborted' in str(error)


def _culprit(message: str, cluster: cluster_lib.Cluster) -> str:
  """The worker that an error is about; the first that is named, not we."""
  named = [int(index) for index in re.findall(r'/task:(\d+)', message)]
  if not named and 'CoordinationService' in message:
    named = [0]  # the chief does that
  others = [index for index in named if index != cluster.index]
  if not others or others[0] >= len(cluster.addresses):
    return 'A worker'
  return cluster.name(others[0]).capitalize()


def _first_line(error: Exception) -> str:
  return str(error).strip().partition('\n')[0]

"""Where a run computes: one device, several, or several machines."""

from collections.abc import Callable
import contextlib
import functools
from typing import Any

import numpy as np
import tensorflow as tf

from experiments.cli import console
from experiments.training import cluster

NAMES = ('auto', 'one', 'mirrored', 'multi_worker')


def create(
    name: str = 'auto', *,
    wait_seconds: float = cluster.WAIT_SECONDS) -> tf.distribute.Strategy:
  """A strategy by name; GPUs take memory only as they need it.

  Args:
    name: 'one' device (the first GPU, or the CPU), 'mirrored' over all GPUs of
      this machine, 'multi_worker' over the machines of `TF_CONFIG` (make it
      before TensorFlow computes anything), or 'auto', which is 'mirrored' where
      there are several GPUs and 'one' otherwise.
    wait_seconds: how long 'multi_worker' waits for all workers to come.

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
    return cluster.connect(wait_seconds)
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

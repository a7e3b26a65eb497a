"""The chunked Monte Carlo loss beside one that keeps all samples.

Loss and gradient of Het-tau-Sigma's head, S samples shared over the batch.
Time: in turns. Memory: the rise of peak RSS over the state after the import,
one process per contestant. Takes about two minutes on two idle cores.
"""

import numpy as np
import tensorflow as tf

from benchmarks import loss
from benchmarks import memory
from benchmarks import timing
from ln_tfp import backend
from ln_tfp.losses import monte_carlo

_ROUNDS = 7
_BATCH, _CLASSES = 128, 100


def materialised(labels, packed, noise):
  """The loss with logits `[batch, S, K]` of all samples at once."""
  own, shared = noise[:, :packed.shape[1]], noise[:, packed.shape[1]:]
  packed = tf.linalg.matrix_transpose(packed)
  logits = packed[:, :1] + packed[:, 1:2] * own
  logits += tf.einsum('sr,brk->bsk', shared, packed[:, 2:])
  log_p = tf.nn.log_softmax(logits)
  picked = tf.gather(log_p, labels, axis=-1, batch_dims=1)
  return -tf.reduce_logsumexp(picked, axis=-1) + np.log(len(noise))


CONTESTANTS = {'chunked': monte_carlo.nll, 'materialised': materialised}


def make(name: str, samples: int, rank: int, jit_compile: bool = False):
  """A function of nothing: loss and gradient of a contestant."""
  labels, _, packed = loss.make_outputs(_BATCH, _CLASSES, rank)
  packed = tf.linalg.matrix_transpose(packed)
  noise = backend.normal(0, 0, np.arange(samples), _CLASSES + rank)
  function = CONTESTANTS[name]
  return loss.value_and_gradient(
      lambda labels, packed: function(labels, packed, noise), labels, packed,
      jit_compile)


def call_once(name: str, samples: int, rank: int) -> None:
  """What a process does whose memory is measured."""
  make(name, samples, rank)()


def measure() -> list[timing.Row]:
  """All rows."""
  rows = []
  for rank in (1, 4):
    size = f'S=1,000, K={_CLASSES}, B={_BATCH}, rank {rank}'
    times = timing.take_turns(
        {name: timing.repeat(make(name, 1000, rank), .2)
         for name in CONTESTANTS}, _ROUNDS)
    rows.append(timing.ratio(
        f'all samples kept / chunked, {size}', times, 'materialised',
        'chunked', '>= 2'))
    rise = {name: memory.rise(call_once, name, 1000, rank)
            for name in CONTESTANTS}
    rows.append(timing.Row(
        f'extra memory, chunked / all samples kept, {size}',
        rise['chunked'] / rise['materialised'], goal='<= 0.2',
        detail=', '.join(f'{k} {v:.0f} MB' for k, v in rise.items())))
  rise = memory.rise(call_once, 'chunked', 10_000, 4)
  rows.append(timing.Row(
      f'extra memory (GB), chunked, S=10,000, K={_CLASSES}, B={_BATCH}, '
      'rank 4', rise / 1e3, goal='<= 1'))
  return rows

"""What XLA makes of the losses."""

import numpy as np
import pytest
import tensorflow as tf

from experiments import methods
from tests import forks
from tests.experiments.methods import contexts


def _compiled_loss(method):
  @tf.function(jit_compile=True, autograph=False)
  def compiled(labels, outputs, ids, step):
    with tf.GradientTape() as tape:
      tape.watch(outputs)
      loss = method.loss(labels, outputs, contexts.make(
          method, outputs, num_classes=4, seed=0, step=step, ids=ids))
    return tape.gradient(loss, outputs)
  return compiled


def _compile_all():
  """Three steps with each loss."""
  rng = np.random.default_rng(0)
  for name in methods.NAMES:
    arguments = {'Forward': {'transition': np.full((4, 4), .25)}}
    method = methods.get(name, **arguments.get(name, {}))
    loss = _compiled_loss(method)
    outputs = method.head(4)(rng.normal(size=(8, 5)).astype('float32'))
    for step in range(3):
      loss(tf.constant(rng.integers(0, 4, 8), tf.int32), outputs,
           tf.constant(rng.integers(0, 99, 8)),
           tf.constant(step, tf.int64))


@pytest.mark.slow
def test_xla_compiles_every_loss_once_whatever_the_labels(tmp_path):
  # A loss that needs a value of its inputs while it is compiled is compiled
  # anew for every batch. XLA writes a file for every compilation.
  flags = f'--xla_dump_to={tmp_path} --xla_dump_hlo_as_text'
  forks.Fork(_compile_all, XLA_FLAGS=flags).output(300)
  modules = list(tmp_path.glob('*before_optimizations.txt'))
  compiled = [m for m in modules if 'compiled' in m.name]
  assert len(compiled) == len(methods.NAMES), [m.name for m in modules]

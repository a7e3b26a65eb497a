"""What XLA makes of the losses."""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest


@pytest.mark.slow
def test_xla_compiles_every_loss_once_whatever_the_labels(tmp_path):
  # A loss that needs a value of its inputs while it is compiled is compiled
  # anew for every batch. XLA writes a file for every compilation.
  script = textwrap.dedent("""
      import numpy as np
      import tensorflow as tf
      import ln_tfp
      from experiments import methods
      from tests.experiments.methods import contexts

      rng = np.random.default_rng(0)

      def loss_of(method):
        @tf.function(jit_compile=True, autograph=False)
        def compiled(labels, outputs, ids, step):
          with tf.GradientTape() as tape:
            tape.watch(outputs)
            loss = method.loss(labels, outputs, contexts.make(
                method, outputs, num_classes=4, seed=0, step=step, ids=ids))
          return tape.gradient(loss, outputs)
        return compiled

      for name in methods.NAMES:
        arguments = {'Forward': {'transition': np.full((4, 4), .25)}}
        method = methods.get(name, **arguments.get(name, {}))
        loss = loss_of(method)
        outputs = method.head(4)(rng.normal(size=(8, 5)).astype('float32'))
        for step in range(3):
          loss(tf.constant(rng.integers(0, 4, 8), tf.int32), outputs,
               tf.constant(rng.integers(0, 99, 8)),
               tf.constant(step, tf.int64))
      print(len(methods.NAMES))
      """)
  flags = f'--xla_dump_to={tmp_path} --xla_dump_hlo_as_text'
  process = subprocess.run(
      [sys.executable, '-c', script], check=True, capture_output=True,
      text=True, env={**os.environ, 'XLA_FLAGS': flags})
  modules = list(pathlib.Path(tmp_path).glob('*before_optimizations.txt'))
  compiled = [m for m in modules if 'compiled' in m.name]
  assert len(compiled) == int(process.stdout), [m.name for m in modules]

"""Settings for all tests."""

import os
import signal

# A shell that starts the tests in the background has them ignore Ctrl-C, which
# some of them are about.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
  signal.signal(signal.SIGINT, signal.default_int_handler)

# Before TensorFlow and NumPy are imported anywhere.
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
# Some virtual machines announce AMX and do not have it: there a product of
# bfloat16 matrices kills the process.
os.environ.setdefault('ONEDNN_MAX_CPU_ISA', 'AVX512_CORE_FP16')
# What XLA makes of a function is what is tested, not how fast it runs: LLVM's
# own optimisation takes a third of the time of compiling.
os.environ.setdefault('XLA_FLAGS', '--xla_backend_optimization_level=0')
# Processes that share the cores have a thread each: threads that wait for a
# core wait busily, and take three times the time of it.
if 'PYTEST_XDIST_WORKER' in os.environ:
  for name in ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS',
               'TF_NUM_INTEROP_THREADS', 'TF_NUM_INTRAOP_THREADS'):
    os.environ.setdefault(name, '1')

import pytest


@pytest.fixture(autouse=True, scope='session')
def built_optimizers():
  """Optimisers have their variables before `fit` traces a training step.

  A step that makes variables is traced twice, which takes as long again.
  """
  import keras  # after the lines above
  make = keras.Model.make_train_function

  def build_and_make(model, force=False):
    if model.built and not model.optimizer.built:
      model.optimizer.build(model.trainable_variables)
    return make(model, force)

  with pytest.MonkeyPatch.context() as patches:
    patches.setattr(keras.Model, 'make_train_function', build_and_make)
    yield


@pytest.fixture(autouse=True)
def fixed_seeds():
  """Every test starts with the same seeds, whichever ran before it."""
  import keras  # after the lines above
  keras.utils.set_random_seed(0)

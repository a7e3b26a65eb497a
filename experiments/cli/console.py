"""Keeps TensorFlow's start-up messages about absent GPUs off the terminal."""

import contextlib
import importlib.util
import os
import re
import sys
import tempfile

_NOISE = re.compile(
    rb'absl::InitializeLog|cudart_stub|cuda_platform|cuInit|cuda_dnn|cuda_fft|'
    rb'cuda_blas|cpu_feature_guard|rebuild TensorFlow|oneDNN custom operations|'
    rb'computation_placer|TF-TRT|DSO loader|libcuda')


@contextlib.contextmanager
def quiet_startup():
  """Drops known start-up noise from stderr; everything else still appears.

  The messages are written by C++ code before any of TensorFlow's own settings
  apply, so they can only be caught at the file descriptor.
  """
  try:
    saved = os.dup(2)
  except OSError:  # No stderr, nothing to keep clean.
    yield
    return
  with tempfile.TemporaryFile() as captured:
    sys.stderr.flush()
    os.dup2(captured.fileno(), 2)
    try:
      yield
    finally:
      os.dup2(saved, 2)
      os.close(saved)
      captured.seek(0)
      for line in captured:
        if not _NOISE.search(line):
          os.write(2, line)


def quiet_tensorflow() -> None:
  """Makes the first import of TensorFlow a quiet one, whoever does it."""
  if 'tensorflow' not in sys.modules:
    sys.meta_path.insert(0, _QuietFinder())


class _QuietFinder:
  """Finds TensorFlow, once, with a loader that is quiet."""

  def find_spec(self, name, path=None, target=None):
    del path, target
    if name != 'tensorflow':
      return None
    sys.meta_path.remove(self)
    spec = importlib.util.find_spec(name)
    load = spec.loader.exec_module

    def exec_module(module):
      with quiet_startup():
        load(module)
        module.config.list_physical_devices()  # it complains about GPUs, too

    spec.loader.exec_module = exec_module
    return spec

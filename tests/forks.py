"""Processes that have imported TensorFlow before they start.

They are forks of one that has, and that has computed nothing yet: a process of
its own costs no seconds.
"""

import atexit
import functools
import multiprocessing
import os
import pathlib
import runpy
import shutil
import subprocess
import sys
import tempfile

_CONTEXT = multiprocessing.get_context('forkserver')
_CONTEXT.set_forkserver_preload([
    'ln_tfp', 'sklearn.datasets', 'experiments.cli.app',
    'experiments.data.embedded', 'experiments.sweep.launch',
    'experiments.training.runner'])


class _Process:

  def output(self, timeout):
    """What a function said that has ended well."""
    output, errors = self.communicate(timeout)
    assert self.returncode == 0, errors
    return output


class Fork(_Process):
  """A process that calls a function, with the methods of `Popen`.

  Args:
    function: of a module.
    *arguments: its arguments.
    **variables: of the environment, on top of ours.
  """

  def __init__(self, function, *arguments, **variables):
    folder = pathlib.Path(tempfile.mkdtemp(dir=_folder()))
    self._files = [folder / name for name in ('output', 'errors')]
    self._process = _CONTEXT.Process(target=_main, args=(
        self._files, {**os.environ, **variables}, function, arguments))
    self._process.start()
    self.kill = self._process.kill

  @property
  def returncode(self):
    return self._process.exitcode

  def poll(self):
    return self._process.exitcode

  def send_signal(self, number):
    os.kill(self._process.pid, number)

  def wait(self, timeout=None):
    self._process.join(timeout)
    if self.returncode is None:
      raise subprocess.TimeoutExpired(self._process.name, timeout)
    return self.returncode

  def communicate(self, timeout=None):
    """Waits for the end; returns what was said, and the errors."""
    self.wait(timeout)
    return tuple(file.read_text(errors='replace') for file in self._files)


def program(module, *flags):
  """As `python -m`."""
  sys.argv = [module, *flags]
  runpy.run_module(module, run_name='__main__', alter_sys=True)


class Fresh(_Process, subprocess.Popen):
  """The same in a process that imports everything itself.

  Args:
    function: of a module.
    *arguments: its arguments, which it gets as texts.
    **variables: of the environment, on top of ours.
  """

  def __init__(self, function, *arguments, **variables):
    super().__init__(
        [sys.executable, '-c', 'import pkgutil, sys\n'
         'pkgutil.resolve_name(sys.argv[1])(*sys.argv[2:])',
         f'{function.__module__}:{function.__name__}', *map(str, arguments)],
        env={**os.environ, **variables}, cwd=pathlib.Path(__file__).parents[1],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@functools.cache
def _folder():
  """For what the processes say; gone with ours."""
  folder = tempfile.mkdtemp()
  atexit.register(shutil.rmtree, folder)
  return folder


def _main(files, variables, function, arguments):
  for descriptor, path in enumerate(files, start=1):
    with path.open('wb') as file:
      os.dup2(file.fileno(), descriptor)
  os.environ.update(variables)
  function(*arguments)

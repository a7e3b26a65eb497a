"""Processes that have imported TensorFlow before they start.

They are forks of one that has, and that has computed nothing yet: a process of
its own costs no seconds.
"""

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile

_CONTEXT = multiprocessing.get_context('forkserver')
_CONTEXT.set_forkserver_preload([
    'ln_tfp', 'sklearn.datasets', 'experiments.cli.app',
    'experiments.data.embedded', 'experiments.sweep.launch',
    'experiments.training.runner'])


class Fork:
  """A process that calls a function, with the methods of `Popen`.

  Args:
    function: of a module.
    *arguments: its arguments.
    **variables: of the environment, on top of ours.
  """

  def __init__(self, function, *arguments, **variables):
    self._files = [  # closed with the object
        tempfile.NamedTemporaryFile('r', errors='replace')  # noqa: SIM115
        for _ in range(2)]
    self._process = _CONTEXT.Process(target=_main, args=(
        [file.name for file in self._files], {**os.environ, **variables},
        function, arguments))
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
    for file in self._files:
      file.seek(0)
    return tuple(file.read() for file in self._files)

  def output(self, timeout):
    """What a function said that has ended well."""
    output, errors = self.communicate(timeout)
    assert self.returncode == 0, errors
    return output


def program(module, *flags):
  """As `python -m`."""
  sys.argv = [module, *flags]
  runpy.run_module(module, run_name='__main__', alter_sys=True)


def _main(names, variables, function, arguments):
  for descriptor, name in enumerate(names, start=1):
    file = os.open(name, os.O_WRONLY | os.O_APPEND)
    os.dup2(file, descriptor)
    os.close(file)
  os.environ.update(variables)
  function(*arguments)

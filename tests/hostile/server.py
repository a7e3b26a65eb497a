"""Runs hostile cases in a fork of a process that has imported everything.

    python -m tests.hostile.server [NAME...]

reads names of cases from stdin, a line each, and answers each with a line of
JSON; with names or kinds (or `all`) as arguments it prints what went wrong, and
counts. TensorFlow is imported once, and nothing of it has run when the process
forks: a case that hangs, or takes its process with it, costs no more than a
fork.
"""

import collections
import contextlib
import fnmatch
import gc
import hashlib
import importlib
import json
import os
import pathlib
import re
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from unittest import mock
import warnings

from ln_tfp import quiet

_SECONDS = 40.  # after which a case hangs; the machine may be busy
_CPU_SECONDS = 15
_MEMORY = 3 * 2**30  # that a case may take beside what is there already
_ACCEPTED = 0
_REFUSED = 2
_CRASHED = 70
_WRONG = 71
_LARGE = 2**24  # bytes, beyond which a file is not hashed
# Kinds of outcomes; all but the first are failures.
KINDS = ('right', 'traceback', 'hang', 'silently accepted', 'lost file',
         'stray file', 'unclear', 'refused')


class _WorkerStarted(BaseException):
  """A program has begun to train what it should have refused."""


class Server:
  """Runs cases in a child, which is replaced when a case has harmed it."""

  def __init__(self, cases):
    self._cases = cases
    self._child = None  # pid, pipe to it, pipe from it

  def run(self, name: str) -> dict[str, str]:
    """Returns the kind of outcome of a case, and what was said."""
    case = self._cases[name]
    base = pathlib.Path(tempfile.mkdtemp(prefix='hostile-'))
    here = os.getcwd()
    try:
      for part in ('place/work', 'place/tmp', 'place/home'):
        (base / part).mkdir(parents=True)
      os.chdir(base / 'place/work')
      for make in case.makers:
        make()
      before = _snapshot(base / 'place')
      status = self._ask(name, base)
      differences = _differences(before, _snapshot(base / 'place'))
      said = [(base / file).read_text(errors='replace')
              for file in ('out', 'err')]
      kind, detail = _judge(case, status, *said, differences)
      return {'kind': kind, 'detail': detail}
    finally:
      os.chdir(here)
      shutil.rmtree(base, ignore_errors=True)

  def close(self) -> None:
    """Ends the child."""
    if self._child is not None:
      child, *pipes = self._child
      self._child = None
      os.killpg(child, signal.SIGKILL)
      os.waitpid(child, 0)
      for descriptor in pipes:
        os.close(descriptor)

  def _ask(self, name, base):
    """Returns the exit status; None of a case that hangs, < 0 of a signal."""
    if self._child is None:
      self._fork()
    child, there, back = self._child
    os.write(there, f'{json.dumps([name, str(base)])}\n'.encode())
    ready, _, _ = select.select([back], [], [], _SECONDS)
    answer = os.read(back, 100) if ready else b''
    if answer:
      return int(answer)
    if ready:  # it is gone
      _, code = os.waitpid(child, 0)
      self._child = None
      os.close(there)
      os.close(back)
      return os.waitstatus_to_exitcode(code)
    self.close()
    return None

  def _fork(self):
    (read, there), (back, write) = os.pipe(), os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child:
      os.close(read)
      os.close(write)
      self._child = (child, there, back)
      return
    try:
      os.setsid()
      os.close(there)
      os.close(back)
      os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
      with quiet.stderr():
        _compute()
      with os.fdopen(read) as requests:
        for request in requests:
          name, base = json.loads(request)
          status = _child(self._cases[name], pathlib.Path(base))
          os.write(write, str(status).encode())
    finally:
      os._exit(_CRASHED)


def _compute():
  """Wakes TensorFlow, which says at first what devices it does not find."""
  import tensorflow as tf
  tf.zeros([1]) + 1.


def _child(case, base):
  """Does what the case says; returns an exit status."""
  os.chdir(base / 'place/work')
  os.environ.update(
      HOME=str(base / 'place/home'), TMPDIR=str(base / 'place/tmp'))
  tempfile.tempdir = None
  with open('/proc/self/statm', encoding='ascii') as file:
    size = int(file.read().split()[0]) * os.sysconf('SC_PAGE_SIZE')
  resource.setrlimit(resource.RLIMIT_AS, (size + _MEMORY, -1))
  used = int(time.process_time())
  resource.setrlimit(resource.RLIMIT_CPU, (used + _CPU_SECONDS, -1))
  for name, descriptor in (('out', 1), ('err', 2)):
    file = os.open(base / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, descriptor)
    os.close(file)
  sys.stdout = os.fdopen(1, 'w', closefd=False)
  sys.stderr = os.fdopen(2, 'w', closefd=False)
  try:
    status = _status(case)
  except _WorkerStarted:
    print('A worker was started.', file=sys.stderr)
    status = _ACCEPTED
  except AssertionError as error:
    print(error, file=sys.stderr)
    status = _WRONG
  except BaseException:
    traceback.print_exc()
    status = _CRASHED
  sys.stdout.flush()
  sys.stderr.flush()
  return status


def _status(case):
  """As the interpreter would end."""
  try:
    return {'audit': _audit, 'program': _program, 'call': _call}[case.kind](
        case.what)
  except SystemExit as error:
    if isinstance(error.code, str):
      print(error.code, file=sys.stderr)
      return 1
    return error.code or 0


def _audit(arguments):
  from ln_tfp.audit import __main__ as command
  return command.main(arguments)


def _program(arguments):
  from absl.testing import flagsaver

  from experiments.cli import app
  from experiments.cli import recipes
  from experiments.sweep import launch
  launch.pool_lib.Pool = _NoPool
  split = next(i for i, word in enumerate(arguments) if '=' not in word)
  variables = dict(word.split('=', 1) for word in arguments[:split])
  name, *rest = arguments[split:]
  module = importlib.import_module(f'experiments.{name}')
  sys.argv = [name, *rest]
  with flagsaver.flagsaver(), mock.patch.dict(os.environ, variables):
    argv = app.guard(lambda: recipes.parse(sys.argv))
    return app.guard(lambda: app.check_and_call(module.main, argv)) or 0


class _NoPool:
  """A pool whose workers are never to start."""

  slots = 1

  def __init__(self, *unused):
    pass

  def submit(self, key, task):
    raise _WorkerStarted(key, task)

  def wait(self, seconds):
    del seconds
    return []

  def close(self):
    pass


def _call(function):
  import tensorflow as tf
  try:
    function()
  except (TypeError, ValueError, tf.errors.InvalidArgumentError) as error:
    print(' '.join(f'{type(error).__name__}: {error}'.split()), file=sys.stderr)
    return _REFUSED
  return _ACCEPTED


def _snapshot(root):
  """Returns what is there: from each path to its kind and content."""
  found = {}
  for path in sorted(root.rglob('*')):
    name = path.relative_to(root).as_posix()
    if path.is_symlink():
      found[name] = ('link', os.readlink(path))
    elif path.is_file():
      stat = path.stat()
      found[name] = ('file', stat.st_size, stat.st_mtime_ns) if (
          stat.st_size > _LARGE) else (
              'file', hashlib.sha256(path.read_bytes()).hexdigest())
    else:
      found[name] = ('folder' if path.is_dir() else 'other', '')
  return found


def _differences(before, after):
  """Returns paths that are gone or other than before, and those that are new.
  """
  return ([name for name in before if after.get(name) != before[name]],
          [name for name in after if name not in before])


def _judge(case, status, out, err, differences):
  """Returns the kind of outcome, and details."""
  detail = f'status {status}; stderr: {err[-1500:]!r}; stdout: {out[-300:]!r}'
  allowed = lambda name: any(
      fnmatch.fnmatch(name, f'work/{pattern}') for pattern in case.changes)
  lost, stray = ([name for name in names if not allowed(name)]
                 for names in differences)
  if status in (None, -signal.SIGXCPU):
    return 'hang', detail
  if lost:
    return 'lost file', f'{lost}; {detail}'
  if status == _WRONG:
    return 'silently accepted', detail
  if status < 0 or status == _CRASHED or 'Traceback (most' in out + err:
    return 'traceback', detail
  if case.says is None:
    if status:
      return 'refused', detail
  elif not status and case.ends != 'shown':
    return 'silently accepted', detail
  elif status and case.ends == 'shown':
    return 'refused', detail
  else:
    lines = [line for line in err.splitlines() if line.strip()]
    said = [line for line in lines if re.search(case.says, line)]
    if len(said) != 1 or case.ends == 'refused' and len(lines) > 1:
      return 'unclear', detail
  if stray:
    return 'stray file', f'{stray}; {detail}'
  return 'right', detail


def start():
  """Imports all that the cases need, and returns the cases by name."""
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
  for name in ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS',
               'TF_NUM_INTRAOP_THREADS', 'TF_NUM_INTEROP_THREADS'):
    os.environ[name] = '1'
  with quiet.stderr():  # TensorFlow has much to say when it is imported
    from tests.hostile import tables
    for name in tables.IMPORTS:
      importlib.import_module(name)
  for category in (RuntimeWarning, UserWarning):  # each time, not once
    warnings.simplefilter('always', category)
  gc.freeze()  # what is shared with the forks stays so
  return {case.name: case for case in tables.CASES}


def main(arguments):
  """Serves the tests, or prints a report."""
  cases = start()
  with contextlib.closing(Server(cases)) as server:
    if arguments:
      _report(server, cases, arguments)
      return
    print('ready', flush=True)
    for line in sys.stdin:
      print(json.dumps(server.run(line.rstrip('\n'))), flush=True)


def _report(server, cases, arguments):
  counts = collections.Counter()
  chosen = [name for name in cases if arguments == ['all'] or any(
      argument in (name, cases[name].kind) for argument in arguments)]
  begin = time.monotonic()
  for name in chosen:
    start_of_case = time.monotonic()
    outcome = server.run(name)
    counts[outcome['kind']] += 1
    seconds = time.monotonic() - start_of_case
    if outcome['kind'] != 'right' or seconds > 3.:
      print(f'{outcome["kind"]:18} {seconds:5.1f} s  {name}\n'
            f'    {outcome["detail"]}', flush=True)
  print(f'{len(chosen)} cases in {time.monotonic() - begin:.0f} s:',
        ', '.join(f'{kind} {counts[kind]}' for kind in KINDS if counts[kind]))


if __name__ == '__main__':
  main(sys.argv[1:])

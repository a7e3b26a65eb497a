"""Flags are read before anything is imported that takes its time."""

import json
import pathlib
import subprocess
import sys

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[3]
# All but those with the flags of something else, such as the audit's.
_PROGRAMS = sorted(
    path.stem for path in (_ROOT / 'experiments').glob('*.py')
    if 'app.start(main' in path.read_text(encoding='utf-8'))
_SLOW = ('keras', 'ln_tfp', 'matplotlib', 'pandas', 'ray', 'scipy', 'sklearn',
         'tensorflow', 'tensorflow_datasets', 'tensorflow_probability')
# As `python -m` for each line of input, an environment and arguments, in a fork
# of a process that has imported what all programs do; the slow packages come as
# a last line.
_SERVE = f"""
import json, os, runpy, sys, tempfile
import absl.app, experiments.cli.app
for line in sys.stdin:
  environment, arguments = json.loads(line)
  files = [tempfile.TemporaryFile() for _ in range(2)]
  child = os.fork()
  if not child:
    for number, file in enumerate(files, start=1):
      os.dup2(file.fileno(), number)
    os.environ.update(environment)
    sys.argv = arguments
    status = 1
    try:
      runpy.run_module(arguments[0], run_name='__main__', alter_sys=True)
      status = 0
    except SystemExit as error:
      if isinstance(error.code, str):
        print(error.code, file=sys.stderr)
      else:
        status = error.code or 0
    finally:
      print(*(name for name in {_SLOW} if name in sys.modules), flush=True)
      os._exit(status)
  status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
  for file in files:
    file.seek(0)
  print(json.dumps([status, *(file.read().decode() for file in files)]),
        flush=True)
"""


@pytest.fixture(name='call', scope='module')
def _call():
  """A function for the exit status, the lines of output and the errors."""
  with subprocess.Popen(
      [sys.executable, '-c', _SERVE], cwd=_ROOT, text=True,
      stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
    def call(program, *arguments, **environment):
      print(json.dumps(
          [environment, [f'experiments.{program}', *arguments]]),
          file=server.stdin, flush=True)
      status, output, errors = json.loads(server.stdout.readline())
      return status, output.splitlines(), errors

    yield call
    server.stdin.close()


def test_there_are_programs():
  assert {'synthetic_noise', 'report', 'prepare'} <= set(_PROGRAMS)


@pytest.mark.parametrize('program', _PROGRAMS)
def test_help_is_there_at_once(program, call):
  _, [*text, packages], errors = call(program, '--help')
  assert not packages
  assert not errors
  assert f'experiments.{program}' in '\n'.join(text)


def test_a_reader_who_leaves_early_is_no_error():
  with subprocess.Popen(
      [sys.executable, '-m', 'experiments.pack', '--help'], cwd=_ROOT,
      stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
    process.stdout.close()
    assert not process.stderr.read()


@pytest.mark.parametrize('flag, words', [
    ('--nonesuch', 'nonesuch'),
    ('--seeds=many', 'seeds'),
    ('--seeds=0', '--seeds: must be at least 1'),
    ('--dataset=nonesuch', '--dataset: must be one of'),
    ('--dataset=clothing1m', '--dataset: here it must be one of'),
    ('--methods=XY', '--methods: must be one of'),
    ('--noise=loud', '--noise: must be none, sym:RATE'),
    ('--jobs=0', '--jobs: must be at least 1'),
])
def test_a_bad_flag_is_refused_at_once(tmp_path, flag, words, call):
  status, [packages], errors = call(
      'synthetic_noise', f'--output_dir={tmp_path}', flag)
  assert status == 1
  assert not packages
  [line] = errors.splitlines()
  assert line.startswith('synthetic_noise: ')
  assert words in line


@pytest.mark.parametrize('is_in_file', [False, True])
def test_another_backend_than_tensorflow_is_refused_at_once(
    tmp_path, is_in_file, call):
  environment = {'KERAS_BACKEND': 'jax'}
  if is_in_file:
    (tmp_path / 'keras.json').write_text('{"backend": "jax"}')
    environment = {'KERAS_BACKEND': '', 'KERAS_HOME': str(tmp_path)}
  status, [packages], errors = call(
      'synthetic_noise', f'--output_dir={tmp_path / "results"}', **environment)
  assert status == 1
  assert not packages
  [line] = errors.splitlines()
  assert line == (
      "synthetic_noise: The experiments need Keras's TensorFlow backend: set "
      'KERAS_BACKEND=tensorflow. Received: jax')
  assert not (tmp_path / 'results').exists()

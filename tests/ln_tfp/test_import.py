"""What `import ln_tfp` does, and what it leaves alone."""

import ast
import os
import pathlib
import re
import subprocess
import sys

import pytest

import ln_tfp


def run(script, **environment):
  environment = {**os.environ, **environment}
  environment.pop('TF_CPP_MIN_LOG_LEVEL', None)
  return subprocess.run([sys.executable, '-c', script], capture_output=True,
                        text=True, env=environment)


@pytest.mark.slow
def test_the_import_changes_neither_the_environment_nor_the_streams():
  done = run(
      'import os, sys\n'
      'import tensorflow, tensorflow_probability, keras\n'
      'streams = lambda: [os.fstat(n).st_ino for n in (1, 2)]\n'
      'before = dict(os.environ), sys.stdout, sys.stderr, streams()\n'
      'import ln_tfp\n'
      'assert before == (\n'
      '    dict(os.environ), sys.stdout, sys.stderr, streams())\n'
      'assert not [m for m in sys.modules if m.startswith("experiments")]\n'
      '# What takes its time and few need.\n'
      'assert "sklearn.linear_model" not in sys.modules\n')
  assert done.returncode == 0, done.stderr
  assert done.stdout == ''


@pytest.mark.slow
def test_another_backend_is_refused_in_one_sentence():
  done = run('import ln_tfp', KERAS_BACKEND='numpy')
  last = done.stderr.strip().splitlines()[-1]
  assert done.returncode != 0
  assert last.startswith(
      'ImportError: ln_tfp runs on Keras with its TensorFlow, JAX or PyTorch '
      'backend: ')


def test_no_message_names_a_command_that_a_pip_user_lacks():
  # Of the laboratory, or of make. Docstrings count as well.
  package = pathlib.Path(ln_tfp.__file__).parent
  for path in package.rglob('*.py'):
    for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
      if isinstance(node, ast.Constant) and isinstance(node.value, str):
        assert not re.search(
            r'-m experiments|`make |requirements\.txt', node.value), path


def test_the_package_says_that_it_is_typed():
  assert (pathlib.Path(ln_tfp.__file__).parent / 'py.typed').exists()

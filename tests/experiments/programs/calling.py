"""Calls the programs in this process."""

import contextlib
import io
import sys
from unittest import mock

from experiments.cli import app
from experiments.cli import recipes


def call(program, *arguments):
  """Calls a program; returns its status, output and errors."""
  argv = [program.__name__.rpartition('.')[2], *arguments]
  output, errors = io.StringIO(), io.StringIO()
  with (contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
        mock.patch.object(sys, 'argv', argv)):
    try:
      rest = app.guard(lambda: recipes.parse(argv))
      status = app.guard(lambda: app.check_and_call(program.main, rest))
    except SystemExit as error:
      status = error.code
  return status, output.getvalue(), errors.getvalue()

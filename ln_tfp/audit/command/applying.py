"""The work of `python -m ln_tfp.audit apply`."""

import csv
import io
import os
import pathlib

import numpy as np

from ln_tfp import files as files_lib
from ln_tfp.audit import files
from ln_tfp.audit.files import tables
from ln_tfp.audit.review import decisions as decisions_lib


def run(arguments) -> None:
  """Writes corrected labels and a log of changes.

  Args:
    arguments: of the command.
  """
  output = pathlib.Path(arguments.output)
  log = output.with_name(f'{output.stem}.changes.csv')
  for path in (output, log):
    if os.path.lexists(path):
      raise files.InputError(
          f'--output: {path} exists already; nothing is overwritten.')
  table = tables.read(arguments.labels)
  columns, label, ids = _read(table, arguments.label, arguments.id)
  try:
    after = decisions_lib.apply(arguments.decisions, ids, [
        str(value).strip() for value in columns[label]])
  except ValueError as error:
    raise files.InputError(error) from error
  columns[label] = after.labels
  kept = np.flatnonzero(after.kept)
  text = _to_text(columns, kept, table.separator)
  try:
    after.write_log(log)
    files_lib.write_atomically(output, text.encode())
  except BaseException:
    log.unlink(missing_ok=True)  # both or none
    raise
  changed = sum(change.after != '' for change in after.changes)
  print(f'{output}: {len(kept):,} labels, of which {changed:,} are changed; '
        f'{len(ids) - len(kept):,} examples are removed')
  print(f'{log}: a line for each change')


def _read(table, label, identifier):
  """Returns the columns, that of the labels, and what the rows are called."""
  columns = dict(table.columns)
  if label is None and set(columns) >= tables.OWN:
    # The audit's own table: only ids and labels make a list of labels.
    columns = {'id': columns['id'], 'label': columns['given']}
    return columns, 'label', columns['id']
  label = table.find(label, 'label')
  ids, named = table.ids(identifier)
  if named is None and identifier is None:
    files_column = tables.file_column(table)
    if files_column not in (None, label):
      ids = columns[files_column]
  return columns, label, ids


def _to_text(columns, kept, separator):
  """Returns the table as it was, with other labels and without some rows."""
  file = io.StringIO()
  writer = csv.writer(file, delimiter=separator, lineterminator='\n')
  writer.writerow(columns)
  for i in kept:
    writer.writerow([cells[i] for cells in columns.values()])
  return file.getvalue()

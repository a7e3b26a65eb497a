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
  try:
    decisions = decisions_lib.read(arguments.decisions)
    columns, label, ids = _read(
        table, arguments.label, arguments.id, decisions)
    after = decisions_lib.apply(
        decisions, ids, _names(columns[label], arguments.classes))
  except ValueError as error:
    raise files.InputError(error) from error
  columns[label] = after.labels
  kept = np.flatnonzero(after.kept)
  text = _to_text(columns, kept, table.separator)
  try:
    after.write_log(log)
    files_lib.write_atomically(output, text.encode(table.encoding))
  except BaseException:
    log.unlink(missing_ok=True)  # both or none
    raise
  changed = sum(change.after != '' for change in after.changes)
  removed = len(ids) - len(kept)
  print(f'{output}: {len(kept):,} labels, of which {changed:,} '
        f'{"is" if changed == 1 else "are"} changed; {removed:,} '
        f'{"example is" if removed == 1 else "examples are"} removed')
  print(f'{log}: a line for each change')


def _read(table, label, identifier, decisions):
  """Returns the columns, that of the labels, and what the rows are called."""
  columns = dict(table.columns)
  if label is None and set(columns) >= tables.OWN:
    # The audit's own table: only ids and labels make a list of labels.
    columns = {'id': columns['id'], 'label': columns['given']}
    return columns, 'label', columns['id']
  label = table.find(label, 'label')
  return columns, label, _ids(table, identifier, label, decisions)


def _ids(table, identifier, label, decisions):
  """Returns what the rows are called.

  An audit calls the rows of a table by their ids or positions and the images of
  a list by their files: the decisions show which one it was.
  """
  ids, named = table.ids(identifier)
  files_column = tables.file_column(table)
  if identifier is not None or files_column in (None, label, named):
    return ids
  names = table.columns[files_column]
  decided = {decision.id for decision in decisions}
  if decided <= set(map(str, names)):
    return names
  return names if named is None and not decided <= set(map(str, ids)) else ids


def _names(labels, class_names):
  """Returns labels as the audit calls them."""
  names = np.array([_name(label) for label in labels], object)
  if class_names is not None:
    known = np.array([not tables.is_unlabelled(label) for label in labels])
    codes, _ = files.encode(names[known], class_names)
    names[known] = np.array(class_names, object)[codes]
  return names


def _name(label):
  if label is None or label != label:
    return ''
  if isinstance(label, (float, np.floating)) and label.is_integer():
    label = int(label)  # Parquet's 1.0 is class 1
  return str(label).strip()


def _to_text(columns, kept, separator):
  """Returns the table as it was, with other labels and without some rows."""
  file = io.StringIO()
  writer = csv.writer(file, delimiter=separator, lineterminator='\n')
  writer.writerow(columns)
  for i in kept:
    writer.writerow([cells[i] for cells in columns.values()])
  return file.getvalue()

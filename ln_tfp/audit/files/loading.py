"""From the paths of a user to a `Dataset`."""

import os
import pathlib

import numpy as np

from ln_tfp.audit.files import arrays
from ln_tfp.audit.files import columns as columns_lib
from ln_tfp.audit.files import dataset
from ln_tfp.audit.files import images
from ln_tfp.audit.files import labels as labels_lib
from ln_tfp.audit.files import tables


def load(
    data: str | os.PathLike, labels: str | os.PathLike | None = None,
    class_names: tuple[str, ...] | None = None, *,
    label: str | None = None, identifier: str | None = None,
    ignore: tuple[str, ...] = (), allow_outside: bool = False
) -> dataset.Dataset:
  """Returns examples and labels from files.

  Args:
    data: a `.npy` file; a `.npz` file with arrays `images`, `x` or `features`
      and perhaps `labels` or `y`; a folder of images; or a table, `.csv`,
      `.tsv` or `.parquet`.
    labels: a `.npy` file, or a table with a column `label`, and a column `file`
      for a folder of images. Without it the folder has a sub-folder for each
      class.
    class_names: the classes; by default the labels that occur, in order.
    label: the column of the labels, in a table.
    identifier: the column that says what the rows of a table are called.
    ignore: columns of a table to leave out.
    allow_outside: whether a list of images may name some outside of the folder.
  """
  path = pathlib.Path(data)
  if path.is_dir():
    found = _load_folder(path, labels, label, allow_outside)
  else:
    path = dataset.regular_file(path)
    if path.suffix.lower() in ('.npy', '.npz'):
      found = _load_arrays(path, labels, label)
    else:
      found = _load_table(path, labels, label, identifier, ignore)
  inputs, values, ids, rows, notes = found
  if isinstance(values, np.ndarray) and not values.ndim:
    raise dataset.InputError(
        f'Labels must be a single column; there is one value, {values}.')
  if len(inputs) != len(values):
    raise dataset.InputError(
        f'There are {len(inputs)} examples and {len(values)} labels; there '
        'must be one label for each example.')
  codes, class_names = labels_lib.encode(values, class_names)
  return dataset.Dataset(
      inputs, codes, ids, class_names, rows=rows, notes=tuple(notes))


def _load_arrays(path, labels, label):
  inputs, values = arrays.read(path)
  if labels is not None:
    values = _read_labels(labels, label)
  if values is None:
    raise dataset.InputError('Labels are missing: say --labels FILE.')
  inputs = arrays.check(inputs, path)
  return inputs, values, np.arange(len(inputs)), None, ()


def _read_labels(path, label):
  """Returns the labels of a file that has nothing else to say."""
  if pathlib.Path(path).suffix.lower() in ('.npy', '.npz'):
    return arrays.read_labels(path)
  table = tables.read(path)
  return table.columns[table.find(label, 'label')]


def _load_folder(path, labels, label, allow_outside):
  if labels is None:
    pairs = images.list_classes(path)
    if not pairs:
      raise dataset.InputError(
          f'{path}: there are no images in sub-folders, one for each class; '
          'or say --labels FILE.')
    names, values = zip(*pairs)
  else:
    table = tables.read(labels)
    # A header without the column of files is the likelier mistake.
    names = [str(name) for name in table.columns[table.find(None, 'file')]]
    values = table.columns[table.find(label, 'label')]
    images.check_names(path, names, labels, allow_outside)
    for name in names:
      if not (path / name).is_file():
        raise dataset.InputError(
            f'{path / name}: not a readable image (there is no such file).')
  return images.ImageFolder(path, names), values, np.array(names), None, ()


def _load_table(path, labels, label, identifier, ignore):
  if labels is not None:
    raise dataset.InputError(
        f'{path} is a table, which has its labels in a column: say '
        '--label=NAME instead of --labels.')
  table = tables.read(path)
  label = table.find(label, 'label')
  for name in ignore:
    table.find(name, 'label')
  ids, named = table.ids(identifier)
  values = table.columns[label]
  labelled = np.array([not tables.is_unlabelled(value) for value in values])
  notes = []
  if not labelled.all():
    num = np.count_nonzero(~labelled)
    notes.append('1 row without a label is left out' if num == 1 else
                 f'{num:,} rows without a label are left out')
  kept = np.flatnonzero(labelled)
  pick = lambda cells: cells[kept] if isinstance(
      cells, np.ndarray) else [cells[i] for i in kept]
  content = {name: pick(cells) for name, cells in table.columns.items()
             if name != label}
  used = {name: cells for name, cells in content.items()
          if name != named and name not in ignore}
  if not len(kept):
    raise dataset.InputError(f'{path}: no row has a label.')
  try:
    features, kinds = columns_lib.featurize(used)
  except dataset.InputError as error:
    raise dataset.InputError(f'{path}: {error}') from error
  return (features, pick(values), ids[kept], tables.Rows(content),
          notes + kinds)

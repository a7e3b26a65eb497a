"""The work of `python -m ln_tfp.audit`: read, audit, print, write."""

import dataclasses
import functools
import json
import pathlib
import sys
import zipfile

import keras
import numpy as np

import ln_tfp
from ln_tfp.audit import closed_form
from ln_tfp.audit import files
from ln_tfp.audit import pillow
from ln_tfp.audit.command import estimating
from ln_tfp.audit.command import fitting
from ln_tfp.audit.command import output as output_lib
from ln_tfp.audit.command import pretrained
from ln_tfp.audit.review import decisions as decisions_lib

_SIZE = 32  # side of images that a small network is trained on
_DESCRIPTIONS = {
    'labels.csv': 'all labels with their quality',
    'audit.html': 'open it in a browser, decide, download decisions.csv',
    'classifier.keras': 'a plain Keras classifier',
}


def run(arguments, load_named) -> None:
  """Audits what the arguments of the command name.

  Args:
    arguments: of the command.
    load_named: serves `--dataset`.
  """
  folder = pathlib.Path(arguments.output)
  output_lib.check(
      folder, (arguments.data, arguments.images, arguments.labels,
               arguments.decisions, arguments.backbone), arguments.overwrite)
  data = _load(arguments, load_named)
  data, certain, before = _decide(data, arguments.decisions)
  for note in data.notes:
    print(note)
  report, classifier = _audit(data, certain, before, arguments)
  print(f'\n{report}\n')
  if data.clean_labels is not None:
    _print_found(report, data)
  writers = {'labels.csv': report.to_csv, 'audit.html': report.save}
  if classifier is not None:
    writers['classifier.keras'] = lambda path: save_classifier(
        classifier, path, data.class_names)
  output_lib.write(folder, writers, arguments.overwrite)
  for name in writers:
    print(f'{folder / name}: {_DESCRIPTIONS[name]}')
  if classifier is not None:
    print(f'Its outputs, in order: {", ".join(data.class_names)}')


def save_classifier(model: keras.Model, path, class_names) -> None:
  """Writes a model, and in it `class_names.json`, which Keras passes over."""
  model.save(path)
  with zipfile.ZipFile(path, 'a') as archive:
    archive.writestr('class_names.json', json.dumps(class_names))


def _load(arguments, load_named):
  sources = [name for name in ('data', 'images', 'dataset')
             if getattr(arguments, name) is not None]
  if len(sources) > 1:
    raise files.InputError(
        'DATA, --images and --dataset exclude each other.')
  path = arguments.data or arguments.images
  if path is not None:
    if arguments.noise:
      raise files.InputError('--noise needs --dataset.')
    return files.load(
        path, arguments.labels, arguments.classes, label=arguments.label,
        identifier=arguments.id, ignore=arguments.ignore,
        allow_outside=arguments.allow_outside)
  for name in ('labels', 'label', 'classes', 'id', 'ignore', 'allow_outside'):
    if getattr(arguments, name):
      raise files.InputError(f'--{name} needs DATA.')
  name, noise = arguments.dataset, arguments.noise
  if name is None:
    name, noise = 'digits', noise or 'sym:0.2'
    print('Demonstration: handwritten digits, some labels changed at random.')
  return load_named(name, noise or 'none', arguments.data_dir, arguments.seed)


def _decide(data, path):
  """Returns data after decisions, what is certain, and the labels before."""
  if path is None:
    return data, np.zeros(len(data), bool), data.labels
  names = np.array(data.class_names, object)
  try:
    after = decisions_lib.apply(path, data.ids, names[data.labels])
    labels, _ = files.encode(after.labels.astype(str), data.class_names)
  except ValueError as error:
    raise files.InputError(f'--decisions: {error}') from error
  print(f'{path}: {np.count_nonzero(after.certain):,} labels are certain, '
        f'{len(after.changes):,} are changed or removed.')
  if len(np.unique(labels[after.kept])) < 2:
    raise files.InputError(
        '--decisions: of the labels that are left all are the same; an audit '
        'needs at least two classes.')
  return (_subset(dataclasses.replace(data, labels=labels), after.kept),
          after.certain[after.kept], data.labels[after.kept])


def _subset(data, kept):
  if kept.all():
    return data
  positions = np.flatnonzero(kept)
  pick = lambda values: None if values is None else values[kept]
  rows = None if data.rows is None else [data.rows[i] for i in positions]
  inputs = data.inputs.subset(positions) if isinstance(
      data.inputs, files.ImageFolder) else data.inputs[kept]
  return dataclasses.replace(
      data, inputs=inputs, labels=pick(data.labels), ids=pick(data.ids),
      clean_labels=pick(data.clean_labels), rows=rows)


def _audit(data, certain, before, arguments):
  """Returns the report, ready for its page, and a classifier or None."""
  inputs = data.inputs
  if isinstance(inputs, files.ImageFolder) or inputs.ndim > 2:
    pillow.load()  # the page will need it: complain before minutes of work
  embedder = _embedder(arguments, inputs)
  _check_size(arguments.size, inputs, embedder)
  if embedder is None and isinstance(inputs, files.ImageFolder):
    inputs = inputs.array(arguments.size or _SIZE, sys.stderr)
  _print_size(data, inputs, embedder, arguments.epochs)
  names = {'ids': data.ids, 'class_names': data.class_names,
           'certain': certain}
  if embedder is None and inputs.ndim > 2:
    model = fitting.fit(
        inputs, data.labels, len(data.class_names), epochs=arguments.epochs,
        seed=arguments.seed, progress=sys.stderr)
    report = ln_tfp.audit_labels(model, inputs, data.labels, **names)
    classifier, features = ln_tfp.to_classifier(model), inputs
  else:
    features = inputs if embedder is None else pretrained.embed(
        embedder, inputs, sys.stderr)
    process = _process(
        features, data.labels, before, len(data.class_names))
    report = ln_tfp.audit_features(
        features, data.labels, process=process, **names)
    classifier = None if data.rows is not None else process.to_keras()
    if embedder is not None:
      classifier = keras.Sequential([embedder.backbone.model, classifier])
  if arguments.budget or arguments.precision:
    report = report.flag(arguments.budget, arguments.precision)
  return report.with_examples(
      None if data.rows is not None else data.inputs, features=features,
      rows=data.rows, shown=arguments.shown), classifier


def _process(features, labels, before, num_classes):
  """Returns a process; after decisions it takes the noise as it was before.

  Of the labels that are left when the clearest mistakes are put right, the
  noise could not be learnt any more.
  """
  make = functools.partial(closed_form.default_process, num_classes)
  if (labels == before).all() or len(np.unique(labels)) != len(
      np.unique(before)):
    return make()
  return make(noise_model=make().fit(features, before).noise_model_)


def _embedder(arguments, inputs):
  if arguments.backbone is None:
    return None
  if not isinstance(inputs, files.ImageFolder) and inputs.ndim != 4:
    raise files.InputError('--backbone needs images.')
  embedder = pretrained.load(arguments.backbone, arguments.size)
  if embedder is None:
    print('--backbone=auto: no pretrained network is on this machine or could '
          'be fetched; a small one is trained instead.')
  return embedder


def _check_size(size, inputs, embedder):
  """Refuses sides of images that do not fit, or where there are no images."""
  if size is None:
    return
  is_folder = isinstance(inputs, files.ImageFolder)
  if embedder is None and not is_folder:
    raise files.InputError(
        f'--size={size}: only the images of a folder are resized, or those for '
        'a --backbone.')
  held = len(inputs) if embedder is None else pretrained.BATCH_SIZE
  files.check_memory(f'--size={size}: the images', held * size**2 * 3)


def _print_size(data, inputs, embedder, epochs):
  """Says what will be done, and what it needs."""
  num, classes = len(data), len(data.class_names)
  size = estimating.predictions(
      num, classes, embedder is None and inputs.ndim > 2)
  if embedder is not None:
    width = embedder.width
    how = f'embedded by {embedder.name}'
    seconds = estimating.embedding(num, embedder)
    seconds += estimating.closed_form(num, width, classes)
    size += num * width * 4 + width**2 * 8 * 3
  else:
    shape = inputs.shape[1:]
    how = f'of shape {"x".join(map(str, shape))}'
    size += inputs.nbytes
    if len(shape) > 1:
      how += f'; network: {fitting.choose_network(shape)}'
      seconds = estimating.training(num, shape, epochs)
    else:
      seconds = estimating.closed_form(num, shape[0], classes)
      size += shape[0]**2 * 8 * 3
  print(f'{num:,} examples of {classes:,} classes, {how}; '
        f'{estimating.describe(seconds, size)}', flush=True)


def _print_found(report, data):
  wrong = data.labels != data.clean_labels
  found = np.count_nonzero(wrong & report.is_issue)
  false_alarms = np.count_nonzero(~wrong & report.is_issue)
  print(f'{np.count_nonzero(wrong):,} labels are known to be wrong: '
        f'{found:,} of them were found, with {false_alarms:,} false alarms.\n')

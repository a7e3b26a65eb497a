"""How time and memory grow: slopes of their logarithms, at most 1.

- Over K: loss and gradient of LN, uncompiled, B = 128.
- Over N: an epoch of `data.Batches`, from images in memory and from files.
- Over the number of results: a table from an output directory.

Takes about six minutes on two idle cores.
"""

import dataclasses
import pathlib
import tempfile
import time

import numpy as np
import tensorflow as tf

from benchmarks import loss
from benchmarks import memory
from benchmarks import timing
from experiments import data
from experiments import methods
from experiments import training
from experiments.output import tables
from experiments.paper import grids
from experiments.sweep import plan as plan_lib
import ln_tfp

_CLASSES = [10, 100, 1000, 10_000]
_EXAMPLES = [1_000, 10_000, 100_000, 1_000_000]
_FILES = [100, 1_000, 10_000]
_ROUNDS = 5


def call_loss(num_classes: int) -> None:
  """Loss and gradient of LN, once, at B = 1,024."""
  labels, _, packed = loss.make_outputs(1024, num_classes, 1)
  loss.value_and_gradient(ln_tfp.nll, labels, packed, False)()


def measure_classes() -> list[timing.Row]:
  """Over K."""
  contestants = {}
  for num_classes in _CLASSES:
    labels, _, packed = loss.make_outputs(128, num_classes, 1)
    contestants[str(num_classes)] = timing.repeat(
        loss.value_and_gradient(ln_tfp.nll, labels, packed, False))
  times = timing.take_turns(contestants, _ROUNDS)
  return [
      timing.slope('time of LN over K, B=128', _CLASSES,
                   [min(taken) for taken in times.values()], 'ms'),
      timing.slope('memory of LN over K, B=1024', _CLASSES[1:], [
          memory.rise(call_loss, k) for k in _CLASSES[1:]], 'MB')]


def deliver_from_memory(size: int) -> None:
  """An epoch of images of digits' size, from memory."""
  images = np.zeros([size, 8, 8, 1], np.uint8)
  _deliver(data.Batches(_examples(images), batch_size=128, seed=0))


def deliver_from_files(size: int, file: str) -> None:
  """An epoch of image files; all are the same, which the reader ignores."""
  _deliver(data.Batches(
      _examples(np.full(size, file)), batch_size=128, seed=0,
      preprocessing=data.Preprocessing(crop=8, resize=8)))


def _examples(inputs: np.ndarray) -> data.Examples:
  labels = np.zeros(len(inputs), np.int32)
  return data.Examples(inputs, labels, labels, np.arange(len(inputs)))


def _deliver(batches: data.Batches) -> None:
  for _ in batches.epoch(0):
    pass


def measure_examples() -> list[timing.Row]:
  """Over N."""
  rows = []
  with tempfile.TemporaryDirectory() as directory:
    file = f'{directory}/image.png'
    tf.io.write_file(file, tf.io.encode_png(np.zeros([8, 8, 3], np.uint8)))
    for name, function, arguments in (
        ('in memory', deliver_from_memory, ()),
        ('from files', deliver_from_files, (file,))):
      times, rises = [], []
      for size in _EXAMPLES:
        times.append(min(_seconds(function, size, *arguments)
                         for _ in range(3 if size < 1e6 else 1)))
        rises.append(memory.rise(function, size, *arguments))
      rows += [
          timing.slope(f'time of an epoch over N, {name}', _EXAMPLES, times,
                       's'),
          timing.slope(f'memory of an epoch over N, {name}', _EXAMPLES, rises,
                       'MB')]
  return rows


def make_results(directory: str, size: int) -> grids.Cells:
  """Writes so many results of digits; returns their runs, cell by cell."""
  with tempfile.TemporaryDirectory() as first:
    result = training.train(training.Run(), output_dir=first)
  cells = {}
  for number in range(size):
    place = methods.NAMES[number % len(methods.NAMES)], 'sym:0.4'
    run = training.Run(
        method=place[0], noise=place[1], seed=number // len(methods.NAMES))
    cells.setdefault(place, []).append(run)
    text = dataclasses.replace(
        result, key=run.key, run=run.to_dict()).to_json()
    (pathlib.Path(directory) / f'{run.key}.json').write_text(
        text, encoding='utf-8')
  return cells


def make_table(directory: str, cells: grids.Cells) -> None:
  """What a program does where all runs are finished."""
  plan = plan_lib.Plan(grids.flat(cells), directory)
  assert not plan.pending and not plan.problems()
  tables.build('', methods.NAMES, [tables.noise_column('sym:0.4')], cells,
               plan.results)


def measure_results() -> list[timing.Row]:
  """Over the number of results."""
  seconds = []
  for size in _FILES:
    with tempfile.TemporaryDirectory() as directory:
      cells = make_results(directory, size)
      seconds.append(min(
          _seconds(make_table, directory, cells) for _ in range(2)))
  return [timing.slope('time of a table over results', _FILES, seconds, 's')]


def _seconds(function, *arguments) -> float:
  begin = time.perf_counter()
  function(*arguments)
  return time.perf_counter() - begin


def measure() -> list[timing.Row]:
  """All rows."""
  return measure_classes() + measure_examples() + measure_results()

"""Thousands of classes and noisy labels: accuracy against wall time.

    python -m experiments.many_classes
    python -m experiments.many_classes --classes=500 --epochs=5

A Gaussian mixture: 2,000 classes whose means are random points on a sphere in
64 dimensions, ten training examples of each, and a network of one hidden layer
of 128 units, normalised. 40 % of the labels are drawn anew (symmetric), or
moved to the next class (asymmetric). The same network is trained through LN by
Gram matrices (`ln_tfp.ManyClassesHead`), LN through its packed tensor
(`LogisticNormalHead`) and cross entropy, with the same initial weights of the
hidden layer, batches and epochs, and a rate of Adam for each loss. The
contestants take turns, epoch by epoch, so that a load beside them meets all
alike. Measurements are kept in OUTPUT_DIR/many_classes; what is there is not
measured again.

Time: about three minutes on two idle cores.
Expected: both forms of LN reach the same accuracy, through Gram matrices in a
fraction of the others' time. Cross entropy passes its best accuracy and falls,
fitting wrong labels.
"""

from __future__ import annotations

import csv
import io
import pathlib
import sys
import time

from absl import flags
from etils import epy
import numpy as np

from experiments.cli import app
from experiments.output import figures

with epy.lazy_imports():
  import keras

  import ln_tfp

FLAGS = flags.FLAGS
NOISES = ('sym:0.4', 'asym:0.4')
METHODS = ('LN, Gram', 'LN, packed', 'CE')
_INPUTS, _FEATURES, _BATCH = 64, 128, 512
# Adam's first, which falls to zero; the better one of .001 and .005, or of .005
# and .01, with 500 classes.
_RATES = {'LN, Gram': 1e-2, 'LN, packed': 1e-2, 'CE': 1e-3}
_EXAMPLES_OF_CLASS, _TEST_EXAMPLES = 10, 2_000
_SPREAD = .08  # of a class, where the means are on the unit sphere
_EPOCHS = 12
_FOLDER = 'many_classes'
_MEASUREMENTS = f'{_FOLDER}/measurements.csv'
_FIELDS = ('classes', 'noise', 'method', 'epoch', 'seconds', 'cpu_seconds',
           'accuracy')

flags.DEFINE_integer('classes', 2_000, 'Number of classes.', lower_bound=2)


def make_data(num_classes: int, noise: str):
  """Returns x, noisy labels, test x and their true classes."""
  random = np.random.default_rng(0)
  means = random.normal(size=[num_classes, _INPUTS])
  means /= np.linalg.norm(means, axis=1, keepdims=True)
  true = np.tile(np.arange(num_classes), _EXAMPLES_OF_CLASS)
  test = random.integers(num_classes, size=_TEST_EXAMPLES)
  x, test_x = (
      ((means[rows] + _SPREAD * random.normal(size=[len(rows), _INPUTS]))
       * _INPUTS**.5).astype(np.float32) for rows in (true, test))
  following = {k: (k + 1) % num_classes for k in range(num_classes)}
  given = ln_tfp.noise.corrupt(
      true, noise, num_classes=num_classes, mapping=following)
  return x, given.astype(np.int32), test_x, test


class Contestant:
  """A network that is trained epoch by epoch.

  Attributes:
    rows: what was measured after some epochs.
  """

  def __init__(self, method: str, num_classes: int, num_steps: int):
    keras.utils.set_random_seed(0)
    hidden = [keras.layers.Dense(_FEATURES, activation='relu'),
              keras.layers.BatchNormalization()]
    kind = {'LN, Gram': ln_tfp.ManyClassesHead,
            'LN, packed': ln_tfp.LogisticNormalHead,
            'CE': keras.layers.Dense}[method]
    head = kind(num_classes)
    self._model = keras.Sequential([keras.Input([_INPUTS]), *hidden, head])
    loss = (keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            if method == 'CE' else head.loss())
    rate = keras.optimizers.schedules.CosineDecay(_RATES[method], num_steps)
    self._model.compile(keras.optimizers.Adam(rate), loss=loss)
    self._method = method
    self._epochs = 0
    self._seconds = self._cpu_seconds = 0.
    self.rows = []

  def warm_up(self, x: np.ndarray, y: np.ndarray) -> None:
    """Traces and compiles; the weights stay."""
    weights = self._model.get_weights()
    self._model.fit(x, y, batch_size=_BATCH, verbose=0)
    self._model.set_weights(weights)
    for variable in self._model.optimizer.variables:
      variable.assign(np.zeros(variable.shape))

  def train(self, x: np.ndarray, y: np.ndarray) -> None:
    """One epoch, in the order of the arrays."""
    self._epochs += 1
    begin, cpu_begin = time.perf_counter(), time.process_time()
    self._model.fit(x, y, batch_size=_BATCH, shuffle=False, verbose=0)
    self._seconds += time.perf_counter() - begin
    self._cpu_seconds += time.process_time() - cpu_begin

  def judge(self, x: np.ndarray, y: np.ndarray) -> None:
    """Adds a row about clean labels."""
    if self._method == 'CE':
      predicted = self._model.predict(x, batch_size=512, verbose=0).argmax(1)
    else:
      predicted = ln_tfp.predict_top_k(self._model, x, 1, batch_size=512)[0][
          :, 0]
    self.rows.append({
        'method': self._method, 'epoch': str(self._epochs),
        'seconds': f'{self._seconds:.3f}',
        'cpu_seconds': f'{self._cpu_seconds:.3f}',
        'accuracy': f'{100. * np.mean(predicted == y):.2f}'})


def measure(num_classes: int, noise: str, epochs: int) -> list[dict]:
  """Trains all contestants, in turns."""
  x, y, test_x, test_y = make_data(num_classes, noise)
  steps = max(1, len(x) // _BATCH)
  contestants = [Contestant(method, num_classes, epochs * steps)
                 for method in METHODS]
  for each in contestants:
    each.warm_up(x[:_BATCH], y[:_BATCH])
  for epoch in range(epochs):
    order = np.random.default_rng([0, epoch]).permutation(len(x))
    order = order[:steps * _BATCH]
    for each in contestants:
      each.train(x[order], y[order])
      if (epochs - 1 - epoch) % 2 == 0:  # every second, the last among them
        each.judge(test_x, test_y)
        print(noise, *each.rows[-1].values(), file=sys.stderr)
  return [{'classes': str(num_classes), 'noise': noise, **row}
          for each in contestants for row in each.rows]


def read(output_dir: str) -> list[dict]:
  """The measurements there are."""
  file = pathlib.Path(output_dir) / _MEASUREMENTS
  if not file.exists():
    return []
  with file.open(encoding='utf-8', newline='') as stream:
    return list(csv.DictReader(stream))


def write(found: list[dict]) -> None:
  """Writes the measurements."""
  stream = io.StringIO()
  writer = csv.DictWriter(stream, _FIELDS, lineterminator='\n')
  writer.writeheader()
  writer.writerows(found)
  app.write(_MEASUREMENTS, stream.getvalue())


def chosen(found, num_classes, noise, method) -> list[dict]:
  """The rows of one line, epoch by epoch."""
  return [row for row in found
          if (row['classes'], row['noise'], row['method']) == (
              str(num_classes), noise, method)]


def summarize(found, num_classes, noises) -> str:
  """Accuracy and time after the last epoch."""
  lines = ['| noise | method | epochs | test accuracy (%) | s | CPU s | '
           'time / CE |', '|---' * 7 + '|']
  for noise in noises:
    last = {method: chosen(found, num_classes, noise, method)[-1]
            for method in METHODS}
    for method, row in last.items():
      ratio = float(row['seconds']) / float(last['CE']['seconds'])
      lines.append(
          f'| {noise} | {method} | {row["epoch"]} | {row["accuracy"]} | '
          f'{float(row["seconds"]):.0f} | {float(row["cpu_seconds"]):.0f} | '
          f'{ratio:.2f} |')
  return '\n'.join([*lines, ''])


def draw(found, num_classes, noises):
  """Accuracy against wall time, a panel for each noise."""
  figure, axes = figures.panels(
      1, len(noises), width=3.4, height=2.8, sharey=True)
  for ax, noise in zip(axes[0], noises):
    for method in METHODS:
      rows = chosen(found, num_classes, noise, method)
      ax.plot([float(row['seconds']) for row in rows],
              [float(row['accuracy']) for row in rows], marker='o', ms=3,
              label=method)
    ax.set(title=f'{num_classes:,} classes, {noise}', xscale='log',
           xlabel='seconds of training')
  axes[0, 0].set(ylabel='test accuracy (%)')
  axes[0, 0].legend()
  return figure


def main(argv):
  del argv
  app.refuse('methods', 'search', 'dataset', 'hyperparameters', 'seeds')
  noises, num_classes = app.noises(NOISES), FLAGS.classes
  found = read(FLAGS.output_dir)
  for noise in noises:
    rows = chosen(found, num_classes, noise, METHODS[0])
    if not rows or rows[-1]['epoch'] != str(FLAGS.epochs):
      found = [row for row in found if (row['classes'], row['noise']) != (
          str(num_classes), noise)]
      found += measure(num_classes, noise, FLAGS.epochs)
      write(found)
  table = summarize(found, num_classes, noises)
  app.write(f'{_FOLDER}/summary.md', table)
  print(table)
  figures.publish(
      lambda: draw(found, num_classes, noises), FLAGS.output_dir,
      figures.Record(
          name='many_classes',
          title='Noise-robust training with thousands of classes',
          caption='Clean test accuracy after every second epoch against the '
          'seconds of training so far; the contestants take turns, epoch by '
          'epoch.',
          numbers={f'{method}, {noise}': float(chosen(
              found, num_classes, noise, method)[-1]['accuracy'])
                   for noise in noises for method in METHODS}))


if __name__ == '__main__':
  app.start(main, epochs=_EPOCHS)

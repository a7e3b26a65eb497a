"""Thousands of classes and noisy labels: accuracy against wall time.

    python -m experiments.many_classes
    python -m experiments.many_classes --classes=500 --epochs=5

A Gaussian mixture: 2,000 classes whose means are random points on a sphere in
64 dimensions, ten training examples of each, and a network of one hidden layer
of 128 units, normalised. 40 % of the labels are drawn anew (symmetric), or
moved to the next class (asymmetric). The same network is trained through LN by
Gram matrices (`ln_tfp.ManyClassesHead`), LN through its packed tensor
(`LogisticNormalHead`) and cross entropy, with the same initial weights of the
hidden layer, batches and epochs. Adam's rate, which falls to zero, is searched
for each loss alike: with a quarter of the classes and of the batch size, hence
as many steps, and the best accuracy on noisy labels of examples held apart (one
of each class); both forms of LN have one loss, hence one rate. The contestants
take turns, epoch by epoch, so that a load beside them meets all alike.
Measurements are kept in OUTPUT_DIR/many_classes; what is there is not measured
again.

Time: some minutes on two idle cores.
Expected: both forms of LN reach the same accuracy within a point. With 500
classes, symmetric noise and 40 epochs cross entropy at its best rate was two
points ahead; with 2,000 it has not been seen.
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
from experiments.cli import recipes
from experiments.output import figures
from experiments.sweep import csv_files

with epy.lazy_imports():
  import keras

  import ln_tfp

FLAGS = flags.FLAGS
NOISES = ('sym:0.4', 'asym:0.4')
METHODS = ('LN, Gram', 'LN, packed', 'CE')
_INPUTS, _FEATURES, _BATCH = 64, 128, 512
_RATES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)  # to choose from: Adam's first
_EXAMPLES_OF_CLASS, _TEST_EXAMPLES = 10, 2_000
_SPREAD = .08  # of a class, where the means are on the unit sphere
_EPOCHS = 24
_FOLDER = 'many_classes'
_MEASUREMENTS = f'{_FOLDER}/measurements.csv'
_FIELDS = ('classes', 'noise', 'method', 'rate', 'epoch', 'seconds',
           'cpu_seconds', 'accuracy')

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

  def __init__(
      self, method: str, num_classes: int, rate: float, num_steps: int):
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
    falling = keras.optimizers.schedules.CosineDecay(rate, num_steps)
    self._model.compile(keras.optimizers.Adam(falling), loss=loss)
    self._method, self._rate = method, rate
    self._epochs = 0
    self._seconds = self._cpu_seconds = 0.
    self.rows = []

  def warm_up(self, x: np.ndarray, y: np.ndarray) -> None:
    """Traces and compiles for one batch; the weights stay."""
    weights = self._model.get_weights()
    self._model.fit(x, y, batch_size=len(x), verbose=0)
    self._model.set_weights(weights)
    for variable in self._model.optimizer.variables:
      variable.assign(np.zeros(variable.shape))

  def train(self, x: np.ndarray, y: np.ndarray, batch_size: int) -> None:
    """One epoch, in the order of the arrays."""
    self._epochs += 1
    begin, cpu_begin = time.perf_counter(), time.process_time()
    self._model.fit(x, y, batch_size=batch_size, shuffle=False, verbose=0)
    self._seconds += time.perf_counter() - begin
    self._cpu_seconds += time.process_time() - cpu_begin

  def accuracy(self, x: np.ndarray, y: np.ndarray) -> float:
    """In per cent."""
    if self._method == 'CE':
      predicted = self._model.predict(x, batch_size=512, verbose=0).argmax(1)
    else:
      predicted = ln_tfp.predict_top_k(self._model, x, 1, batch_size=512)[0][
          :, 0]
    return 100. * float(np.mean(predicted == y))

  def judge(self, x: np.ndarray, y: np.ndarray) -> None:
    """Adds a row about clean labels."""
    self.rows.append({
        'method': self._method, 'rate': f'{self._rate:g}',
        'epoch': str(self._epochs),
        'seconds': f'{self._seconds:.3f}',
        'cpu_seconds': f'{self._cpu_seconds:.3f}',
        'accuracy': f'{self.accuracy(x, y):.2f}'})


def train(make, x, y, epochs: int, batch_size: int):
  """Trains contestants in turns; yields them after every epoch.

  Args:
    make: returns the contestants of a number of steps.
    x: inputs.
    y: given labels.
    epochs: their number.
    batch_size: number of examples in a step.
  """
  steps = max(1, len(x) // batch_size)
  contestants = make(epochs * steps)
  for each in contestants:
    each.warm_up(x[:batch_size], y[:batch_size])
  for epoch in range(epochs):
    order = np.random.default_rng([0, epoch]).permutation(len(x))
    order = order[:steps * batch_size]
    for each in contestants:
      each.train(x[order], y[order], batch_size)
    yield epoch, contestants


def find_rates(num_classes: int, noise: str, epochs: int) -> dict[str, float]:
  """The rate of each method, by the accuracy on noisy labels held apart."""
  num_classes, batch_size = max(2, num_classes // 4), _BATCH // 4
  x, y, *_ = make_data(num_classes, noise)
  held = slice(len(x) - num_classes, None)  # the last example of each class
  kept = slice(len(x) - num_classes)
  rates = {}
  for method in ('LN, Gram', 'CE'):
    *_, (_, contestants) = train(
        lambda steps, method=method: [
            Contestant(method, num_classes, rate, steps) for rate in _RATES],
        x[kept], y[kept], epochs, batch_size)
    found = [each.accuracy(x[held], y[held]) for each in contestants]
    print(noise, method, 'noisy labels held apart (%):', dict(
        zip(_RATES, found)), file=sys.stderr)
    rates[method] = _RATES[int(np.argmax(found))]
  return {**rates, 'LN, packed': rates['LN, Gram']}


def measure(num_classes: int, noise: str, epochs: int) -> list[dict]:
  """Trains all contestants, in turns."""
  rates = find_rates(num_classes, noise, epochs)
  x, y, test_x, test_y = make_data(num_classes, noise)
  make = lambda steps: [
      Contestant(method, num_classes, rates[method], steps)
      for method in METHODS]
  for epoch, contestants in train(make, x, y, epochs, _BATCH):
    if (epochs - 1 - epoch) % 2 == 0:  # every second, the last among them
      for each in contestants:
        each.judge(test_x, test_y)
        print(noise, *each.rows[-1].values(), file=sys.stderr)
  return [{'classes': str(num_classes), 'noise': noise, **row}
          for each in contestants for row in each.rows]


def read(output_dir: str) -> list[dict]:
  """The measurements there are."""
  file = pathlib.Path(output_dir) / _MEASUREMENTS
  if not file.exists():
    return []
  with recipes.naming('output_dir'):
    return csv_files.lines(file, _FIELDS)


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
  lines = ['| noise | method | rate | epochs | test accuracy (%) | s | CPU s | '
           'time / CE |', '|---' * 8 + '|']
  for noise in noises:
    last = {method: chosen(found, num_classes, noise, method)[-1]
            for method in METHODS}
    for method, row in last.items():
      ratio = float(row['seconds']) / float(last['CE']['seconds'])
      lines.append(
          f'| {noise} | {method} | {row["rate"]} | {row["epoch"]} | '
          f'{row["accuracy"]} | '
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
  app.start(main, computes=True, epochs=_EPOCHS)

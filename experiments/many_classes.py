"""Thousands of classes and noisy labels: accuracy against wall time.

    python -m experiments.many_classes
    python -m experiments.many_classes --classes=200 --updates=100

A Gaussian mixture whose means are random points on a sphere in 64 dimensions,
and a network of one hidden layer of D units, normalised. 40 % of the labels are
drawn anew (symmetric; 20 training examples of each class), or moved to the next
class (asymmetric; 50, of which fewer classes have more wrong than right labels
by chance). The same network is trained through LN by Gram matrices
(`ln_tfp.ManyClassesHead`), LN through its packed tensor (`LogisticNormalHead`)
and cross entropy, with the same initial weights of the hidden layer and the
same 600 batches of 2,048: 1,000 classes with D = 512, and, with symmetric noise
alone, 2,000 with D = 128, many more classes than features.

Adam's rate, which falls to zero, is searched for each loss alike: five rates
each, with a quarter of the classes, of D and of the batch, hence the same D / K
and as many updates; the best accuracy on noisy labels of further examples after
the last update wins. Both forms of LN have one loss, hence one rate. The
contestants take turns. Measurements are kept in OUTPUT_DIR/many_classes; what
is there is not measured again.

Time: a quarter of an hour on two idle cores.
Expected: after the last update LN is ahead of cross entropy, which fits the
noise by then (96.9 % against 88.1 %, asymmetric 83.2 % against 70.5 %, 2,000
classes 93.1 % against 88.9 %); with symmetric noise cross entropy is above 99 %
at first. LN by Gram matrices takes less time than cross entropy with D = 128,
and more with D = 512.
"""

from __future__ import annotations

import csv
import io
import pathlib
import sys
import time
from typing import NamedTuple

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
RATES = {'LN, Gram': (3e-3, 7e-3, 1.7e-2, 4e-2, 1e-1),
         'CE': (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)}
_INPUTS = 64
_BATCH, _TURNS = 2_048, 12
_TEST_EXAMPLES, _HELD = 4_000, 8  # held apart of each class, for the search
_SPREAD = .08  # of a class, where the means are on the unit sphere
_FOLDER = 'many_classes'
_MEASUREMENTS, _SEARCH = (
    f'{_FOLDER}/{name}.csv' for name in ('measurements', 'search'))
_PLACE = ('classes', 'width', 'updates', 'noise', 'method')
_KEYS = {_MEASUREMENTS: (*_PLACE, 'update'), _SEARCH: (*_PLACE, 'rate')}
_FIELDS = {
    _MEASUREMENTS: (*_KEYS[_MEASUREMENTS], 'rate', 'seconds', 'cpu_seconds',
                    'accuracy'),
    _SEARCH: (*_KEYS[_SEARCH], 'accuracy_on_noisy')}

flags.DEFINE_integer(
    'classes', 1_000, 'Number of classes, with about half as many features; in '
    'the last panel twice as many, with a fourth of the features.',
    lower_bound=20)
flags.DEFINE_integer('updates', 600, 'Number of updates.', lower_bound=1)


class Regime(NamedTuple):
  """The size of a problem: classes, hidden units, and examples of a batch."""
  classes: int
  width: int
  batch: int

  def quarter(self) -> Regime:
    """A smaller problem with the same ratios, where rates are searched."""
    return Regime(*(max(2, size // 4) for size in self))


def plan(num_classes: int, noises) -> list[tuple[Regime, str]]:
  """Half as many features as classes; and a sixteenth, with the first noise."""
  wide = Regime(num_classes, num_classes * 512 // 1_000, _BATCH)
  narrow = Regime(2 * num_classes, num_classes * 128 // 1_000, _BATCH)
  return [*((wide, noise) for noise in noises), (narrow, noises[0])]


def make_data(num_classes: int, noise: str, num_held: int = 0):
  """Returns the training set and another, `((x, y), (x, y))`.

  Args:
    num_classes: their number.
    noise: of the labels.
    num_held: of each class, examples with noisy labels that make the other set;
      0 makes it a test set with true ones.
  """
  random = np.random.default_rng(0)
  means = random.normal(size=[num_classes, _INPUTS])
  means /= np.linalg.norm(means, axis=1, keepdims=True)
  of_class = (50 if noise.startswith('asym') else 20) + num_held
  true = np.tile(np.arange(num_classes), of_class)
  test = random.integers(num_classes, size=_TEST_EXAMPLES)
  x, test_x = (
      ((means[rows] + _SPREAD * random.normal(size=[len(rows), _INPUTS]))
       * _INPUTS**.5).astype(np.float32) for rows in (true, test))
  following = {k: (k + 1) % num_classes for k in range(num_classes)}
  given = ln_tfp.noise.corrupt(
      true, noise, num_classes=num_classes, mapping=following).astype(np.int32)
  if not num_held:
    return (x, given), (test_x, test)
  first = len(x) - num_held * num_classes
  return (x[:first], given[:first]), (x[first:], given[first:])


class Contestant:
  """A network that is trained update by update.

  Attributes:
    rate: Adam's, at the beginning.
    seconds: of training so far.
    cpu_seconds: of training so far.
  """

  def __init__(self, method: str, regime: Regime, rate: float, updates: int):
    keras.utils.set_random_seed(0)
    hidden = [keras.layers.Dense(regime.width, activation='relu'),
              keras.layers.BatchNormalization()]
    kind = {'LN, Gram': ln_tfp.ManyClassesHead,
            'LN, packed': ln_tfp.LogisticNormalHead,
            'CE': keras.layers.Dense}[method]
    head = kind(regime.classes)
    self._model = keras.Sequential([keras.Input([_INPUTS]), *hidden, head])
    loss = (keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            if method == 'CE' else head.loss())
    falling = keras.optimizers.schedules.CosineDecay(rate, updates)
    self._model.compile(keras.optimizers.Adam(falling), loss=loss)
    self._method, self._batch = method, regime.batch
    self.rate = rate
    self.seconds = self.cpu_seconds = 0.

  def warm_up(self, x: np.ndarray, y: np.ndarray) -> None:
    """Traces and compiles for one batch; the weights stay."""
    weights = self._model.get_weights()
    self._model.fit(x, y, batch_size=self._batch, verbose=0)
    self._model.set_weights(weights)
    for variable in self._model.optimizer.variables:
      variable.assign(np.zeros(variable.shape))

  def train(self, x: np.ndarray, y: np.ndarray) -> None:
    """One pass, in the order of the arrays."""
    begin, cpu_begin = time.perf_counter(), time.process_time()
    self._model.fit(x, y, batch_size=self._batch, shuffle=False, verbose=0)
    self.seconds += time.perf_counter() - begin
    self.cpu_seconds += time.process_time() - cpu_begin

  def accuracy(self, x: np.ndarray, y: np.ndarray) -> float:
    """In per cent."""
    if self._method == 'CE':
      predicted = self._model.predict(x, batch_size=512, verbose=0).argmax(1)
    else:
      predicted = ln_tfp.predict_top_k(self._model, x, 1, batch_size=512)[0][
          :, 0]
    return 100. * float(np.mean(predicted == y))


def train(contestants, x, y, batch: int, updates: int, turns: int):
  """Trains contestants in turns; yields the updates made, after each turn.

  Args:
    contestants: all meet the same batches.
    x: inputs.
    y: given labels.
    batch: number of examples in an update.
    updates: their number.
    turns: at most as many.
  """
  random = np.random.default_rng(0)
  epochs = -(-updates * batch // len(x))
  order = np.concatenate([random.permutation(len(x)) for _ in range(epochs)])
  order = order[:updates * batch].reshape(updates, batch)
  for each in contestants:
    each.warm_up(x[order[0]], y[order[0]])
  done = 0
  for rows in np.array_split(order, min(turns, updates)):
    for each in contestants:
      each.train(x[rows.ravel()], y[rows.ravel()])
    done += len(rows)
    yield done


def find_rates(regime: Regime, noise: str, updates: int) -> dict[str, float]:
  """The rate of each method, by the accuracy on noisy labels held apart."""
  regime = regime.quarter()
  (x, y), held = make_data(regime.classes, noise, _HELD)
  rates = {}
  for method, candidates in RATES.items():
    there = {row['rate'] for row in chosen(
        _SEARCH, regime, updates, noise, method)}
    for rate in candidates:
      if f'{rate:g}' in there:
        continue
      each = Contestant(method, regime, rate, updates)
      for _ in train([each], x, y, regime.batch, updates, 1):
        write(_SEARCH, regime, updates, noise, method, rate=f'{rate:g}',
              accuracy_on_noisy=f'{each.accuracy(*held):.2f}')
    found = {float(row['rate']): float(row['accuracy_on_noisy'])
             for row in chosen(_SEARCH, regime, updates, noise, method)}
    rates[method] = max(candidates, key=found.get)
  return {**rates, 'LN, packed': rates['LN, Gram']}


def measure(regime: Regime, noise: str, updates: int) -> None:
  """Trains all contestants, in turns, and writes what they reach."""
  rates = find_rates(regime, noise, updates)
  (x, y), test = make_data(regime.classes, noise)
  contestants = {
      method: Contestant(method, regime, rates[method], updates)
      for method in METHODS}
  rows = []
  for update in train(
      list(contestants.values()), x, y, regime.batch, updates, _TURNS):
    rows += [(method, dict(
        update=str(update), rate=f'{each.rate:g}',
        seconds=f'{each.seconds:.3f}', cpu_seconds=f'{each.cpu_seconds:.3f}',
        accuracy=f'{each.accuracy(*test):.2f}'))
             for method, each in contestants.items()]
  for method, row in rows:  # when all have trained alike, or none
    write(_MEASUREMENTS, regime, updates, noise, method, **row)


def chosen(name, regime, updates, noise, method) -> list[dict]:
  """What a file of measurements has of one contestant."""
  file = pathlib.Path(FLAGS.output_dir) / name
  if not file.exists():
    return []
  with recipes.naming('output_dir'):
    lines = csv_files.lines(file, _FIELDS[name])
  place = (str(regime.classes), str(regime.width), str(updates), noise, method)
  return [line for line in lines
          if tuple(line[key] for key in _PLACE) == place]


def write(name, regime, updates, noise, method, **values) -> None:
  """Adds a line to a file of measurements."""
  line = dict(zip(_PLACE, (
      regime.classes, regime.width, updates, noise, method))) | values
  print(*line.values(), file=sys.stderr)
  stream = io.StringIO()
  writer = csv.DictWriter(stream, _FIELDS[name], lineterminator='\n')
  writer.writeheader()
  writer.writerow(line)
  app.write(name, stream.getvalue(), _KEYS[name])


def summarize(panels, updates) -> str:
  """Accuracy and time after the last update, and the search."""
  lines = ['| K | D | noise | method | rate | updates | test accuracy (%) | '
           'highest on the way | s | CPU s | s / CE | CPU s / CE |',
           '|---' * 12 + '|']
  search = ['| K | D | noise | method | accuracy (%) on noisy labels by rate |',
            '|---' * 5 + '|']
  for regime, noise in panels:
    rows = {method: chosen(_MEASUREMENTS, regime, updates, noise, method)
            for method in METHODS}
    for method, (*_, row) in rows.items():
      ratios = [float(row[name]) / float(rows['CE'][-1][name])
                for name in ('seconds', 'cpu_seconds')]
      best = max(rows[method], key=lambda each: float(each['accuracy']))
      lines.append(
          f'| {regime.classes} | {regime.width} | {noise} | {method} | '
          f'{row["rate"]} | {row["update"]} | {row["accuracy"]} | '
          f'{best["accuracy"]} after {best["update"]} | '
          f'{float(row["seconds"]):.0f} | {float(row["cpu_seconds"]):.0f} | '
          f'{ratios[0]:.2f} | {ratios[1]:.2f} |')
    small = regime.quarter()
    for method in RATES:
      trials = ', '.join(
          f'{row["rate"]}: {row["accuracy_on_noisy"]}'
          for row in chosen(_SEARCH, small, updates, noise, method))
      search.append(f'| {small.classes} | {small.width} | {noise} | {method} | '
                    f'{trials} |')
  return '\n'.join([*lines, '', 'The search of the rates, with a quarter of '
                    'everything:', '', *search, ''])


def draw(panels, updates):
  """Accuracy against wall time, a panel for each regime and noise."""
  figure, axes = figures.panels(
      1, len(panels), width=3.2, height=2.8, sharey=True)
  for ax, (regime, noise) in zip(axes[0], panels):
    for method in METHODS:
      rows = chosen(_MEASUREMENTS, regime, updates, noise, method)
      ax.plot([float(row['seconds']) for row in rows],
              [float(row['accuracy']) for row in rows], marker='o', ms=3,
              label=method)
    ax.set(title=f'K = {regime.classes:,}, D = {regime.width}, {noise}',
           xlabel='seconds of training')
    ax.set_xlim(left=0.)
  axes[0, 0].set(ylabel='test accuracy (%)')
  axes[0, 0].legend()
  return figure


def main(argv):
  del argv
  app.refuse('methods', 'search', 'dataset', 'hyperparameters', 'seeds')
  noises, updates = app.noises(NOISES), FLAGS.updates
  panels = plan(FLAGS.classes, noises)
  for regime, noise in panels:
    rows = chosen(_MEASUREMENTS, regime, updates, noise, METHODS[-1])
    if not rows or rows[-1]['update'] != str(updates):
      measure(regime, noise, updates)
  table = summarize(panels, updates)
  app.write(f'{_FOLDER}/summary.md', table)
  print(table)
  figures.publish(
      lambda: draw(panels, updates), FLAGS.output_dir, figures.Record(
          name='many_classes',
          title='Noise-robust training with thousands of classes',
          caption='Clean test accuracy against the seconds of training so far, '
          'K classes and D features; the contestants take turns.',
          numbers={
              f'{method}, K = {regime.classes}, {noise}': float(chosen(
                  _MEASUREMENTS, regime, updates, noise, method)[-1][
                      'accuracy'])
              for regime, noise in panels for method in METHODS}))


if __name__ == '__main__':
  app.start(main, computes=True)

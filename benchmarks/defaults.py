"""LN by default beside cross entropy, after the same number of epochs.

    python -m benchmarks.defaults [--data_dir=DIR] [--cells=digits/none,...]
        [--seeds=3] [--docs]

Whoever swaps the last layer and the loss keeps the number of epochs. What comes
of that, by Keras's `fit` with Adam (one cell with SGD): all defaults of the
head, its settings as in the paper, which the first version had (`warm_up=0,
min_scale=.5`), and cross entropy. Cells: digits, 'is it a 3?' with 5 % of
labels flipped, 'is it odd?' with 30 %, imbalanced digits (of five classes a
tenth), MNIST, and features of CIFAR by a frozen backbone (`experiments.embed`).
The warm-up was chosen on the cells of digits and on CIFAR-10's features with
noise. Results are kept in a JSON file; what is there is not measured again.
"""

import argparse
from collections.abc import Callable
import dataclasses
import functools
import itertools
import json
import pathlib
from typing import Any

import keras
import numpy as np
from sklearn import datasets

from experiments import data
import ln_tfp
from ln_tfp import files

_RESULTS = pathlib.Path(__file__).parent / 'defaults.json'
_DOCS = pathlib.Path(__file__).parents[1] / 'docs' / 'learning.md'
_BEGIN, _END = '<!-- defaults: begin -->\n', '<!-- defaults: end -->\n'
_TRAIN = 1300  # of digits
CONTESTANTS = ('cross entropy', 'LN as in the paper', 'LN')
_PAPER = {'warm_up': 0, 'min_scale': .5}


@dataclasses.dataclass
class Cell:
  """A problem with given labels.

  Attributes:
    x, given: training inputs and their labels, wrong ones among them.
    test_x, test_y: with true labels.
    num_classes: K.
    layers: makes the network without its last layer.
    optimizer, batch_size, rate, epochs: of the training; it is judged after
      each of these epochs.
    of_class: accuracy on this class alone, its recall; None for all.
  """
  x: np.ndarray
  given: np.ndarray
  test_x: np.ndarray
  test_y: np.ndarray
  num_classes: int
  layers: Callable[[], list]
  optimizer: Callable[[float], Any] = keras.optimizers.Adam
  batch_size: int = 64
  rate: float = 1e-3
  epochs: tuple[int, ...] = (5, 15, 60)
  of_class: int | None = None


def dense(*units: int) -> Callable[[], list]:
  return lambda: [keras.layers.Dense(n, activation='relu') for n in units]


def lenet() -> list:
  """LeNet-5."""
  layers = []
  for filters in (6, 16):
    layers += [
        keras.layers.Conv2D(filters, 5, padding='same', activation='relu'),
        keras.layers.MaxPooling2D()]
  return [*layers, keras.layers.Conv2D(120, 5, padding='same',
                                       activation='relu'),
          keras.layers.Flatten(), keras.layers.Dense(84, activation='relu')]


def digits(noise: str, seed: int) -> Cell:
  """scikit-learn's digits, or a question about them."""
  found = datasets.load_digits()
  order = np.random.default_rng(0).permutation(len(found.target))
  x = (found.data[order] / 16.).astype(np.float32)
  y = found.target[order]
  layers, of_class = dense(64), None
  if noise in ('3', 'odd'):
    y = (y == 3) * 1 if noise == '3' else y % 2
    of_class = 1 if noise == '3' else None
  given = y[:_TRAIN]
  if noise in ('3', 'odd'):
    flip = {'3': .05, 'odd': .3}[noise]
    draws = np.random.default_rng(seed).random(_TRAIN)
    given = np.where(draws < flip, 1 - given, given)
  rows = np.arange(_TRAIN)
  if noise == 'imbalanced':
    kept = np.random.default_rng(seed).random(_TRAIN) < .1
    rows = rows[(given < 5) | kept]
  elif noise not in ('3', 'odd', 'none', 'sgd'):
    given = ln_tfp.noise.corrupt(
        given, noise, seed=seed, num_classes=10,
        mapping=data.traits('digits').mapping)
    layers = dense(256, 256)
  settings = {}
  if noise == 'sgd':  # and no noise
    settings = dict(rate=.01, optimizer=functools.partial(
        keras.optimizers.SGD, momentum=.9))
  return Cell(x[rows], given[rows], x[_TRAIN:], y[_TRAIN:],
              int(y.max()) + 1, layers, of_class=of_class, **settings)


def load(name: str, seed: int, data_dir: str | None) -> Cell:
  """A cell by its name, DATA/NOISE."""
  dataset, noise = name.split('/')
  if dataset == 'digits':
    return digits(noise, seed)
  source = data.load(dataset, data_dir)
  given = ln_tfp.noise.corrupt(source.train.given, noise, seed=seed,
                               ids=source.train.ids)
  inputs = [source.preprocessing.normalise(part.inputs)
            for part in (source.train, source.test)]
  settings = dict(layers=dense(256), batch_size=512, rate=2e-3)
  if dataset == 'mnist':
    settings = dict(layers=lenet, batch_size=256, epochs=(1, 3, 5))
  return Cell(inputs[0], given, inputs[1], source.test.true,
              source.num_classes, **settings)


class _Judge(keras.callbacks.Callback):
  """Accuracy on true labels after some epochs."""

  def __init__(self, cell: Cell):
    super().__init__()
    self._cell = cell
    self.found = []

  def on_epoch_end(self, epoch, logs=None):
    cell = self._cell
    if epoch + 1 not in cell.epochs:
      return
    outputs = self.model.predict(cell.test_x, batch_size=1000, verbose=0)
    if outputs.ndim == 3:
      outputs = np.asarray(ln_tfp.probabilities(outputs))
    rows = slice(None)
    if cell.of_class is not None:
      rows = cell.test_y == cell.of_class
    right = outputs.argmax(axis=-1) == cell.test_y
    self.found.append(100. * float(right[rows].mean()))


def measure(cell: Cell, contestant: str, seed: int) -> list[float]:
  """Accuracies after the epochs of a cell."""
  keras.utils.set_random_seed(seed)
  if contestant == 'cross entropy':
    head = keras.layers.Dense(cell.num_classes)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
  else:
    settings = _PAPER if contestant == 'LN as in the paper' else {}
    head = ln_tfp.LogisticNormalHead(cell.num_classes, **settings)
    loss = ln_tfp.nll
  model = keras.Sequential([
      keras.Input(cell.x.shape[1:]), *cell.layers(), head])
  model.compile(cell.optimizer(cell.rate), loss)
  judge = _Judge(cell)
  model.fit(cell.x, cell.given, batch_size=cell.batch_size, verbose=0,
            epochs=max(cell.epochs), callbacks=[judge])
  return judge.found


CELLS = {
    'digits/none': 'digits, clean',
    'digits/sgd': 'digits, clean, SGD with momentum',
    'digits/sym:0.4': 'digits, 40 % symmetric',
    'digits/asym:0.3': 'digits, 30 % asymmetric',
    'digits/3': '"is it a 3?", 5 % flipped: recall of 3',
    'digits/odd': '"is it odd?", 30 % flipped',
    'digits/imbalanced': 'digits, five classes 1:10, clean',
    'mnist/none': 'MNIST, clean',
    'mnist/sym:0.4': 'MNIST, 40 % symmetric',
    'cifar10_features/none': 'CIFAR-10 features, clean',
    'cifar10_features/sym:0.4': 'CIFAR-10 features, 40 % symmetric',
    'cifar100_features/none': 'CIFAR-100 features, clean',
    'cifar100_features/sym:0.4': 'CIFAR-100 features, 40 % symmetric',
}


def table(results: dict) -> str:
  """The results as Markdown."""
  header = ('data', 'epochs', 'n', *CONTESTANTS)
  lines = [f'| {" | ".join(header)} |', '|---' * len(header) + '|']
  for name, title in CELLS.items():
    found = [[runs['accuracies'] for runs in results.get(name, [])
              if runs['contestant'] == contestant]
             for contestant in CONTESTANTS]
    seeds = min(map(len, found))
    if not seeds:
      continue
    epochs = results[name][0]['epochs']
    means = [[f'{value:.1f}' for value in np.mean(rows[:seeds], axis=0)]
             for rows in found]
    lines.append(
        f'| {title} | {" / ".join(map(str, epochs))} | {seeds} | '
        + ' | '.join(' / '.join(row) for row in means) + ' |')
  return '\n'.join([*lines, ''])


def write_docs(text: str) -> None:
  """Puts the table into docs/learning.md."""
  page = _DOCS.read_text(encoding='utf-8')
  before, rest = page.split(_BEGIN)
  _DOCS.write_text(before + _BEGIN + text + _END + rest.split(_END)[1],
                   encoding='utf-8')


def main() -> None:
  parser = argparse.ArgumentParser(
      prog='python -m benchmarks.defaults', description=__doc__,
      formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument('--cells', default=','.join(CELLS))
  parser.add_argument('--seeds', type=int, default=3)
  parser.add_argument('--data_dir', help='of MNIST and the features')
  parser.add_argument('--json', default=_RESULTS, type=pathlib.Path)
  parser.add_argument(
      '--docs', action='store_true', help='write docs/learning.md, too')
  arguments = parser.parse_args()
  results = {}
  if arguments.json.exists():
    results = json.loads(arguments.json.read_text(encoding='utf-8'))
  names = [name for name in arguments.cells.split(',') if name]
  for name in names:
    if name not in CELLS:
      parser.error(f'--cells: {name} is none of {", ".join(CELLS)}')
  for name, seed in itertools.product(names, range(arguments.seeds)):
    known = {(runs['contestant'], runs['seed'])
             for runs in results.setdefault(name, [])}
    asked = [c for c in CONTESTANTS if (c, seed) not in known]
    cell = load(name, seed, arguments.data_dir) if asked else None
    for contestant in asked:
      accuracies = measure(cell, contestant, seed)
      results[name].append({
          'contestant': contestant, 'seed': seed, 'epochs': cell.epochs,
          'accuracies': [round(value, 2) for value in accuracies]})
      files.write_atomically(
          arguments.json, json.dumps(results, indent=1).encode())
  text = table(results)
  print(text)
  if arguments.docs:
    write_docs(text)


if __name__ == '__main__':
  main()

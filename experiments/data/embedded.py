"""Data sets for everybody: generated, or shipped with scikit-learn."""

import dataclasses

import numpy as np
from sklearn import datasets

from experiments.data import examples as examples_lib
from experiments.data import registry
from ln_tfp import random

_NUM_DIGITS_TRAIN = 1_300
# Chosen such that the rates of wrong labels are those of CIFAR-10N within two
# points: 17.2 / 19.2 / 18.8 %, 9.5 % and 40.1 %.
_ANNOTATOR_SEED = 675
_ANNOTATOR_EXAMPLES = 41


def load(name: str, data_dir: object) -> examples_lib.Source:
  """Returns a data set; there is no directory to look in."""
  del data_dir
  makers = (two_moons, circles, digits, digits_n)
  return {make.__name__: make for make in makers}[name]()


def prepare(name: str, data_dir: object) -> None:
  """Does nothing: embedded data sets are always there."""


def two_moons() -> examples_lib.Source:
  """Two interleaved half circles: 200 points to train, 1,000 to test."""
  return _toy('two_moons', datasets.make_moons)


def circles() -> examples_lib.Source:
  """A circle within a circle: 200 points to train, 1,000 to test."""
  return _toy('circles', datasets.make_circles, factor=0.3)


def digits() -> examples_lib.Source:
  """scikit-learn's handwritten digits, 8x8: 1,300 to train, 497 to test.

  The split is a fixed permutation; pixels are 0..16.
  """
  bunch = datasets.load_digits()
  images = bunch.images.astype(np.uint8)[..., np.newaxis]
  everything = examples_lib.Examples(
      images, bunch.target, bunch.target, np.arange(len(images)))
  shuffled = random.order('digits', everything.ids)
  return examples_lib.registered(
      'digits', train=everything.subset(shuffled[:_NUM_DIGITS_TRAIN]),
      test=everything.subset(shuffled[_NUM_DIGITS_TRAIN:]))


def digits_n() -> examples_lib.Source:
  """`digits` with labels of simulated annotators, built as CIFAR-10N was.

  Each of three annotators has seen 41 random training examples and labels all
  of them by the nearest of these; the arithmetic is in integers, so that the
  labels are the same on every machine. The label sets are random1, random2 and
  random3 (the annotators'), aggregate (the majority, or one of three different
  labels at random) and worst (a wrong label wherever an annotator gave one).
  """
  source = digits()
  annotators = _annotate(source.train)
  labels = [*annotators, _aggregate(annotators, source.train.ids),
            _worst(annotators, source.train)]
  names = registry.traits('digits_n').label_sets
  train = dataclasses.replace(
      source.train, label_sets=dict(zip(names, labels, strict=True)))
  return dataclasses.replace(source, name='digits_n', train=train)


def _annotate(train):
  """Returns the labels that the three annotators give, `[3, N]`."""
  pixels = train.inputs.reshape(len(train), -1).astype(np.int64)
  norms = np.sum(pixels**2, axis=1)
  annotators = []
  for annotator in range(3):
    seen = random.order('annotator', _ANNOTATOR_SEED, annotator, train.ids)
    seen = seen[:_ANNOTATOR_EXAMPLES]
    distances = norms[seen] - 2 * pixels @ pixels[seen].T
    annotators.append(train.true[seen][np.argmin(distances, axis=1)])
  return np.stack(annotators)


def _aggregate(annotators, ids):
  first, second, third = annotators
  anyone = random.integers(3, 'tie', _ANNOTATOR_SEED, ids)
  tie_broken = annotators[anyone, np.arange(len(ids))]
  agrees_with_first = (first == second) | (first == third)
  return np.where(
      agrees_with_first, first, np.where(second == third, second, tie_broken))


def _worst(annotators, train):
  wrong = annotators != train.true
  priority = random.uniform(
      'worst', _ANNOTATOR_SEED, train.ids, np.arange(3)[:, np.newaxis])
  chosen = np.argmax(np.where(wrong, priority, -1.), axis=0)
  return annotators[chosen, np.arange(len(train))]


def _toy(name, make, **arguments):
  def draw(num, seed, first_id):
    points, labels = make(num, noise=0.2, random_state=seed, **arguments)
    return examples_lib.Examples(
        points.astype(np.float32), labels, labels,
        np.arange(first_id, first_id + num))

  return examples_lib.registered(
      name, train=draw(200, 0, 0), test=draw(1_000, 1, 200))

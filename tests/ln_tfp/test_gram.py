"""The energy through Gram matrices beside that of the packed tensor."""

import numpy as np
import pytest
import tensorflow as tf

import ln_tfp
from ln_tfp import gram
from ln_tfp import heads

CLASSES, FEATURES, BATCH = 23, 5, 12
SCALE = .7
SMOOTHING = .02


def make_arguments(dummy_class=True, tied=False, dtype='float64', seed=0,
                   size=1.):
  """Tables and vectors; `z` is another vector if there is one table."""
  rng = np.random.default_rng(seed)
  dims = CLASSES if dummy_class else CLASSES - 1
  loc, factor = rng.normal(scale=size, size=(2, dims, FEATURES))
  x, z = rng.normal(size=(2, BATCH, FEATURES))
  arrays = dict(loc_table=loc, x=x)
  arrays |= dict(z=z) if tied else dict(factor_table=factor)
  return {name: tf.constant(a, dtype) for name, a in arrays.items()}


def make_labels(k=1, seed=1):
  """Classes, the last one among them, and their probabilities."""
  rng = np.random.default_rng(seed)
  classes = np.stack([rng.permutation(CLASSES)[:k] for _ in range(BATCH)])
  classes[0] = CLASSES - 1 - np.arange(k)
  return classes.astype('int32'), rng.dirichlet(np.ones(k), size=BATCH)


def through_gram(arguments, classes, weights, dummy_class):
  size = CLASSES + dummy_class
  dims = size - 1
  x = arguments['x']
  targets = gram.target(
      classes, tf.cast(weights, x.dtype), size, SMOOTHING)
  energy = gram.energy(
      arguments['loc_table'], arguments.get('factor_table'), x,
      arguments.get('z', x), targets, SCALE, dummy_class)
  return energy + targets.log_jacobian + .5 * dims * np.log(2. * np.pi)


def through_packed(arguments, classes, weights, dummy_class):
  x = arguments['x']
  loc_table = arguments['loc_table']
  factor_table = arguments.get('factor_table', loc_table)
  loc = tf.matmul(x, loc_table, transpose_b=True)
  factor = tf.matmul(arguments.get('z', x), factor_table, transpose_b=True)
  soft = np.zeros((BATCH, CLASSES))
  np.put_along_axis(soft, classes, weights, axis=1)
  packed = heads.pack(loc, SCALE * tf.ones_like(loc), factor)
  return ln_tfp.nll(
      tf.cast(soft, x.dtype), packed, SMOOTHING, num_classes=CLASSES)


def value_and_gradients(function, arguments, *others, jit_compile=None):
  """The losses and the gradients of their weighted sum."""
  weights = tf.cast(np.linspace(-1., 2., BATCH), arguments['x'].dtype)

  def run(arguments):
    with tf.GradientTape() as tape:
      tape.watch(arguments)
      values = function(arguments, *others)
      total = tf.reduce_sum(weights * values)
    return values, tape.gradient(total, arguments)

  if jit_compile is not None:
    run = tf.function(run, jit_compile=jit_compile)
  return run(arguments)


@pytest.mark.parametrize('jit_compile', [None, False, True])
@pytest.mark.parametrize('k', [1, 3])
@pytest.mark.parametrize('tied', [False, True])
@pytest.mark.parametrize('dummy_class', [True, False])
@pytest.mark.slow
def test_it_is_nll_of_the_packed_tensor_in_value_and_all_gradients(
    dummy_class, tied, k, jit_compile):
  arguments = make_arguments(dummy_class, tied)
  labels = make_labels(k)
  actual = value_and_gradients(
      through_gram, arguments, *labels, dummy_class, jit_compile=jit_compile)
  expected = value_and_gradients(
      through_packed, arguments, *labels, dummy_class)
  tf.nest.map_structure(
      lambda a, e: np.testing.assert_allclose(a, e, rtol=1e-10, atol=1e-10),
      actual, expected)


def test_the_gradient_in_the_heights_is_that_of_differences():
  arguments = make_arguments(False)
  classes, weights = make_labels(2)
  heights = tf.constant(weights * 5.)

  def energy(heights):
    return tf.reduce_sum(gram.energy(
        arguments['loc_table'], arguments['factor_table'], arguments['x'],
        arguments['x'], gram.Target(classes, heights, 0.), SCALE, False))

  theoretical, numerical = tf.test.compute_gradient(energy, [heights])
  np.testing.assert_allclose(theoretical[0], numerical[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize('dummy_class', [True, False])
@pytest.mark.parametrize('norm', [0., 1., 10., 100., 1000.])
@pytest.mark.parametrize('alignment', [0., .03, 1., 30.])
def test_float32_is_off_by_no_more_than_the_bound(
    alignment, norm, dummy_class):
  # With unit vectors for x, the columns of the tables are mu and c. The worst
  # that can happen: mu is near the target, and c explains what is left.
  rng = np.random.default_rng(0)
  dims = CLASSES if dummy_class else CLASSES - 1
  labels = rng.integers(dims + 1 - dummy_class, size=(BATCH, 1)).astype('int32')
  labels[0] = CLASSES - 1
  height = np.log((.98 * (dims + 1) + .02) / .02)
  target = height * np.eye(dims + 1)[labels[:, 0]]
  target = target[:, :dims] - target[:, dims:]
  direction = rng.normal(size=target.shape)
  direction /= np.linalg.norm(direction, axis=1, keepdims=True)
  loc = (target + norm * direction).astype('float32')
  factor = alignment * (target - loc) + 1e-3 * rng.normal(size=loc.shape)
  single = dict(loc_table=tf.constant(loc.T), x=tf.eye(BATCH),
                factor_table=tf.constant(factor.T, 'float32'))
  double = {name: tf.cast(a, 'float64') for name, a in single.items()}
  actual, expected = (
      through_gram(arguments, labels, np.ones((BATCH, 1)), dummy_class).numpy()
      for arguments in (single, double))
  norms = np.square(loc).sum(axis=1) + np.square(target).sum(axis=1)
  bound = 1e-6 * norms / SCALE**2 + 1e-6 * np.abs(expected) + 1e-5
  assert np.all(np.abs(actual - expected) < bound)


@pytest.mark.slow
def test_a_perfect_fit_of_20000_classes_costs_less_than_a_thousandth():
  # mu is the target, so |r|^2 = 0 is a difference of numbers near 200.
  classes, features = 20_000, 256
  rng = np.random.default_rng(0)
  labels = rng.integers(classes, size=64).astype('int32')
  x = rng.normal(size=(64, features)).astype('float32')
  targets = gram.target(
      labels[:, None], tf.ones([64, 1]), classes + 1, .01)
  table = np.zeros((classes, features), 'float32')
  table[labels] = np.linalg.pinv(x).T * targets.heights[0, 0]
  table += rng.normal(scale=1e-3, size=table.shape)
  factor = rng.normal(scale=1e-2, size=table.shape)
  values = [
      gram.energy(tf.constant(table, dtype), tf.constant(factor, dtype),
                  tf.cast(x, dtype), tf.cast(x, dtype),
                  targets._replace(heights=tf.cast(targets.heights, dtype)),
                  1., True) for dtype in ('float32', 'float64')]
  np.testing.assert_allclose(*values, atol=1e-3)


def test_products_of_rounded_factors_have_the_error_of_float32(monkeypatch):
  # What a GPU does with TensorFloat-32, which is on by default there.
  def rounded(x):
    bits = np.asarray(x, 'float32').view('int32')
    return ((bits + 0x1000) & ~0x1fff).view('float32')

  def multiply(a, b, transpose_a=False):
    a, b = (rounded(v).astype('float64') for v in (a, b))
    return tf.cast((a.T if transpose_a else a) @ b, 'float32')

  rng = np.random.default_rng(0)
  a, b = rng.normal(size=(2, 300, 40)).astype('float32')
  exact = a.astype('float64').T @ b
  a, b = tf.constant(a), tf.constant(b)
  plain = multiply(a, b, transpose_a=True)
  monkeypatch.setattr(gram, '_is_rounded', lambda: True)
  split = gram.matmul(a, b, transpose_a=True, multiply=multiply)
  assert np.abs(plain - exact).max() > 1e-3
  assert np.abs(split - exact).max() < 1e-5

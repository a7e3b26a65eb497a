"""Methods with state against float64 transcriptions of their formulas."""

import dataclasses

import numpy as np
import pytest
from scipy import linalg
import tensorflow as tf

from experiments import methods
from experiments.training import steps
from ln_tfp import losses
from tests.experiments.methods import contexts

K = 4
RNG = np.random.default_rng(0)
LOGITS = RNG.normal(0., 2., size=(6, K))
OTHER = RNG.normal(0., 2., size=(6, K))
LABELS = np.array([0, 3, 1, 2, 2, 1])
Y = np.eye(K)[LABELS]
IDS = tf.constant([7, 8, 9, 1, 2, 3], tf.int64)
CONTEXT = methods.Context(K, 0, 5, IDS)


def _softmax(logits):
  exp = np.exp(logits - logits.max(axis=-1, keepdims=True))
  return exp / exp.sum(axis=-1, keepdims=True)


def _tensor(x):
  return tf.constant(x, tf.float64)


def _loss(method, outputs, context):
  return method.loss(tf.constant(LABELS), _tensor(outputs), context).numpy()


def test_elr_is_its_formula_with_the_target_moved_before_it_is_used():
  method = methods.get('ELR', decay=.6, weight=2.)
  old = RNG.dirichlet(np.ones(K), 6)
  context = CONTEXT._replace(rows={'target': _tensor(old)})
  rows = method.advance(LABELS, _tensor(LOGITS), context)
  p = _softmax(LOGITS)
  clipped = np.clip(p, 1e-4, 1 - 1e-4)
  target = .6 * old + .4 * clipped
  np.testing.assert_allclose(rows['target'], target, rtol=1e-9)
  expected = -np.log(p[range(6), LABELS]) + 2 * np.log(
      1 - (target * clipped).sum(-1))
  actual = _loss(method, LOGITS, context._replace(rows=rows))
  np.testing.assert_allclose(actual, expected, rtol=1e-9)
  plain = _loss(dataclasses.replace(method, weight=0.), LOGITS,
                context._replace(rows=rows))
  np.testing.assert_allclose(plain, -np.log(p[range(6), LABELS]), rtol=1e-9)


def _sop(z, u, v):
  big_u, big_v = np.clip(u**2 * Y, 0, 1), np.clip(v**2 * (1 - Y), 0, 1)
  p = np.maximum(_softmax(z) + big_u - big_v, 1e-4)
  p = np.clip(p / p.sum(-1, keepdims=True), 1e-4, 1)
  hard = np.eye(K)[z.argmax(-1)]
  return (np.square(hard + big_u - big_v - Y).sum(-1)
          - np.log(p[range(6), LABELS]))


def test_sop_is_its_formula_normalised_row_by_row():
  u, v = RNG.uniform(-.9, .9, (6, 1)), RNG.uniform(-.9, .9, (6, K))
  rows = {'u': _tensor(u), 'v': _tensor(v)}
  with tf.GradientTape() as tape:
    tape.watch(rows)
    loss = methods.get('SOP').loss(
        tf.constant(LABELS), _tensor(LOGITS), CONTEXT._replace(rows=rows))
  np.testing.assert_allclose(loss, _sop(LOGITS, u, v), rtol=1e-9)
  gradient = tape.gradient(loss, rows)
  step = 1e-6
  np.testing.assert_allclose(
      gradient['u'][:, 0],
      (_sop(LOGITS, u + step, v) - _sop(LOGITS, u - step, v)) / (2 * step),
      atol=1e-6)
  # The cross entropy has no gradient in v, the square alone has.
  hard = np.eye(K)[LOGITS.argmax(-1)]
  rest = hard + u**2 * Y - v**2 * (1 - Y) - Y
  np.testing.assert_allclose(
      gradient['v'], -4 * rest * v * (1 - Y), atol=1e-9)


def test_sop_without_noise_is_cross_entropy_and_the_square():
  zero = {'u': _tensor(np.zeros([6, 1])), 'v': _tensor(np.zeros([6, K]))}
  p, hard = _softmax(LOGITS), np.eye(K)[LOGITS.argmax(-1)]
  assert p.min() > 1e-4  # what it cuts
  np.testing.assert_allclose(
      _loss(methods.get('SOP'), LOGITS, CONTEXT._replace(rows=zero)),
      np.square(hard - Y).sum(-1) - np.log(p[range(6), LABELS]), rtol=1e-9)


def test_co_teaching_takes_what_the_other_network_finds_plausible():
  method = methods.get('co-teaching', noise_rate=.5, ramp_epochs=10.)
  cross_entropy = lambda z: -np.log(_softmax(z)[range(6), LABELS])
  for epoch, kept in ((0., 6), (5., 4), (10., 3), (50., 3)):
    context = CONTEXT._replace(
        auxiliary=_tensor(OTHER), epoch=tf.constant(epoch, tf.float64))
    chosen = np.argsort(cross_entropy(OTHER))[:kept]
    expected = np.zeros(6)
    expected[chosen] = cross_entropy(LOGITS)[chosen] * 6 / kept
    np.testing.assert_allclose(
        _loss(method, LOGITS, context), expected, rtol=1e-9)


@pytest.mark.parametrize('weight', [.1, .5, .9])
def test_gjs_is_its_formula_and_js_where_the_views_are_equal(weight):
  method = methods.get('GJS', weight=weight)
  kl = lambda a, b: np.where(a > 0, a * np.log(np.maximum(a, 1e-300) / b),
                             0.).sum(-1)

  def expected(*views):
    share = (1 - weight) / len(views)
    mean = weight * Y + share * sum(views)
    total = weight * kl(Y, mean) + share * sum(kl(p, mean) for p in views)
    return total / -((1 - weight) * np.log(1 - weight))

  p, other = _softmax(LOGITS), _softmax(OTHER)
  views = CONTEXT._replace(views=(_tensor(OTHER),))
  np.testing.assert_allclose(
      _loss(method, LOGITS, views), expected(p, other), rtol=1e-9)
  equal = CONTEXT._replace(views=(_tensor(LOGITS),))
  np.testing.assert_allclose(
      _loss(method, LOGITS, equal), expected(p), rtol=1e-9)


def test_gjs_is_between_cross_entropy_and_the_absolute_error():
  p = _softmax(LOGITS)[range(6), LABELS]
  equal = CONTEXT._replace(views=(_tensor(LOGITS),))
  # The absolute error is reached slowly, as one over the logarithm.
  beyond = 1 - p + (1 - p + p * np.log(p)) / -np.log(1e-6)
  for weight, limit in ((1e-6, -np.log(p)), (1 - 1e-6, beyond)):
    np.testing.assert_allclose(
        _loss(methods.get('GJS', weight=weight), LOGITS, equal), limit,
        rtol=1e-3)


def test_gjs_has_noise_on_the_second_view_of_data_without_augmentation():
  method = methods.get('GJS', jitter=.5)
  x = tf.zeros([6, 300])
  first, second = method.inputs([x, x], CONTEXT)
  assert not np.any(first)
  assert np.std(second) == pytest.approx(.5, rel=.1)
  same = method.inputs([x, x], CONTEXT._replace(augmented=True))
  assert not np.any(same[1])


def test_mixup_mixes_inputs_and_labels_with_the_same_partners():
  method = methods.get('mixup', alpha=2.)
  one_hot = tf.constant(np.eye(6), tf.float32)
  (mixed,) = method.inputs([one_hot], CONTEXT)
  share = float(method._share(CONTEXT))
  rest = mixed.numpy() - share * np.eye(6)
  np.testing.assert_allclose(rest.sum(1), 1 - share, rtol=1e-5)
  partners = rest.argmax(1)
  assert sorted(partners) == list(range(6))
  log_p = np.log(_softmax(LOGITS))
  np.testing.assert_allclose(
      method.loss(tf.constant(LABELS), tf.constant(LOGITS, tf.float32),
                  CONTEXT),
      -share * log_p[range(6), LABELS]
      - (1 - share) * log_p[range(6), LABELS[partners]], rtol=1e-5)


@pytest.mark.parametrize('alpha', [1., 8.])
@pytest.mark.slow
def test_the_share_of_mixup_is_beta_distributed(alpha):
  method = methods.get('mixup', alpha=alpha)
  draw = tf.function(lambda: tf.map_fn(  # in a graph: eager ones take seconds
      lambda step: method._share(CONTEXT._replace(step=step)),
      tf.range(4000), fn_output_signature=tf.float32), autograph=False)
  shares = draw().numpy()
  assert shares.mean() == pytest.approx(.5, abs=.02)
  assert shares.var() == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=.1)


def _helmert():
  return _tensor(linalg.helmert(K))  # [K - 1, K]


def _sgn_by_helmert(y, packed, mean, shift, t):
  """Shifted Gaussian noise in K - 1 coordinates, by the definition."""
  h = _helmert()
  q = (1 - t) * tf.one_hot(y, K, dtype=tf.float64) + t / K
  clr = tf.math.log(q) - tf.reduce_mean(
      tf.math.log(q), axis=-1, keepdims=True)
  coordinates = lambda x: tf.linalg.matvec(h, x)
  target = (1 - shift) * coordinates(clr) + shift * coordinates(mean)
  loc, factor = coordinates(packed[:, 0]), coordinates(packed[:, 2])
  scale = tf.eye(K - 1, dtype=tf.float64) + (
      factor[:, :, tf.newaxis] * factor[:, tf.newaxis, :])
  white = tf.linalg.solve(scale, (target - loc)[..., tf.newaxis])[..., 0]
  return (.5 * tf.reduce_sum(white**2, axis=-1) +
          tf.linalg.logdet(scale) + .5 * (K - 1) * np.log(2 * np.pi))


def _packed():
  return _tensor(np.stack(
      [LOGITS, np.ones([6, K]), RNG.normal(size=(6, K))], axis=1))


@pytest.mark.parametrize('shift', [0., .3, 1.])
def test_sgn_is_that_of_the_helmert_matrix_in_value_and_gradient(shift):
  packed = _packed()
  other = _tensor(np.stack(
      [OTHER, np.ones([6, K]), np.ones([6, K])], axis=1))
  with tf.GradientTape(persistent=True) as tape:
    tape.watch([packed, other])
    loss = losses.isometric_nll(
        LABELS, packed, .001, shift_to=other, shift=shift)
    expected = _sgn_by_helmert(LABELS, packed, other[:, 0], shift, .001)
  np.testing.assert_allclose(loss, expected, rtol=1e-10)
  actual, wanted = (tape.gradient(x, packed) for x in (loss, expected))
  for row in (0, 2):  # the diagonal is fixed
    np.testing.assert_allclose(actual[:, row], wanted[:, row], atol=1e-9)
  assert tape.gradient(loss, other) is None


def test_the_targets_are_symmetric_and_as_large_as_stated():
  for size, high in ((10, 9.2094), (100, 11.5119)):
    packed = tf.zeros([size, 2, size], tf.float64) + tf.constant(
        [[0.], [1.]], tf.float64)
    loss = losses.isometric_nll(np.arange(size), packed, .001)
    norms = 2 * (loss - .5 * (size - 1) * np.log(2 * np.pi))
    np.testing.assert_allclose(norms, norms[0], rtol=1e-9)
    np.testing.assert_allclose(
        norms[0], high**2 * (1 - 1 / size), rtol=1e-5)


def test_sgn_begins_as_ln_with_symmetric_targets_and_may_never_shift():
  method, packed = methods.get('SGN', alpha=.9), _packed()
  plain = losses.isometric_nll(LABELS, packed, .001)
  context = contexts.make(method, packed, num_classes=K, ids=IDS, epoch=0.)
  loss = lambda method, **changes: method.loss(
      tf.constant(LABELS), packed, context._replace(**changes))
  np.testing.assert_array_equal(loss(method), plain)
  assert np.abs(loss(method, epoch=1.) - plain).min() > 1e-3
  never = dataclasses.replace(method, alpha=1.)
  np.testing.assert_array_equal(loss(never, epoch=50.), plain)
  np.testing.assert_allclose(
      loss(method, epoch=3.), losses.isometric_nll(
          LABELS, packed, .001, shift_to=context.auxiliary,
          shift=1 - .9**3))


def test_soft_labels_have_the_targets_of_whole_ones_where_they_are_one_hot():
  packed = _packed()
  np.testing.assert_allclose(
      losses.isometric_nll(Y, packed), losses.isometric_nll(LABELS, packed),
      rtol=1e-9)


def test_views_go_through_the_network_together_and_come_apart():
  parts = steps._split(tf.range(6), 2)
  assert [part.numpy().tolist() for part in parts] == [[0, 1, 2], [3, 4, 5]]

"""The distribution against TFP, quadrature, float64 and the paper."""

import itertools
import math

import numpy as np
import pytest
from scipy import special
from scipy import stats
import tensorflow as tf
import tensorflow_probability as tfp

import ln_tfp
from ln_tfp import normal

tfb = tfp.bijectors
tfd = tfp.distributions


def generic(loc, diag, factor, temperature):
  """TFP's own composition of the same law."""
  if factor is None:
    base = tfd.MultivariateNormalDiag(loc, diag)
  else:
    base = tfd.MultivariateNormalDiagPlusLowRank(loc, diag, factor)
  temperature = tf.constant(temperature, base.dtype)
  return tfd.TransformedDistribution(base, tfb.Chain(
      [tfb.SoftmaxCentered(), tfb.Scale(1. / temperature)]))


def parameters(dims, rank, min_scale, seed, batch=(4,)):
  rng = np.random.default_rng(seed)
  loc = 3. * rng.normal(size=(*batch, dims))
  diag = np.full((*batch, dims), min_scale)
  factor = rng.normal(size=(*batch, dims, rank)) if rank else None
  target = .99 * rng.dirichlet(np.ones(dims + 1), size=batch) + .01 / (dims + 1)
  return loc, diag, factor, target


def cast(dtype, *arrays):
  return [None if a is None else tf.constant(a, dtype) for a in arrays]


@pytest.mark.parametrize('rank', [0, 1, 2, 4])
@pytest.mark.parametrize('classes', [2, 10, 1000])
@pytest.mark.slow
def test_log_prob_equals_tfps_composition(classes, rank):
  for temperature, min_scale in (
      (.1, 1e-3), (20., 1e-3), (1., .1), (.1, 1.), (20., 10.)):
    arrays = parameters(classes - 1, rank, min_scale, seed=classes + rank)
    for dtype, tolerance in (('float64', 1e-10), ('float32', 1e-4)):
      if dtype == 'float32' and min_scale < .1:
        continue
      *args, target = cast(dtype, *arrays)
      dist = ln_tfp.LogisticNormal(*args, temperature)
      actual = dist.log_prob(target).numpy()
      # float64 sees the very numbers that float32 was given.
      *args, target = [None if x is None else tf.cast(x, tf.float64)
                       for x in (*args, target)]
      exact_temperature = np.float64(np.dtype(dtype).type(temperature))
      expected = generic(*args, exact_temperature).log_prob(target).numpy()
      error = np.abs(actual - expected) / (1. + np.abs(expected))
      assert actual.dtype == dtype
      assert error.max() < tolerance, (dtype, temperature, min_scale)


@pytest.mark.parametrize('rank', [1, 3])
def test_gradients_equal_tfps_composition(rank):
  *args, target = cast('float64', *parameters(5, rank, .3, seed=1))
  gradients = []
  for make in (ln_tfp.LogisticNormal, generic):
    with tf.GradientTape() as tape:
      tape.watch([*args, target])
      value = make(*args, .7).log_prob(target)
    gradients.append(tape.gradient(value, [*args, target]))
  for ours, theirs in zip(*gradients):
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize('rank', [1, 3])
@pytest.mark.slow
def test_second_derivatives_equal_tfps_composition(rank):
  loc, diag, factor, target = cast('float64', *parameters(3, rank, .3, seed=2))
  hessians = []
  for make in (ln_tfp.LogisticNormal, generic):
    with tf.GradientTape() as outer:
      outer.watch(factor)
      with tf.GradientTape() as inner:
        inner.watch(factor)
        value = tf.reduce_sum(make(loc, diag, factor, 1.).log_prob(target))
      gradient = inner.gradient(value, factor)
    hessians.append(outer.jacobian(gradient, factor))
  np.testing.assert_allclose(*hessians, rtol=1e-8, atol=1e-8)


def test_log_prob_is_the_papers_density_up_to_the_surface_constant():
  loc, diag, factor, target = parameters(4, 1, .5, seed=3, batch=())
  scale = np.diag(diag) + factor @ factor.T
  logits = np.log(target[:-1] / target[-1])
  eq4 = (stats.multivariate_normal.logpdf(logits, loc, scale @ scale.T) -
         np.log(target).sum())
  actual = ln_tfp.LogisticNormal(loc, diag, factor).log_prob(target)
  np.testing.assert_allclose(actual, eq4 - .5 * math.log(5), rtol=1e-12)


@pytest.mark.parametrize('temperature', [.5, 1., 3.])
def test_the_density_integrates_to_one_over_the_simplex_of_two_classes(
    temperature):
  dist = ln_tfp.LogisticNormal(
      np.array([.3]), np.array([.4]), np.array([[.6]]), temperature)
  z = np.linspace(-30., 30., 10_001)  # p = sigmoid(z), dp = p (1 - p) dz
  points = special.expit(np.stack([z, -z], axis=-1))
  density = dist.prob(points).numpy() * points.prod(axis=-1)
  # Over the first coordinate; the surface element adds sqrt(D + 1).
  total = math.sqrt(2.) * np.sum(density) * (z[1] - z[0])
  np.testing.assert_allclose(total, 1., rtol=1e-9)


def test_the_density_integrates_to_one_over_the_simplex_of_three_classes():
  dist = ln_tfp.LogisticNormal(
      np.array([.3, -.2]), np.array([.5, .7]), np.array([[.6], [-.3]]), 1.2)
  nodes, weights = np.polynomial.legendre.leggauss(200)
  nodes, weights = (nodes + 1.) / 2., weights / 2.
  p, u = np.meshgrid(nodes, nodes, indexing='ij')
  q = u * (1. - p)  # the triangle as an image of the square
  points = np.stack([p, q, 1. - p - q], axis=-1)
  total = np.einsum('i,j,ij', weights, weights,
                    dist.prob(points).numpy() * (1. - p))
  np.testing.assert_allclose(math.sqrt(3.) * total, 1., rtol=1e-6)


def test_log_prob_of_its_own_samples_is_finite_where_the_softmax_underflows():
  dist = ln_tfp.LogisticNormal(
      tf.fill([4], 400.), tf.ones([4]), tf.ones([4, 2]))
  sample = dist.sample(3, seed=1)
  assert np.all(sample.numpy()[..., -1] == 0.)
  assert np.all(np.isfinite(dist.log_prob(sample)))


def test_samples_have_the_moments_of_the_normal_in_logit_space():
  loc, diag, factor, _ = parameters(3, 2, .5, seed=4, batch=())
  dist = ln_tfp.LogisticNormal(loc, diag, factor, 2.)
  logits = dist.bijector.inverse(dist.sample(100_000, seed=5)).numpy()
  scale = np.diag(diag) + factor @ factor.T
  covariance = scale @ scale.T
  error = np.sqrt(np.diag(covariance) / len(logits))
  assert np.all(np.abs(logits.mean(axis=0) - loc) < 5 * error)
  np.testing.assert_allclose(
      np.cov(logits.T), covariance, atol=.05 * np.abs(covariance).max())


def test_it_is_tfps_distribution_and_bijector():
  loc, diag, factor, _ = parameters(3, 1, .5, seed=6)
  dist = ln_tfp.LogisticNormal(loc, diag, factor, .5)
  assert isinstance(dist, tfd.TransformedDistribution)
  assert type(dist.distribution) is tfd.MultivariateNormalDiagPlusLowRank
  assert isinstance(dist.bijector, tfb.Chain)
  kinds = [type(b) for b in dist.bijector.bijectors]
  assert kinds == [tfb.SoftmaxCentered, tfb.Scale]
  assert dist.batch_shape == [4] and dist.event_shape == [4]
  diagonal = ln_tfp.LogisticNormal(loc, diag)
  assert type(diagonal.distribution) is tfd.MultivariateNormalDiag
  assert dist[1:3].batch_shape == [2]
  np.testing.assert_allclose(
      dist.predictive(), dist.bijector.forward(loc), rtol=1e-12)


def test_parameters_broadcast():
  rng = np.random.default_rng(7)
  loc, factor = rng.normal(size=(5, 3)), rng.normal(size=(2, 1, 3, 2))
  diag = np.array([.5, .6, .7])
  target = rng.dirichlet(np.ones(4), size=(5,))
  actual = ln_tfp.LogisticNormal(loc, diag, factor).log_prob(target)
  expected = generic(loc, diag, factor, 1.).log_prob(target)
  assert actual.shape == [2, 5]
  np.testing.assert_allclose(actual, expected, rtol=1e-10)


def test_gradients_of_broadcast_parameters_are_summed():
  loc, _, factor, target = cast('float64', *parameters(3, 2, .5, seed=8))
  gradients = []
  for make in (ln_tfp.LogisticNormal, generic):
    diag = tf.constant([.5, .6, .7], tf.float64)
    with tf.GradientTape() as tape:
      tape.watch(diag)
      value = make(loc, diag, factor, 1.).log_prob(target)
    gradients.append(tape.gradient(value, diag))
  np.testing.assert_allclose(*gradients, rtol=1e-9)


def test_the_temperature_can_be_folded_in():
  loc, diag, factor, target = parameters(4, 2, .5, seed=9)
  tau = .3
  warm = ln_tfp.LogisticNormal(loc, diag, factor, tau)
  cold = ln_tfp.LogisticNormal(
      loc / tau, diag / tau, factor / math.sqrt(tau), 1.)
  np.testing.assert_allclose(
      warm.log_prob(target), cold.log_prob(target), rtol=1e-10)
  np.testing.assert_allclose(
      warm.residual(target), tau * cold.residual(target), rtol=1e-10)
  np.testing.assert_allclose(
      warm.label_term(target), cold.label_term(target), rtol=1e-10)


@pytest.mark.parametrize('rank', [0, 1, 3])
def test_label_term_and_log_det_equal_dense_linear_algebra(rank):
  loc, diag, factor, target = parameters(5, rank, .4, seed=10, batch=())
  scale = np.diag(diag)
  if rank:
    scale = scale + factor @ factor.T
  dist = ln_tfp.LogisticNormal(loc, diag, factor, 2.)
  residual = 2. * np.log(target[:-1] / target[-1]) - loc
  np.testing.assert_allclose(dist.residual(target), residual, rtol=1e-10)
  np.testing.assert_allclose(
      dist.label_term(target),
      residual @ np.linalg.solve(scale @ scale.T, residual), rtol=1e-10)
  np.testing.assert_allclose(
      dist.log_det_scale(), np.linalg.slogdet(scale)[1], rtol=1e-10)


@pytest.mark.parametrize('ranks', [(1, 2), (0, 1), (3, 0), (0, 0)])
@pytest.mark.slow
def test_kl_equals_that_of_dense_normals_and_monte_carlo(ranks):
  p, q = [
      ln_tfp.LogisticNormal(*parameters(4, rank, scale, seed)[:3], tau)
      for rank, scale, seed, tau in zip(ranks, (.5, .8), (11, 12), (.5, 2.))]
  dense = []
  for dist in (p, q):
    tau = dist.temperature.numpy()
    factor = 0. if dist.scale_factor is None else (
        dist.scale_factor @ tf.linalg.matrix_transpose(dist.scale_factor))
    scale = (tf.linalg.diag(dist.scale_diag) + factor) / tau
    dense.append(tfd.MultivariateNormalFullCovariance(
        dist.loc / tau, scale @ tf.linalg.matrix_transpose(scale)))
  actual = p.kl_divergence(q)
  np.testing.assert_allclose(
      actual, tfd.kl_divergence(*dense), rtol=1e-8)
  sample = p.sample(20_000, seed=13)
  ratio = (p.log_prob(sample) - q.log_prob(sample)).numpy()
  error = ratio.std(axis=0) / math.sqrt(len(ratio))
  assert np.all(np.abs(ratio.mean(axis=0) - actual) < 5 * error)


EXTREMES = [
    (loc, columns, smoothing)
    for loc in (-1e4, 0., 1e4)
    for columns in ('zero', 'huge', 'collinear')
    for smoothing in (1e-6, .01, 1.)]


@pytest.mark.parametrize('classes', [2, 10, 1000])
@pytest.mark.parametrize('rank', [1, 2, 4])
@pytest.mark.slow
def test_value_and_gradient_are_finite_at_the_extremes_under_xla(
    classes, rank):
  rng = np.random.default_rng(14)
  independent = rng.normal(size=(classes, rank))
  factors = {
      'zero': np.zeros_like(independent),
      'huge': 1e4 * independent,
      'collinear': 1e2 * np.ones_like(independent),
  }
  onehot = np.eye(classes + 1)[0]
  locs, factor, targets = zip(*[
      (np.linspace(0., loc, classes), factors[columns],
       (1. - t) * onehot + t / (classes + 1))
      for loc, columns, t in EXTREMES])

  @tf.function(jit_compile=True)
  def value_and_gradient(loc, diag, factor, target):
    with tf.GradientTape() as tape:
      tape.watch([loc, diag, factor])
      value = ln_tfp.LogisticNormal(loc, diag, factor).log_prob(target)
    return value, tape.gradient(value, [loc, diag, factor])

  for min_scale in (.1, 1.):
    value, gradients = value_and_gradient(*cast(
        'float32', np.stack(locs), np.full((len(locs), classes), min_scale),
        np.stack(factor), np.stack(targets)))
    assert np.all(np.isfinite(value))
    for gradient in gradients:
      assert np.all(np.isfinite(gradient))


def test_validation_names_the_argument():
  with pytest.raises(ValueError, match='`temperature` must be positive'):
    ln_tfp.LogisticNormal([0.], [1.], temperature=-1.)
  with pytest.raises(tf.errors.InvalidArgumentError, match='`scale_diag`'):
    ln_tfp.LogisticNormal([0.], [-1.], validate_args=True)


def test_variables_keep_their_identity():
  loc = tf.Variable([0., 0.])
  dist = ln_tfp.LogisticNormal(loc, [1., 1.], [[1.], [0.]])
  before = dist.log_prob([.2, .3, .5])
  loc.assign([5., 5.])
  assert dist.log_prob([.2, .3, .5]) < before
  with tf.GradientTape() as tape:
    value = dist.log_prob([.2, .3, .5])
  assert tape.gradient(value, loc) is not None


def test_a_variable_temperature_is_read_at_every_use():
  *args, target = parameters(4, 1, .5, seed=16)
  target = tf.constant(target)
  temperature = tf.Variable(.5, dtype=tf.float64)
  dist = ln_tfp.LogisticNormal(*args, temperature)
  uses = (lambda d: d.predictive(), lambda d: d.label_term(target),
          lambda d: d.residual(target), lambda d: d.log_prob(target),
          lambda d: d.sample(seed=(1, 2)))
  for value in (.5, 2.):
    temperature.assign(value)
    fixed = ln_tfp.LogisticNormal(*args, value)
    for use in uses:
      np.testing.assert_allclose(use(dist), use(fixed), rtol=1e-10)
  assert dist.trainable_variables == (temperature,)
  with tf.GradientTape() as tape:
    value = tf.reduce_sum(dist.predictive()[..., 0])
  assert tape.gradient(value, temperature) is not None


@pytest.mark.parametrize('batched', [True, False])
@pytest.mark.slow
def test_a_batch_of_temperatures_has_one_for_each_distribution(batched):
  loc, diag, factor, target = parameters(4, 2, .5, seed=17)  # B = D
  if not batched:
    loc, diag, factor = loc[0], diag[0], factor[0]
  temperatures = np.array([.3, .5, 1., 2.])
  dist = ln_tfp.LogisticNormal(loc, diag, factor, temperatures)
  assert dist.batch_shape == [4] and dist.sample(2, seed=1).shape == [2, 4, 5]
  pick = lambda x, i: x[i] if batched else x
  single = [ln_tfp.LogisticNormal(
      pick(loc, i), pick(diag, i), pick(factor, i), t)
            for i, t in enumerate(temperatures)]
  other = ln_tfp.LogisticNormal(loc, diag, factor, 1.5)
  for use in (
      lambda d, i: d.log_prob(target[i]), lambda d, i: d.label_term(target[i]),
      lambda d, i: d.residual(target[i]), lambda d, i: d.predictive()):
    np.testing.assert_allclose(
        use(dist, slice(None)), [use(d, i) for i, d in enumerate(single)],
        rtol=1e-9)
  np.testing.assert_allclose(
      dist.kl_divergence(other),
      [d.kl_divergence(other[i] if batched else other)
       for i, d in enumerate(single)], rtol=1e-9)
  np.testing.assert_allclose(
      dist[1:3].log_prob(target[1:3]), dist.log_prob(target)[1:3], rtol=1e-12)
  logits = lambda x: np.log(x[..., :-1] / x[..., -1:])
  sample = logits(dist.sample(20_000, seed=2).numpy()).mean(axis=0)
  np.testing.assert_allclose(
      sample * temperatures[:, np.newaxis], np.broadcast_to(loc, (4, 4)),
      atol=.2)


def test_dtypes_follow_tfps_conventions():
  assert ln_tfp.LogisticNormal([0, 1], [1., 1.]).dtype == tf.float32
  assert ln_tfp.LogisticNormal([0., 1.], np.ones(2)).dtype == tf.float64
  with pytest.raises(TypeError):
    ln_tfp.LogisticNormal(np.zeros(2, 'float32'), np.ones(2, 'float64'))


def test_transformed_variables_keep_their_identity():
  scale = tfp.util.TransformedVariable([1., 1.], tfb.Exp())
  dist = ln_tfp.LogisticNormal([0., 1.], scale, temperature=.5)
  before = dist.log_prob([.2, .3, .5])
  scale.assign([3., 3.])
  fixed = ln_tfp.LogisticNormal([0., 1.], [3., 3.], temperature=.5)
  np.testing.assert_allclose(
      dist.log_prob([.2, .3, .5]), fixed.log_prob([.2, .3, .5]), rtol=1e-6)
  assert dist.log_prob([.2, .3, .5]) != before
  assert len(dist.trainable_variables) == 1


@pytest.mark.parametrize('rank', [0, 1, 2])
@pytest.mark.parametrize('classes', [2, 10, 1000])
@pytest.mark.slow
def test_the_float32_path_keeps_the_precision_that_it_states(classes, rank):
  rng = np.random.default_rng(classes + rank)
  for temperature, min_scale in itertools.product((.1, 1., 20.), (.1, 1.)):
    loc, diag, factor, _ = parameters(classes, rank, min_scale, 18, (32,))
    target = .99 * np.eye(classes + 1)[rng.integers(0, classes, 32)]
    target += .01 / (classes + 1)
    *args, target = cast('float32', loc, diag, factor, target)
    fast, precise = (
        ln_tfp.LogisticNormal(
            *args, np.float32(temperature), use_float64=use_float64)
        for use_float64 in (False, True))
    own = fast.sample(seed=1).numpy()
    own = tf.constant(own[own.min(axis=-1) > 1e-37])
    points = [target] if len(own) < 32 else [target, own]
    for point in points:
      expected = precise.log_prob(point).numpy()
      error = np.abs(fast.log_prob(point) - expected)
      assert np.max(error / (1. + np.abs(expected))) < 5e-5


def test_the_float32_path_has_no_float64_at_rank_one():
  @tf.function
  def log_prob(loc, diag, factor, target):
    return ln_tfp.LogisticNormal(
        loc, diag, factor, .5, use_float64=False).log_prob(target)

  graph = log_prob.get_concrete_function(
      *cast('float32', *parameters(4, 1, .5, seed=19))).graph
  dtypes = {t.dtype for op in graph.get_operations() for t in op.outputs}
  assert tf.float32 in dtypes and tf.float64 not in dtypes


def test_whitened_residuals_solve_the_linear_system():
  _, diag, factor, _ = parameters(6, 2, .3, seed=15, batch=())
  residual = np.arange(6.)
  white = normal.whiten(*cast('float64', residual, diag, factor.T))
  np.testing.assert_allclose(
      (np.diag(diag) + factor @ factor.T) @ white.numpy(), residual, atol=1e-9)


@pytest.mark.parametrize('rank', [2, 4, 7])
@pytest.mark.parametrize('size', [1., 100.])
@pytest.mark.parametrize('widest', ['float64', 'float32'])
def test_float32_stays_near_float64_where_columns_are_nearly_collinear(
    rank, size, widest, monkeypatch):
  rng = np.random.default_rng(0)
  common = rng.normal(size=(6, 1, 300))
  factor = size * (common + 1e-3 * rng.normal(size=(6, rank, 300)))
  residual = 5. * rng.normal(size=(6, 300))
  arguments = cast('float32', residual, np.full((6, 300), .5), *(
      factor[:, r] for r in range(rank)))
  results = []
  for dtype in ('float64', 'float32'):
    tensors = [tf.cast(a, dtype) for a in arguments]
    with tf.GradientTape() as tape:
      tape.watch(tensors)
      energy = normal.energy(*tensors)
    results.append((energy, tape.gradient(energy, tensors)))
    # As on a backend that may have no float64.
    monkeypatch.setattr(normal, '_widest_dtype', lambda: widest)
  (expected, expected_gradients), (value, gradients) = results
  np.testing.assert_allclose(value, expected, rtol=1e-4)
  for actual, exact in zip(gradients, expected_gradients):
    np.testing.assert_allclose(
        actual, exact, atol=1e-3 * np.abs(exact).max())


@pytest.mark.parametrize('columns', ['zero', 'huge', 'collinear'])
def test_float32_alone_stays_finite_at_the_extremes(columns, monkeypatch):
  monkeypatch.setattr(normal, '_widest_dtype', lambda: 'float32')
  rng = np.random.default_rng(14)
  factor = {'zero': np.zeros((4, 1000)),
            'huge': 1e4 * rng.normal(size=(4, 1000)),
            'collinear': np.outer([1., 1., 3., -1e4], np.ones(1000))}[columns]
  tensors = cast('float32', 1e4 * rng.normal(size=(1, 1000)),
                 np.full((1, 1000), .1), *factor[:, np.newaxis])
  with tf.GradientTape() as tape:
    tape.watch(tensors)
    energy = normal.energy(*tensors)
  for result in (energy, *tape.gradient(energy, tensors)):
    assert np.all(np.isfinite(result))

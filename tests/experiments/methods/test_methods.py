"""What holds for all methods: graphs, XLA, extremes, grids, errors."""

import dataclasses
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from experiments import data
from experiments import methods
from experiments import models
from experiments.paper import grids
import ln_tfp
from tests.experiments.methods import contexts

K = 3
MATRIX = ((.8, .2, 0.), (0., 1., 0.), (.1, .1, .8))
ARGUMENTS = {
    'Forward': {'transition': MATRIX},
    'Het-tau': {'temperature': .5},
    'Het-tau-Sigma': {'temperature': .5, 'rank': 2},
}
RANDOM = ('NAN', 'Het', 'Het-tau', 'Het-tau-Sigma', 'mixup')
LABELS = tf.constant([0, 2, 1, 1])
IDS = tf.constant([4, 9, 2, 7], tf.int64)

all_methods = pytest.mark.parametrize('name', methods.NAMES)
# Compiling takes its time: the others are among the thorough tests.
compiled_methods = pytest.mark.parametrize('name', [
    name if name in grids.METHODS
    else pytest.param(name, marks=[pytest.mark.slow, pytest.mark.thorough])
    for name in methods.NAMES])


def _method(name):
  return methods.get(name, **ARGUMENTS.get(name, {}))


def _outputs(name, scale=1.):
  head = _method(name).head(K)
  features = np.random.default_rng(0).normal(size=[4, 6]) * scale
  with models.seeded(0):
    head = type(head).from_config(head.get_config())
  return head(tf.constant(features, tf.float32))


def _loss_and_gradient(name, outputs, labels=LABELS, seed=1, step=2, ids=IDS):
  with tf.GradientTape() as tape:
    tape.watch(outputs)
    loss = _method(name).loss(labels, outputs, contexts.make(
        _method(name), outputs, num_classes=K, seed=seed, step=step, ids=ids))
  return loss, tape.gradient(loss, outputs)


def test_the_names_begin_with_the_papers_in_the_order_of_its_table():
  assert methods.NAMES[:9] == grids.METHODS == (
      'CE', 'GCE', 'NAN', 'Forward', 'LS', 'Het', 'Het-tau', 'Het-tau-Sigma',
      'LN')
  assert all(methods.get(name).name == name for name in methods.NAMES)


def test_every_method_is_in_one_group_and_all_are_in_all():
  *groups, everything = methods.GROUPS.values()
  assert methods.GROUPS['paper'] == grids.METHODS
  assert sum(groups, ()) == everything == methods.NAMES


@all_methods
def test_the_loss_has_one_value_per_example(name):
  loss, gradient = _loss_and_gradient(name, _outputs(name))
  assert loss.shape == (4,)
  assert loss.dtype == tf.float32
  assert np.abs(gradient).max() > 1e-3


def _compiled(name, jit_compile):
  """`_loss_and_gradient` for batches of any size."""
  outputs = tf.TensorSpec([None, *_outputs(name).shape[1:]])
  labels = tf.TensorSpec([None], tf.int32)
  function = tf.function(
      lambda outputs, labels, seed, step, ids: _loss_and_gradient(
          name, outputs, labels, seed, step, ids),
      jit_compile=jit_compile,
      input_signature=[
          outputs, labels, tf.TensorSpec([], tf.int32),
          tf.TensorSpec([], tf.int64), tf.TensorSpec([None], tf.int64)])
  return lambda outputs, labels: function(
      outputs, labels, tf.constant(1), tf.constant(2, tf.int64), IDS)


# What XLA compiles is a graph: the others are tested below.
@pytest.mark.parametrize('name', ['LN', 'NAN', 'Het-tau-Sigma'])
@pytest.mark.slow
def test_a_graph_agrees_with_eager_execution(name):
  outputs = _outputs(name)
  actual = _compiled(name, jit_compile=False)(outputs, LABELS)
  for a, b in zip(actual, _loss_and_gradient(name, outputs)):
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@compiled_methods
@pytest.mark.slow
def test_xla_agrees_and_gives_nan_for_labels_that_are_no_class(name):
  """XLA drops checks; NaN is what is left to stop training on nonsense."""
  outputs = _outputs(name)
  function = _compiled(name, jit_compile=True)
  for a, b in zip(
      function(outputs, LABELS), _loss_and_gradient(name, outputs)):
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
  loss, _ = function(outputs, tf.constant([0, -1, 1, K]))
  np.testing.assert_array_equal(np.isnan(loss), [False, True, False, True])


@all_methods
def test_loss_and_gradient_are_finite_at_extreme_outputs(name):
  for scale in (1e-4, 1e4):
    outputs = _outputs(name, scale)
    assert np.abs(outputs).max() > 1e3 or scale < 1
    for value in _loss_and_gradient(name, outputs):
      assert np.isfinite(value).all()
    assert np.isfinite(
        _method(name).probabilities(outputs, num_classes=K)).all()


@all_methods
def test_probabilities_are_distributions_over_the_classes(name):
  probabilities = _method(name).probabilities(_outputs(name), num_classes=K)
  assert probabilities.shape == (4, K)
  assert (probabilities.numpy() > 0).all()
  np.testing.assert_allclose(np.sum(probabilities, axis=1), 1., rtol=1e-5)


@all_methods
def test_the_dummy_class_is_lns_alone(name):
  probabilities = _method(name).probabilities(
      _outputs(name), num_classes=K, dummy_class=True)
  assert probabilities.shape == (4, K + 1 if name == 'LN' else K)


@all_methods
def test_the_loss_depends_on_seed_and_step_for_random_methods_alone(name):
  outputs = _outputs(name)
  loss = _loss_and_gradient(name, outputs)[0].numpy()
  np.testing.assert_array_equal(loss, _loss_and_gradient(name, outputs)[0])
  for other in ({'seed': 2}, {'step': 3}):
    changed = (_loss_and_gradient(name, outputs, **other)[0] != loss).numpy()
    assert changed.any() == (name in RANDOM)
    # Partners of the same class make no difference to mixup.
    assert changed.all() == (name in RANDOM) or name == 'mixup'


@pytest.mark.parametrize('covariance', [
    'identity', 'isotropic', 'diagonal', 'full'])
@pytest.mark.parametrize('dummy_class', [True, False])
def test_ln_is_the_librarys_head_and_loss(covariance, dummy_class):
  method = methods.get(
      'LN', covariance=covariance, dummy_class=dummy_class, temperature=.7,
      min_scale=.3, label_smoothing=.1)
  head = method.head(K)
  assert (head.covariance, head.temperature, head.min_scale) == (
      covariance, .7, .3)
  outputs = head(tf.ones([4, 2]))
  np.testing.assert_array_equal(
      method.loss(LABELS, outputs, methods.Context(K, 0, 0, IDS)),
      ln_tfp.nll(LABELS, outputs, label_smoothing=.1, num_classes=K))
  np.testing.assert_array_equal(
      method.probabilities(outputs, num_classes=K),
      ln_tfp.probabilities(outputs, num_classes=K))


@all_methods
def test_heads_give_float32_under_mixed_precision(name):
  before = keras.config.dtype_policy()
  keras.config.set_dtype_policy('mixed_bfloat16')
  try:
    head = _method(name).head(K)
    outputs = head(tf.ones([4, 2], tf.bfloat16))
  finally:
    keras.config.set_dtype_policy(before)
  assert outputs.dtype == tf.float32
  assert all(v.dtype == 'float32' for v in head.trainable_variables)


@all_methods
def test_a_networks_weights_are_a_function_of_the_seed_heads_included(name):
  build = lambda seed: models.build(
      'mlp', (2,), _method(name).head(K), seed=seed, widths=(4,))
  first, second, other = build(0), build(0), build(1)
  for a, b, c in zip(
      first.get_weights(), second.get_weights(), other.get_weights()):
    np.testing.assert_array_equal(a, b)
    assert a.ndim == 1 or not np.array_equal(a, c)  # biases start at zero


@pytest.mark.parametrize('model, shape, logits, logistic_normal', [
    ('lenet5', (28, 28, 1), 545_546, 546_396),
    ('wide_resnet', (32, 32, 3), 1_467_610, 1_468_900)])
@pytest.mark.slow
def test_networks_have_the_papers_number_of_parameters(
    model, shape, logits, logistic_normal):
  for name, expected in (('CE', logits), ('LN', logistic_normal)):
    network = models.build(model, shape, methods.get(name).head(10), seed=0)
    assert expected == sum(
        int(np.prod(v.shape)) for v in network.trainable_variables)


@all_methods
def test_hyperparameters_are_json_and_make_the_method_again(name):
  method = methods.get(name)
  text = json.dumps(method.hyperparameters())
  assert methods.get(name, **json.loads(text)) == method


@all_methods
def test_every_point_of_a_grid_is_another_method_of_the_name(name):
  for dataset in ('digits', 'mnist', 'cifar100', 'two_moons'):
    grid = list(methods.get(name).grid(data.traits(dataset)))
    assert len(set(grid)) == len(grid) > 0
    assert all(point.name == name for point in grid)
    for point in grid:
      point.head(2 if dataset == 'two_moons' else 10)


def _values(name, dataset, *fields):
  return [
      tuple(getattr(point, field) for field in fields)
      for point in methods.get(name).grid(data.traits(dataset))]


def test_the_grids_are_the_papers():
  five = [(.1,), (.3,), (.5,), (.7,), (.9,)]
  assert _values('GCE', 'cifar10', 'q') == five
  assert _values('LS', 'cifar10', 'label_smoothing') == five
  assert _values('NAN', 'mnist', 'sigma') == [
      (.1,), (.2,), (.5,), (.75,), (1.,)]
  assert _values('Het-tau', 'mnist', 'temperature') == [
      (.1,), (.5,), (1.,), (10.,), (20.,)]
  assert set(_values('Het-tau-Sigma', 'mnist', 'temperature', 'rank')) == {
      (t, r) for t in (.1, .5, 1., 10., 20.) for r in (1, 2, 4)}
  assert set(_values('LN', 'cifar10', 'temperature', 'min_scale')) == {
      (t, s) for t in (.1, .5, 1.) for s in (.5, 1.)}
  assert set(_values('LN', 'mnist', 'temperature', 'min_scale')) == {
      (t, s) for t in (.1, .5, 1.) for s in (.316, .5, 1.)}
  assert _values('Het', 'digits', 'samples') == [(100,)]
  assert _values('Het', 'cifar10', 'samples') == [(1000,)]


@all_methods
def test_the_second_grid_has_as_many_points(name):
  kind, digits = methods.get(name), data.traits('digits')
  points = list(kind.ratio_grid(digits))
  assert len(points) == len(set(points)) == len(list(kind.grid(digits)))


def test_the_second_grid_of_ln_has_three_ratios_at_three_rates():
  points = list(methods.get('LN').ratio_grid(data.traits('digits')))
  ratios = {float(f'{point.min_scale / point.temperature:.3g}')
            for point in points}
  assert ratios == {.316, 1., 3.16}
  assert {point.temperature for point in points} == {.1, .316, 1.}


@pytest.mark.parametrize('name, arguments, message', [
    ('GCE', {'q': 0.}, '`q` must be in (0, 1]. Received: q=0.0.'),
    ('GCE', {'q': 1.1}, '`q`'),
    ('LS', {'label_smoothing': -.1}, '`label_smoothing` must be in [0, 1]'),
    ('NAN', {'sigma': -1.}, '`sigma` must be finite and not negative'),
    ('NAN', {'gradient': 'both'}, '`gradient`'),
    ('Forward', {'estimate_from': 'first'}, '`estimate_from`'),
    ('Het', {'samples': 0}, '`samples` must be a whole number of at least 1'),
    ('Het-tau', {'samples': 10.5}, '`samples`'),
    ('Het-tau', {'temperature': 0.}, '`temperature` must be positive'),
    ('Het-tau-Sigma', {'temperature': float('nan')}, '`temperature`'),
    ('Het-tau-Sigma', {'rank': 0}, '`rank` must be a whole number'),
    ('LN', {'temperature': -1.}, '`temperature` must be positive'),
    ('LN', {'min_scale': 0.}, '`min_scale` must be positive'),
    ('LN', {'covariance': 'low'}, '`covariance` must be one of'),
    ('LN', {'rank': 0}, '`rank`'),
    ('LN', {'label_smoothing': 0.}, '`label_smoothing` must be in (0, 1]'),
    ('CE', {'q': 1.}, 'CE has no hyperparameter `q`; it has none.'),
    ('GCE', {'p': 1.}, 'GCE has no hyperparameter `p`; it has q.'),
    ('SCE', {'alpha': -1.}, '`alpha`'),
    ('ANL-CE', {'penalty': -1.}, '`penalty`'),
    ('AGCE', {'a': 0.}, '`a` must be positive'),
    ('Taylor-CE', {'order': 0}, '`order` must be a whole number'),
    ('bootstrapping', {'kind': 'mild'}, '`kind`'),
    ('ELR', {'decay': 1.1}, '`decay` must be in [0, 1]'),
    ('SOP', {'rate_u': -1.}, '`rate_u`'),
    ('mixup', {'alpha': 0.}, '`alpha`'),
    ('co-teaching', {'noise_rate': 2.}, '`noise_rate`'),
    ('GJS', {'weight': 1.}, '`weight`'),
    ('SGN', {'alpha': 0.}, '`alpha` must be in (0, 1]'),
    ('SVM', {}, '`name` must be one of CE, GCE'),
])
def test_wrong_settings_are_refused_with_the_argument_named(
    name, arguments, message):
  with pytest.raises(ValueError) as error:
    methods.get(name, **arguments)
  assert message in str(error.value)


@all_methods
def test_methods_are_frozen(name):
  with pytest.raises(dataclasses.FrozenInstanceError):
    methods.get(name).anything = 1

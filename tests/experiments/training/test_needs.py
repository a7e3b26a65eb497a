"""What methods need of the trainer: rows by example, networks, views."""

import dataclasses
import math

import numpy as np
import pytest
import tensorflow as tf

from experiments import methods
from experiments import training
from experiments.training import devices
from experiments.training import runner
from experiments.training import trainer as trainer_lib
from tests.experiments.training import tiny

STATEFUL = ('ELR', 'SOP', 'mixup', 'co-teaching', 'GJS', 'SGN')


def _trainer(**settings):
  run = tiny.run(optimizer='gd', learning_rate=.1, **settings)
  splits = training.load_splits(run, source=tiny.source())
  return trainer_lib.Trainer(
      run, run.resolve_method(), splits, devices.create('one')), splits


class _InterruptError(Exception):
  pass


@pytest.mark.slow
@pytest.mark.parametrize('name', [
    pytest.param(name, marks=(
        [] if name in ('SGN', 'SOP') else pytest.mark.thorough))
    for name in STATEFUL])
def test_an_interrupted_run_ends_bit_identical(tmp_path, monkeypatch, name):
  hyperparameters = {'SOP': {'rate_u': 1e3, 'rate_v': 1e3},
                     'SGN': {'alpha': .5, 'decay': .5}}.get(name, {})
  run = tiny.run(
      method=name, epochs=4, optimizer='adam', hyperparameters=hyperparameters)
  train = lambda directory: training.train(
      run, source=tiny.source(), strategy='one', keep_weights=True,
      output_dir=tmp_path / directory)
  whole = train('whole')
  original = trainer_lib.Trainer.train_epoch

  def train_epoch(self, epoch):
    if epoch == 2:
      raise _InterruptError
    return original(self, epoch)

  with monkeypatch.context() as patch, pytest.raises(_InterruptError):
    patch.setattr(runner, '_SAVING_SHARE', math.inf)  # every epoch
    patch.setattr(trainer_lib.Trainer, 'train_epoch', train_epoch)
    train('broken')
  assert len(list((tmp_path / 'broken' / 'checkpoints' / run.key).iterdir()))
  result = train('broken')
  assert result.metrics == whole.metrics
  assert result.history == whole.history
  assert result.weights == whole.weights


def test_all_state_is_in_a_checkpoint():
  sizes = {
      'ELR': {'examples/target': (91, 3)},
      'SOP': {'examples/u': (91, 1), 'examples/v': (91, 3)},
      'CE': {}}
  for name, expected in sizes.items():
    trainer, _ = _trainer(method=name)
    rows = {key: array.shape for key, array in trainer.state().items()
            if key.startswith('examples/')}
    assert rows == expected
    assert all(trainer.state()[key].dtype == np.float32 for key in rows)


@pytest.mark.slow
def test_rows_are_found_by_the_examples_ids():
  trainer, splits = _trainer(method='ELR', batch_size=None)
  p = np.clip(trainer.predict(splits.train), 1e-4, 1 - 1e-4)
  trainer.train_epoch(0)
  rows = trainer.state()['examples/target']
  np.testing.assert_allclose(
      rows[:-1], .3 * p[np.argsort(splits.train.ids)], rtol=1e-5)
  assert not rows[-1].any()


@pytest.mark.slow
def test_rows_that_learn_go_down_their_gradient():
  trainer, splits = _trainer(
      method='SOP', batch_size=None,
      hyperparameters={'rate_u': 5., 'rate_v': 7.})
  train, size = splits.train, len(splits.train)
  before = {name: array for name, array in trainer.state().items()
            if name.startswith('examples/')}
  order = np.argsort(train.ids)
  rows = {name.removeprefix('examples/'): tf.constant(array[:-1])
          for name, array in before.items()}
  assert 0 < np.std(rows['v']) < 2e-8
  outputs = tf.constant(trainer.model(train.inputs[order]))
  with tf.GradientTape() as tape:
    tape.watch(rows)
    loss = tf.reduce_mean(methods.get('SOP').loss(
        tf.constant(train.given[order]), outputs,
        methods.Context(3, 0, 0, None, rows=rows)))
  gradients = tape.gradient(loss, rows)
  assert size == 90
  trainer.train_epoch(0)
  after = trainer.state()
  for name, rate in (('u', 5.), ('v', 7.)):
    np.testing.assert_allclose(
        after[f'examples/{name}'][:-1], rows[name] - rate * gradients[name],
        rtol=1e-4)


@pytest.mark.slow
def test_the_moving_average_is_that_of_the_weights_after_each_step():
  trainer, _ = _trainer(
      method='SGN', batch_size=None, epochs=5,
      hyperparameters={'decay': .7})
  weights = lambda prefix: {
      name.removeprefix(prefix): array.astype(np.float64)
      for name, array in trainer.state().items() if name.startswith(prefix)}
  expected = weights('model/')
  assert all(np.array_equal(array, weights('auxiliary/')[name])
             for name, array in expected.items())
  for epoch in range(4):
    trainer.train_epoch(epoch)
    expected = {name: .7 * array + .3 * weights('model/')[name]
                for name, array in expected.items()}
  for name, array in weights('auxiliary/').items():
    np.testing.assert_allclose(array, expected[name], rtol=1e-5, atol=1e-7)
    assert not np.array_equal(array, weights('model/')[name])


@pytest.mark.slow
def test_the_second_network_has_its_own_batch_statistics():
  run = dataclasses.replace(
      tiny.run(method='SGN', hyperparameters={'decay': 0.}, batch_size=30),
      optimizer='gd', learning_rate=.5)
  splits = training.load_splits(run, source=tiny.source())
  trainer = trainer_lib.Trainer(
      run, run.resolve_method(), splits, devices.create('one'))
  # With a decay of zero it is the first network after each step; what it sees
  # before the step gives the same outputs as the first one's.
  record = trainer.train_epoch(0)
  assert record['auxiliary/train_accuracy_given'] == (
      record['train_accuracy_given'])


@pytest.mark.slow
def test_twins_differ_and_both_learn():
  trainer, _ = _trainer(method='co-teaching')
  before = trainer.state()
  assert not np.array_equal(before['model/logits/kernel'],
                            before['auxiliary/logits/kernel'])
  trainer.train_epoch(0)
  after = trainer.state()
  for name in ('model/logits/kernel', 'auxiliary/logits/kernel'):
    assert np.abs(after[name] - before[name]).max() > 1e-4
  assert 'auxiliary_optimizer/iteration' in after


def test_the_loss_sees_the_fractional_epoch_and_its_share(monkeypatch):
  seen = []
  original = methods.get('CE').loss

  def loss(self, labels, outputs, context):
    tf.py_function(
        lambda *values: seen.append([float(value) for value in values]),
        [context.epoch, context.progress], [])
    return original(labels, outputs, context)

  monkeypatch.setattr(type(methods.get('CE')), 'loss', loss)
  trainer, _ = _trainer(method='CE', epochs=4)  # three batches an epoch
  for epoch in range(2):
    trainer.train_epoch(epoch)
  epochs, shares = zip(*sorted(seen))
  np.testing.assert_allclose(epochs, np.arange(6) / 3, rtol=1e-6)
  np.testing.assert_allclose(shares, np.arange(6) / 12, rtol=1e-6)


@pytest.mark.slow
def test_a_penalty_on_absolute_values_is_part_of_the_objective():
  losses = []
  for penalty in (0., .5):
    trainer, _ = _trainer(
        method='ANL-CE', batch_size=None,
        hyperparameters={'penalty': penalty})
    total = sum(np.abs(array).sum() for name, array in trainer.state().items()
                if name.startswith('model/'))
    losses.append(trainer.train_epoch(0)['loss'])
  assert losses[1] - losses[0] == pytest.approx(.5 * total, rel=1e-4)


@pytest.mark.slow
def test_sgn_ema_is_the_other_network_of_the_same_training(tmp_path):
  train = lambda name, **arguments: training.train(
      tiny.run(method=name, hyperparameters={'decay': .5}),
      source=tiny.source(), strategy='one', output_dir=tmp_path, **arguments)
  ema = train('SGN-EMA', keep_weights=True)
  sgn = train('SGN')
  assert sorted(file.name for file in tmp_path.glob('*.json')) == sorted(
      [f'{ema.key}.json', f'{sgn.key}.json'])
  assert ema.metrics['test_nll'] == sgn.metrics['auxiliary/test_nll']
  assert ema.metrics['test_nll'] != sgn.metrics['test_nll']
  assert ema.history['validation_accuracy_noisy'] == (
      sgn.history['auxiliary/validation_accuracy_noisy'])
  assert set(ema.metrics) == {
      name for name in sgn.metrics if not name.startswith('auxiliary/')}
  model = training.load_model(ema, tmp_path)
  probabilities = methods.get('SGN-EMA').probabilities(
      model(tiny.source().test.inputs), num_classes=3).numpy()
  true = tiny.source().test.true
  assert ema.metrics['test_nll'] == pytest.approx(
      -np.log(probabilities[range(len(true)), true]).mean(), rel=1e-5)
  assert train('SGN-EMA', keep_weights=True) == ema

"""The library in another process, and in one with two devices.

The tests of two devices share a process.
"""

import os

import keras
import numpy as np
import pytest
import tensorflow as tf

import ln_tfp
from tests import forks

pytestmark = pytest.mark.slow
_SECONDS = 300


def _continue(directory):
  """Loads what another process has trained, evaluates it and trains on."""
  os.chdir(directory)
  data = np.load('data.npz')
  _ = ln_tfp.ManyClassesHead(3)  # of the same name as the one that is loaded
  for name in ('ln', 'many'):
    model = keras.models.load_model(name + '.keras')
    assert 'Head' in type(model.layers[-1]).__name__
    np.save(name + '.npy', model.evaluate(data['x'], data['y'], verbose=0))
    before = model.get_weights()
    model.fit(data['x'], data['y'], verbose=0)
    assert all(np.abs(a - b).max() > 0.
               for a, b in zip(before, model.get_weights()))


def _ln():
  head = ln_tfp.LogisticNormalHead(6, warm_up=4)
  return head, ln_tfp.nll, [ln_tfp.Accuracy()]


def _many():
  head = ln_tfp.ManyClassesHead(6)
  return head, head.loss(), [head.accuracy()]


def _difference(make, two):
  """How far the weights of two replicas are from those of one."""
  rng = np.random.default_rng(0)
  x = rng.normal(size=(128, 6)).astype('float32')
  weights = []
  for strategy in (tf.distribute.get_strategy(), two):
    keras.utils.set_random_seed(1)
    with strategy.scope():
      head, loss, metrics = make()
      model = keras.Sequential([
          keras.layers.Input((6,)),
          keras.layers.Dense(16, activation='relu'), head])
      model.compile(
          keras.optimizers.SGD(1e-2, .9), loss=loss, metrics=metrics)
    model.fit(x, x.argmax(axis=1), batch_size=32, epochs=2, shuffle=False,
              verbose=0)
    weights.append(model.get_weights())
  return max(np.abs(a - b).max() for a, b in zip(*weights))


def _use_two_devices():
  cpu = tf.config.list_physical_devices('CPU')[0]
  tf.config.set_logical_device_configuration(
      cpu, 2 * [tf.config.LogicalDeviceConfiguration()])
  two = tf.distribute.MirroredStrategy(['CPU:0', 'CPU:1'])
  with two.scope():
    loss = ln_tfp.losses.NoiseAgainstNoise(seed=1, reduction=None)
  noisy = tf.function(
      lambda: two.run(loss, args=(np.arange(3), tf.zeros([3, 6]))))
  a, b = two.experimental_local_results(noisy())
  print(_difference(_ln, two), _difference(_many, two), np.abs(a - b).min())


def test_compiled_models_continue_in_another_process(tmp_path):
  rng = np.random.default_rng(0)
  x = rng.normal(size=(70, 6)).astype('float32')
  y = x[:, :3].argmax(axis=1)
  np.savez(tmp_path / 'data.npz', x=x, y=y)
  ln = ln_tfp.LogisticNormalHead(3, rank=2, warm_up=1)
  many = ln_tfp.ManyClassesHead(3, tied=True)
  models = {}
  for name, head, loss, metric in (
      ('ln', ln, ln_tfp.nll, ln_tfp.Accuracy()),
      ('many', many, many.loss(), many.accuracy())):
    models[name] = model = keras.Sequential([
        keras.Input((6,)), keras.layers.Dense(8, activation='relu'), head])
    model.compile('adam', loss=loss, metrics=[metric])
    model.fit(x, y, verbose=0)
    model.save(tmp_path / f'{name}.keras')
  forks.Fork(_continue, tmp_path).output(_SECONDS)
  for name, model in models.items():
    np.testing.assert_allclose(
        np.load(tmp_path / f'{name}.npy'), model.evaluate(x, y, verbose=0),
        rtol=1e-5)


@pytest.fixture(name='two_devices', scope='module')
def _two_devices():
  """What a process with two devices has found out."""
  return list(map(
      float, forks.Fork(_use_two_devices).output(_SECONDS).split()))


@pytest.mark.thorough
def test_two_replicas_train_like_one(two_devices):
  assert two_devices[0] < 1e-5


@pytest.mark.thorough
def test_two_replicas_train_many_classes_like_one(two_devices):
  assert two_devices[1] < 1e-5


@pytest.mark.thorough
def test_every_replica_draws_its_own_noise(two_devices):
  assert two_devices[2] > 1e-4

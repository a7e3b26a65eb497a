"""One run on several devices, in processes that have several devices."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from experiments import training
from tests.experiments.training import loopback
from tests.experiments.training import replicas_of_needs

_SECONDS = 300
# 1,170 training examples: parts of 83 and 84, and a last batch of one, which
# leaves a replica with nothing.
_SGD = dict(
    method='NAN', noise='sym:0.4', optimizer='sgd', learning_rate=1e-2,
    weight_decay=1e-3, batch_size=167, epochs=1)
_ADAM = dict(_SGD, optimizer='adam', learning_rate=1e-3, epochs=5)
# Three steps of a small WRN, which normalises its batches.
_WRN = dict(
    method='CE', noise='sym:0.4', model='wide_resnet', optimizer='sgd',
    model_arguments={'depth': 10, 'width': 1}, learning_rate=1e-3,
    batch_size=390, epochs=1)

_TRAIN = """
import json, sys
import tensorflow as tf
from experiments import training
strategy = {strategy}
for settings in json.loads(sys.argv[1]):
  result = training.train(
      training.Run(**settings), output_dir=sys.argv[2], strategy=strategy,
      keep_weights=True)
  print(result.to_json(), end='')
"""
_TWO_DEVICES = """
import tensorflow as tf
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices('CPU')[0],
    [tf.config.LogicalDeviceConfiguration()] * 2)
"""
_MIRRORED = "tf.distribute.MirroredStrategy(['CPU:0', 'CPU:1'])"


def _start(code, *arguments, **environment):
  return subprocess.Popen(
      [sys.executable, '-c', code, *arguments],
      cwd=pathlib.Path(__file__).parents[3], stdout=subprocess.PIPE, text=True,
      env={**os.environ, **environment})


def _results(process):
  output, _ = process.communicate(timeout=_SECONDS)
  assert process.returncode == 0
  return [training.Result.from_json(line) for line in output.splitlines()]


def _weights(result, directory):
  with np.load(directory / result.weights['file']) as archive:
    return [archive[name] for name in archive.files]


@pytest.fixture(name='alone', scope='module')
def _alone(tmp_path_factory):
  directory = tmp_path_factory.mktemp('one')
  results = [
      training.train(
          training.Run(**settings), output_dir=directory, strategy='one',
          keep_weights=True)
      for settings in (_SGD, _ADAM, _WRN)]
  return results, directory


def _check_agreement(alone, results, directory):
  (sgd, adam, wrn), one = alone
  for result, there in ((sgd, results[0]), (wrn, results[2])):
    for mine, other in zip(_weights(result, one), _weights(there, directory)):
      np.testing.assert_allclose(mine, other, rtol=0, atol=1e-5)
  np.testing.assert_allclose(
      results[1].history['loss'], adam.history['loss'], rtol=1e-3)
  for name in ('train_accuracy_given', 'train_accuracy_mislabelled_true'):
    np.testing.assert_allclose(
        results[0].history[name], sgd.history[name], atol=2 / 1170)


_REFUSALS = """
for settings in (dict(batch_size=1), dict(jit=True), dict(
    model='wide_resnet', model_arguments={'depth': 10, 'width': 1},
    batch_size=167)):
  try:
    training.train(training.Run(**settings), strategy=strategy)
  except ValueError as error:
    print(error)
"""

_BATCH_NORMALISATION = """
import keras
import numpy as np
from experiments.training import steps
with strategy.scope():
  model = keras.Sequential([
      keras.Input([2]), keras.layers.BatchNormalization()])
average = steps.make_averaging(strategy, model)
inputs = strategy.experimental_distribute_values_from_function(
    lambda context: tf.fill([4, 2], 8. * context.replica_id_in_sync_group))
train = lambda x: model(x, training=True)
tf.function(lambda x: strategy.run(train, args=(x,)))(inputs)
mean = model.layers[0].moving_mean.value
before = [value.numpy().tolist() for value in mean.values]
average()
after = [value.numpy().tolist() for value in mean.values]
print(before != after, after[0] == after[1],
      np.allclose(after[0], np.mean(before, axis=0)))
"""


@pytest.fixture(name='mirrored', scope='module')
def _mirrored(tmp_path_factory):
  """What a process with two devices prints, and where it writes."""
  directory = tmp_path_factory.mktemp('two')
  code = ''.join([_TWO_DEVICES, _TRAIN.format(strategy=_MIRRORED), _REFUSALS,
                  _BATCH_NORMALISATION])
  process = _start(code, json.dumps([_SGD, _ADAM, _WRN]), str(directory))
  output, _ = process.communicate(timeout=_SECONDS)
  assert process.returncode == 0
  return output.splitlines(), directory


@pytest.mark.slow
def test_two_replicas_train_as_one(alone, mirrored):
  lines, directory = mirrored
  results = [training.Result.from_json(line) for line in lines[:3]]
  assert results[0].device['replicas'] == 2
  _check_agreement(alone, results, directory)


@pytest.mark.slow
def test_state_of_examples_and_second_networks_are_those_of_one_replica():
  process = subprocess.run(
      [sys.executable, '-m', replicas_of_needs.__name__], check=True,
      cwd=pathlib.Path(__file__).parents[3], stdout=subprocess.PIPE, text=True,
      timeout=_SECONDS)
  changes = dict(line.split() for line in process.stdout.splitlines())
  assert set(changes) == set(replicas_of_needs.HYPERPARAMETERS)
  assert max(map(float, changes.values())) < 2e-5, changes


@pytest.mark.slow
def test_what_several_replicas_cannot_do_is_refused(mirrored):
  batch, jit, remainder = mirrored[0][3:6]
  assert '`batch_size` must be at least the number of replicas, 2' in batch
  assert '`jit` works with one replica only' in jit
  assert 'which leaves 1.' in remainder


@pytest.mark.slow
def test_moving_averages_become_equal_on_all_replicas(mirrored):
  assert mirrored[0][6:] == ['True True True']


@pytest.mark.slow
def test_two_workers_train_as_one_and_only_the_chief_writes(alone, tmp_path):
  chief, other = tmp_path / 'chief', tmp_path / 'other'
  code = _TRAIN.format(strategy="training.create_strategy('multi_worker')")
  settings = json.dumps([_SGD, _ADAM, _WRN])
  with loopback.workers(
      ('-c', code, settings, chief), ('-c', code, settings, other)
  ) as processes:
    results, same = map(_results, processes)
  assert results == same
  assert results[0].device['workers'] == 2
  assert not other.exists()
  _check_agreement(alone, results, chief)

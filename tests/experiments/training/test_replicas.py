"""One run on several devices, in processes that have several devices."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from experiments import training
from experiments.training import steps
from tests import forks
from tests.experiments.training import loopback
from tests.experiments.training import replicas_of_needs

pytestmark = [pytest.mark.slow, pytest.mark.thorough]
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


def _train(strategy, directory):
  """The runs that several devices share; says their results."""
  if isinstance(strategy, str):
    strategy = training.create_strategy(strategy)
  results = [
      training.train(
          training.Run(**settings), output_dir=directory, strategy=strategy,
          keep_weights=True)
      for settings in (_SGD, _ADAM, _WRN)]
  for result in results:
    print(result.to_json(), end='')
  return results


def _results(lines):
  return [training.Result.from_json(line) for line in lines]


def _weights(result, directory):
  with np.load(directory / result.weights['file']) as archive:
    return [archive[name] for name in archive.files]


@pytest.fixture(name='alone', scope='module')
def _alone(tmp_path_factory):
  directory = tmp_path_factory.mktemp('one')
  return _train('one', directory), directory


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


def _train_mirrored(directory):
  """All that needs a process with two devices."""
  strategy = replicas_of_needs.mirrored()
  _train(strategy, directory)
  for settings in (dict(batch_size=1), dict(jit=True), dict(
      model='wide_resnet', model_arguments={'depth': 10, 'width': 1},
      batch_size=167)):
    try:
      training.train(training.Run(**settings), strategy=strategy)
    except ValueError as error:
      print(error)
  print(*_normalise(strategy))
  print(json.dumps(replicas_of_needs.changes(strategy)))


def _normalise(strategy):
  """Whether moving averages change, agree, and are the mean of the replicas'.
  """
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
  return (before != after, after[0] == after[1],
          np.allclose(after[0], np.mean(before, axis=0)))


@pytest.fixture(name='mirrored', scope='module')
def _mirrored(tmp_path_factory):
  """What a process with two devices says, and where it writes."""
  directory = tmp_path_factory.mktemp('two')
  output = forks.Fork(_train_mirrored, directory).output(_SECONDS)
  return output.splitlines(), directory


def test_two_replicas_train_as_one(alone, mirrored):
  lines, directory = mirrored
  results = _results(lines[:3])
  assert results[0].device['replicas'] == 2
  _check_agreement(alone, results, directory)


def test_state_of_examples_and_second_networks_are_those_of_one_replica(
    mirrored):
  changes = json.loads(mirrored[0][7])
  assert set(changes) == set(replicas_of_needs.HYPERPARAMETERS)
  assert max(changes.values()) < 2e-5, changes


def test_what_several_replicas_cannot_do_is_refused(mirrored):
  batch, jit, remainder = mirrored[0][3:6]
  assert '`batch_size` must be at least the number of replicas, 2' in batch
  assert '`jit` works with one replica only' in jit
  assert 'which leaves 1.' in remainder


def test_moving_averages_become_equal_on_all_replicas(mirrored):
  assert mirrored[0][6] == 'True True True'


def test_two_workers_train_as_one_and_only_the_chief_writes(alone, tmp_path):
  chief, other = tmp_path / 'chief', tmp_path / 'other'
  with loopback.workers(*(
      (_train, 'multi_worker', directory) for directory in (chief, other)
  )) as processes:
    results, same = (
        _results(process.output(_SECONDS).splitlines())
        for process in processes)
  assert results == same
  assert results[0].device['workers'] == 2
  assert not other.exists()
  _check_agreement(alone, results, chief)

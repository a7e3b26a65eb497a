"""Which devices a run takes, on machines that are made up."""

import contextlib
from unittest import mock

import pytest
import tensorflow as tf

from experiments import training
from experiments.training import devices


@contextlib.contextmanager
def _machine(gpus, growth=None):
  """TensorFlow on a machine with so many GPUs, as far as `create` asks it."""
  names = [f'GPU:{index}' for index in range(gpus)]
  details = {'device_name': 'NVIDIA A100'}
  with (mock.patch.object(
            tf.config, 'list_physical_devices', lambda kind: names),
        mock.patch.object(
            tf.config.experimental, 'set_memory_growth', growth or mock.Mock()),
        mock.patch.object(
            tf.config.experimental, 'get_device_details', lambda gpu: details),
        mock.patch.object(tf.distribute, 'MirroredStrategy') as mirrored,
        mock.patch.object(tf.distribute, 'OneDeviceStrategy') as one):
    mirrored.return_value, one.side_effect = 'mirrored', str
    yield


@pytest.mark.parametrize('name, gpus, taken', [
    ('auto', 0, 'CPU:0'), ('auto', 1, 'GPU:0'), ('auto', 4, 'mirrored'),
    ('one', 0, 'CPU:0'), ('one', 4, 'GPU:0'),
    ('mirrored', 0, 'mirrored'), ('mirrored', 4, 'mirrored')])
def test_a_run_takes_the_devices_that_its_strategy_says(name, gpus, taken):
  growth = mock.Mock()
  with _machine(gpus, growth):
    assert training.create_strategy(name) == taken
  assert growth.call_args_list == [
      mock.call(f'GPU:{index}', True) for index in range(gpus)]


def test_gpus_that_are_in_use_already_are_taken_as_they_are():
  with _machine(1, mock.Mock(side_effect=RuntimeError('initialised'))):
    assert training.create_strategy('auto') == 'GPU:0'


@pytest.mark.parametrize('gpus, kind', [(0, 'CPU'), (2, 'GPU')])
def test_a_result_says_on_what_it_was_trained(gpus, kind):
  strategy = tf.distribute.OneDeviceStrategy('CPU:0')
  with _machine(gpus):
    found = devices.describe(strategy)
  assert found['kind'] == kind
  assert (found['name'] == 'NVIDIA A100') == bool(gpus)
  assert (found['replicas'], found['workers']) == (1, 1)

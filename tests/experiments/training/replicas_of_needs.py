"""Trains methods with state on one and on two replicas."""

import numpy as np
import tensorflow as tf

from experiments import training
from experiments.training import trainer as trainer_lib
from tests.experiments.training import tiny

HYPERPARAMETERS = {
    'ELR': {},
    'SOP': dict(rate_u=1e4, rate_v=1e4),
    'mixup': {},
    'co-teaching': dict(ramp_epochs=.1),
    'GJS': {},
    'SGN': dict(alpha=.1, decay=.5),
}


def _state(name, strategy):
  """All variables after two epochs, and the objectives.

  90 training examples: parts of 44 and 45, and a last batch of one, which
  leaves a replica with nothing.
  """
  run = tiny.run(
      method=name, optimizer='sgd', learning_rate=.05, weight_decay=1e-3,
      batch_size=89, hyperparameters=HYPERPARAMETERS[name])
  splits = training.load_splits(run, source=tiny.source())
  trainer = trainer_lib.Trainer(run, run.resolve_method(), splits, strategy)
  losses = [trainer.train_epoch(epoch)['loss'] for epoch in range(2)]
  return trainer.state() | {'losses': np.array(losses)}


def mirrored():
  """Two devices, in a process that has not used one yet."""
  tf.config.set_logical_device_configuration(
      tf.config.list_physical_devices('CPU')[0],
      [tf.config.LogicalDeviceConfiguration()] * 2)
  return tf.distribute.MirroredStrategy(['CPU:0', 'CPU:1'])


def changes(two):
  """By method, how far the replicas of a strategy are from a single one."""
  one = tf.distribute.OneDeviceStrategy('CPU:0')
  found = {}
  for name in HYPERPARAMETERS:
    first, second = (_state(name, strategy) for strategy in (one, two))
    assert first.keys() == second.keys()
    found[name] = max(
        float(np.abs(first[key] - second[key]).max()) for key in first)
  return found

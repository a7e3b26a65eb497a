"""A step of every method on real images."""

import dataclasses
import os

import numpy as np
import pytest

from experiments import data
from experiments import methods
from experiments import training
from experiments.training import devices
from experiments.training import trainer as trainer_lib

_DATA_DIR = os.environ.get('LN_TFP_DATA_DIR')
needs_data_dir = pytest.mark.skipif(
    not _DATA_DIR,
    reason='LN_TFP_DATA_DIR does not name a directory of prepared data sets.')


@pytest.fixture(name='source', scope='module')
def _source():
  source = data.load('cifar100', _DATA_DIR)
  few = np.arange(20)
  return dataclasses.replace(
      source, train=source.train.subset(few), test=source.test.subset(few))


@pytest.mark.real_data
@pytest.mark.slow
@needs_data_dir
@pytest.mark.parametrize('name', methods.NAMES)
def test_a_step_on_cifar100_moves_every_weight_of_the_wide_resnet(
    source, name):
  run = training.Run(
      dataset='cifar100', method=name, noise='sym:0.4', model='wide_resnet',
      optimizer='gd', learning_rate=1., batch_size=18, epochs=1)
  method = run.resolve_method()
  if name == 'Forward':
    method = dataclasses.replace(
        method, transition=.4 / 100 + .6 * np.eye(100))
  loop = trainer_lib.Trainer(
      run, method, training.load_splits(run, source=source),
      devices.create('one'))
  before = [v.numpy() for v in loop.model.trainable_variables]
  record = loop.train_epoch(0)
  assert np.isfinite(record['loss'])
  for variable, old in zip(loop.model.trainable_variables, before):
    new = variable.numpy()
    assert np.all(np.isfinite(new)), variable.path
    assert np.any(new != old), variable.path

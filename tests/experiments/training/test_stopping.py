"""An epoch chosen without clean labels, beside the last one."""

import dataclasses
import math

import numpy as np
import pytest

from experiments import training
from experiments.output import tables
from experiments.training import runner
from experiments.training import trainer as trainer_lib
from ln_tfp import label_wave
from tests.experiments.training import tiny

RUN = tiny.run(epochs=14, learning_rate=.02, stop='label_wave', seed=1)


def _train(run, **arguments):
  return training.train(
      run, source=tiny.source(), strategy='one', **arguments)


@pytest.fixture(name='result', scope='module')
def _result():
  return _train(RUN)


@pytest.mark.slow
def test_the_chosen_epoch_is_that_of_a_run_that_ends_there(result):
  changes = result.history['changed_predictions']
  assert changes[0] is None and len(changes) == 14
  epoch = result.chosen['epoch']
  assert epoch == label_wave.first_minimum(changes[1:]) + 2
  assert epoch < 14, 'the test needs a minimum on the way'
  shorter = _train(dataclasses.replace(RUN, epochs=epoch, stop='none'))
  assert result.chosen['metrics'] == shorter.metrics
  whole = _train(dataclasses.replace(RUN, stop='none'))
  assert result.metrics == whole.metrics
  assert whole.chosen is None
  assert whole.key != result.key
  assert tables.accuracy(result) == tables.accuracy(whole)
  assert tables.chosen_accuracy(result) == tables.accuracy(shorter)


@pytest.mark.slow
def test_an_interrupted_run_chooses_the_same(tmp_path, monkeypatch, result):
  original = trainer_lib.Trainer.train_epoch
  stop_at = [result.chosen['epoch']]  # before the minimum shows

  def train_epoch(self, epoch):
    if [epoch] == stop_at:
      stop_at.clear()
      raise KeyboardInterrupt
    return original(self, epoch)

  monkeypatch.setattr(runner, '_SAVING_SHARE', math.inf)  # every epoch
  monkeypatch.setattr(trainer_lib.Trainer, 'train_epoch', train_epoch)
  with pytest.raises(KeyboardInterrupt):
    _train(RUN, output_dir=tmp_path)
  again = _train(RUN, output_dir=tmp_path)
  assert not stop_at
  assert again.chosen == result.chosen
  assert again.history == result.history


@pytest.mark.slow
def test_a_run_without_a_minimum_chooses_its_last_epoch():
  result = _train(dataclasses.replace(RUN, epochs=2))
  assert result.chosen == {'epoch': 2, 'metrics': result.metrics}
  assert np.isfinite(tables.chosen_accuracy(result))

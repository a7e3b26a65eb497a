"""What a process keeps of the runs that it has trained."""

import gc

import pytest
import tensorflow as tf

from experiments.sweep import worker
from tests.experiments.training import tiny


def _traces():
  gc.collect()
  return sum(isinstance(each, tf.Graph) for each in gc.get_objects())


@pytest.mark.slow
def test_nothing_of_a_run_stays_in_the_process(monkeypatch):
  monkeypatch.setattr(worker, '_source', lambda *unused: tiny.source())
  counts = []
  for seed in range(3):
    run = tiny.run(method='LN', seed=seed, epochs=1)
    worker.train_alone(
        dict(run=run.to_dict(), output_dir=None, data_dir=None, strategy='one',
             keep_weights=False, tensorboard_dir=None, retrain=False),
        lambda told: None)
    counts.append(_traces())
  assert counts[1] == counts[2]

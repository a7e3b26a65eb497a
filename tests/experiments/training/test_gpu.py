"""Training on GPUs; skipped, and listed as such, where there is none."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from experiments import training

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not tf.config.list_physical_devices('GPU'), reason='needs a GPU'),
]
_SETTINGS = dict(method='LN', noise='sym:0.4', epochs=3)

# In its own process: memory growth is set before a device is used.
_TRAIN = """
import json, sys
import tensorflow as tf
from experiments import training
result = training.train(training.Run(**json.loads(sys.argv[1])))
gpus = tf.config.list_physical_devices('GPU')
print(json.dumps({
    'growth': [tf.config.experimental.get_memory_growth(g) for g in gpus],
    'device': result.device, 'history': result.history['loss']}))
"""


def _train(**settings):
  output = subprocess.run(
      [sys.executable, '-c', _TRAIN, json.dumps({**_SETTINGS, **settings})],
      cwd=pathlib.Path(__file__).parents[3], check=True, text=True,
      capture_output=True).stdout
  return json.loads(output.splitlines()[-1])


def test_a_run_uses_the_gpu_and_lets_its_memory_grow():
  outcome = _train()
  assert all(outcome['growth'])
  assert 'GPU' in json.dumps(outcome['device']).upper()


def test_a_gpu_learns_what_the_cpu_learns():
  cpu = tf.distribute.OneDeviceStrategy('CPU:0')
  result = training.train(training.Run(**_SETTINGS), strategy=cpu)
  np.testing.assert_allclose(
      _train()['history'], result.history['loss'], rtol=1e-2)


@pytest.mark.parametrize('settings', [dict(mixed_precision=True),
                                      dict(jit=True)], ids=str)
def test_mixed_precision_and_xla_train_on_a_gpu(settings):
  history = _train(**settings)['history']
  assert np.all(np.isfinite(history)) and history[-1] < history[0]

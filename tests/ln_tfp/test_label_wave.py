"""Label Wave: the first minimum of changed predictions."""

import keras
import numpy as np
import pytest

import ln_tfp
from ln_tfp import label_wave


@pytest.mark.parametrize('changes, window, expected', [
    ([], 3, None),
    ([9, 8, 7, 6, 5], 3, None),
    ([9, 5, 6], 1, 1),
    ([9, 5, 5, 6], 1, 2),  # the last of equal ones
    ([9, 5, 6, 4, 3], 3, None),  # smoothed away
    ([9, 6, 3, 3, 9, 1, 1], 3, 3),
    ([1, 2], 3, None),
])
def test_the_first_minimum_of_the_moving_average(changes, window, expected):
  assert label_wave.first_minimum(changes, window) == expected


class _Scripted(keras.callbacks.Callback):
  """Makes predictions change as often as a script says."""

  def __init__(self, script):
    super().__init__()
    self._script = script
    self.kernels = []

  def on_epoch_end(self, epoch, logs=None):
    # The first so many examples change sides at each epoch.
    kernel = self.model.layers[-1].kernel
    value = kernel.numpy()
    sides = np.where(np.arange(len(value)) < self._script[epoch], -1, 1)
    kernel.assign(value * sides[:, np.newaxis])
    self.kernels.append(kernel.numpy())


@pytest.mark.slow
def test_training_stops_and_goes_back_to_the_chosen_epoch():
  size = 8
  x = np.eye(size, dtype='float32')
  model = keras.Sequential([
      keras.Input([size]), keras.layers.Dense(2, use_bias=False)])
  model.layers[-1].kernel.assign(np.tile([[1., -1.]], [size, 1]))
  model.compile(keras.optimizers.SGD(0.), loss='mse')
  script = _Scripted([0, 6, 5, 4, 3, 5, 7, 1, 1])
  wave = ln_tfp.LabelWave(x, window=1)
  history = model.fit(
      x, np.zeros([size, 2]), epochs=9, verbose=0, callbacks=[script, wave])
  assert wave.changes == [6, 5, 4, 3, 5]
  assert wave.epoch == 4
  assert len(history.epoch) == 6
  np.testing.assert_array_equal(
      model.layers[-1].kernel, script.kernels[wave.epoch])


def test_it_reads_the_outputs_of_all_heads():
  for head in (keras.layers.Dense(4), ln_tfp.LogisticNormalHead(4),
               ln_tfp.LogisticNormalHead(4, dummy_class=False),
               ln_tfp.HeteroscedasticHead(4)):
    model = keras.Sequential([keras.Input([3]), head])
    outputs = model(np.random.default_rng(0).normal(size=[200, 3]))
    classes = label_wave._classes(model, outputs)
    assert classes.shape == (200,) and set(classes) <= set(range(4))
    assert len(set(classes)) > 1

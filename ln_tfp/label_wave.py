"""Label Wave: when to stop, without any clean or held-out label."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops
import numpy as np

from ln_tfp import checks
from ln_tfp import heads

WINDOW = 3


def first_minimum(
    changes: Sequence[float], window: int = WINDOW) -> int | None:
  """Returns where the moving average of a sequence has its first minimum.

  Args:
    changes: Numbers so far.
    window: How many of them are averaged, the last ones at each place.

  Returns:
    The place, from 0, of the last number of that average; None as long as the
    averages have not risen.
  """
  checks.whole('window', window, 1)
  averages = [np.mean(changes[end - window:end])
              for end in range(window, len(changes) + 1)]
  for place, (one, after) in enumerate(zip(averages, averages[1:])):
    if after > one:
      return place + window - 1
  return None


class LabelWave(keras.callbacks.Callback):
  """Stops training where the predictions for the training set settle first.

      wave = ln_tfp.LabelWave(x)
      model.fit(x, noisy_labels, epochs=100, callbacks=[wave])

  After each epoch it counts the examples whose predicted class is another one
  than an epoch before. While a network learns what is common the number falls;
  when it begins to fit wrong labels it rises. Training stops at the first
  minimum of a moving average, and the weights go back to those of that epoch
  (Yuan et al., 2024, "Early stopping against label noise without validation
  data"). There it is counted on the training passes; Keras does not tell a
  callback of them, and so the examples pass through the model once more.

  Args:
    x: The training examples, as for `model.predict`.
    window: How many epochs are averaged.
    restore_weights: Whether the weights of the chosen epoch are put back.
    batch_size: Of `model.predict`; for arrays.

  Attributes:
    changes: The numbers of examples, from the second epoch on.
    epoch: The chosen epoch, from 0; None if training ended before the minimum.
  """

  def __init__(self, x: Any, window: int = WINDOW,
               restore_weights: bool = True, batch_size: int | None = None):
    super().__init__()
    self._x = x
    self._window = checks.whole('window', window, 1)
    self._restore_weights = restore_weights
    self._batch_size = batch_size
    self.on_train_begin()

  def on_train_begin(self, logs: Any = None) -> None:
    self.changes: list[int] = []
    self.epoch: int | None = None
    self._classes = self._weights = None

  def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
    outputs = self.model.predict(
        self._x, batch_size=self._batch_size, verbose=0)
    before, self._classes = self._classes, _classes(self.model, outputs)
    if before is not None:
      self.changes.append(int(np.sum(before != self._classes)))
    if first_minimum(self.changes, self._window) is None:
      if self._restore_weights:
        self._weights = self.model.get_weights()
      return
    self.epoch = epoch - 1
    self.model.stop_training = True
    if self._restore_weights:
      self.model.set_weights(self._weights)
      self._weights = None


def _classes(model: keras.Model, outputs: Any) -> np.ndarray:
  """Returns the predicted classes; a single output is a probability."""
  outputs = ops.convert_to_numpy(outputs)
  for layer in model._flatten_layers():
    if isinstance(layer, heads.LogisticNormalHead):
      outputs = outputs[..., 0, :]
      missing = max(layer.num_classes - outputs.shape[-1], 0)
      return np.pad(outputs, [(0, 0)] * (outputs.ndim - 1) + [(0, missing)]
                    ).argmax(axis=-1)
    if isinstance(layer, heads.HeteroscedasticHead):
      return outputs[..., 0].argmax(axis=-1)
  if outputs.shape[-1] == 1:
    return outputs[..., 0] > .5
  return outputs.argmax(axis=-1)

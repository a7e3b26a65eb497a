"""`MarginRecorder`: how training looks at each label, epoch after epoch."""

from typing import Any

import keras
import numpy as np

from ln_tfp.audit import auditing
from ln_tfp.audit.inputs import examples
from ln_tfp.audit.inputs import given


class MarginRecorder(keras.callbacks.Callback):
  """Averages the margins of labels over the epochs of a training.

      recorder = ln_tfp.MarginRecorder(x, y)
      model.fit(x, y, epochs=30, callbacks=[recorder])
      np.argsort(recorder.margins)    # the likeliest wrong labels first

  The margin of a label is its logit minus the largest other one. A network
  learns right labels early and wrong ones late, if at all, so that wrong labels
  have low margins on average (Pleiss et al., 2020, "Identifying mislabeled data
  using the area under the margin ranking"). After each epoch all examples pass
  through the model once more, as in inference.

  Args:
    x: examples, as for `audit_labels`: what the model is trained on.
    y: their labels; None if `x` brings them.
    batch_size: of arrays.

  Attributes:
    margins: `[N]`, means over the epochs so far.
    epochs: how many there were.
  """

  def __init__(self, x: Any, y: Any = None, batch_size: int = 256):
    super().__init__()
    self._examples = examples.open_examples(x, y, batch_size)
    self._examples.check_order()
    self._total = 0.
    self.epochs = 0

  @property
  def margins(self) -> np.ndarray:
    if not self.epochs:
      raise ValueError('There are no margins before the end of an epoch.')
    return self._total / self.epochs

  def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
    self._total += np.concatenate([
        self._margins(self.model.predict_on_batch(inputs), labels)
        for inputs, labels, _ in self._examples.begin()])
    self.epochs += 1

  def _margins(self, outputs, labels):
    """Returns the margins of a batch, float64 `[B]`."""
    logits = np.asarray(outputs, np.float64)
    if logits.ndim == 3:  # a Logistic-Normal head's; K - 1 without the dummy
      logits = logits[:, 0]
      missing = auditing.find_head(self.model).num_classes - logits.shape[1]
      logits = np.pad(logits, [(0, 0), (0, missing)])
    labels = given.read(labels, range(logits.shape[1]), argument='y').classes
    return margins_of(logits, labels)


def margins_of(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
  """Returns the logit of each label minus the largest other one, `[N]`."""
  rows = np.arange(len(labels))
  others = logits.copy()
  others[rows, labels] = -np.inf
  return logits[rows, labels] - others.max(axis=1)

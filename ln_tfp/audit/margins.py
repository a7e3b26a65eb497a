"""`MarginRecorder`: how training looks at each label, epoch after epoch."""

from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from ln_tfp.audit import auditing
from ln_tfp.audit.inputs import examples
from ln_tfp.audit.inputs import given as given_lib


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
    x: examples, as for `audit_labels`: what the model is trained on. They are
      read after every epoch, so that a generator will not do.
    y: their labels; None if `x` brings them.
    batch_size: of arrays.
    class_names: as for `audit_labels`.
    ignore_class: likewise.
    output: likewise.

  Attributes:
    margins: `[N]`, means over the epochs so far; NaN for ignored labels.
    epochs: how many there were.
  """

  def __init__(
      self, x: Any, y: Any = None, batch_size: int = 256, *,
      class_names: Sequence[str] | None = None, ignore_class: Any = None,
      output: str | int | None = None):
    super().__init__()
    if isinstance(x, Iterator):
      raise ValueError(
          'Argument `x` must be readable after every epoch: pass arrays, a '
          f'dataset or a function. Received: {type(x).__name__}.')
    self._open = lambda chosen: examples.open_examples(
        x, y, batch_size, chosen)
    self._output, self._chosen = output, examples.ONLY
    if output is None:
      self._examples = self._open(self._chosen)
      self._examples.check_order()
    self._settings = class_names, ignore_class
    self._classes = None
    self._total = 0.
    self.epochs = 0

  @property
  def margins(self) -> np.ndarray:
    if not self.epochs:
      raise ValueError('There are no margins before the end of an epoch.')
    return self._total / self.epochs

  def on_train_begin(self, logs: Any = None) -> None:
    if self._output is not None:  # only the model knows its place
      self._chosen = auditing.find_output(self.model, self._output)
      self._examples = self._open(self._chosen)
      self._examples.check_order()

  def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
    margins, start = [], 0
    for inputs, labels, _ in self._examples.begin():
      logits = self._logits(self.model.predict_on_batch(inputs))
      if self._classes is None:
        self._classes = self._read_labels(logits.shape[1])
      classes = self._classes[start:start + len(labels)]
      found = np.full(len(labels), np.nan)
      known = classes != given_lib.MISSING
      found[known] = margins_of(logits[known], classes[known])
      margins.append(found)
      start += len(labels)
    self._total += np.concatenate(margins)
    self.epochs += 1

  def _logits(self, outputs):
    """Returns the logits of a batch, float64 `[B, K]`."""
    logits = np.asarray(self._chosen.of(outputs), np.float64)
    if logits.ndim == 3:  # a Logistic-Normal head's; K - 1 without the dummy
      logits = logits[:, 0]
      head = auditing.find_head(self.model, self._chosen)
      missing = head.num_classes - logits.shape[1]
      logits = np.pad(logits, [(0, 0), (0, missing)])
    return logits

  def _read_labels(self, num_classes):
    """Returns all labels: one batch would not have the names of all."""
    labels = np.concatenate([part for _, part, _ in self._examples.begin()])
    return auditing.read_labels(labels, num_classes, *self._settings).classes


def margins_of(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
  """Returns the logit of each label minus the largest other one, `[N]`."""
  rows = np.arange(len(labels))
  others = logits.copy()
  others[rows, labels] = -np.inf
  return logits[rows, labels] - others.max(axis=1)

"""What the losses share as Keras objects."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from ln_tfp import backend
from ln_tfp import checks
from ln_tfp import labels as labels_lib

Tensor = labels_lib.Tensor


class LabelLoss(keras.losses.Loss):
  """A Keras loss of labels in any form (see `ln_tfp.labels`).

  Labels whose weight or mask is zero are never checked. Subclasses have a
  `call` that returns `[...]` values, and `arguments`, their own part of the
  configuration.

  Args:
    ignore_class: Labels that are this number neither count nor fail, as in
      Keras's `SparseCategoricalCrossentropy`.
    reduction: As of every Keras loss.
    name: As of every Keras loss.
    dtype: As of every Keras loss.
  """

  num_event_dims = 1  # axes of a prediction: K logits

  def __init__(self, ignore_class: int | None, reduction: str | None,
               name: str | None, dtype: Any):
    super().__init__(name=name, reduction=reduction, dtype=dtype)
    self.ignore_class = labels_lib.check_ignore_class(ignore_class)

  def __call__(self, y_true, y_pred, sample_weight=None):
    # Keras tells the weights to `__call__` alone.
    num_dims = len(y_pred.shape) - self.num_event_dims
    if sample_weight is not None:
      sample_weight = labels_lib.align_weights(sample_weight, num_dims)
    y_true = labels_lib.without_uncounted(
        y_true, num_dims, sample_weight, labels_lib.mask_of(y_pred))
    return super().__call__(y_true, y_pred, sample_weight)

  def arguments(self) -> dict[str, Any]:
    """Returns the subclass's own arguments by name."""
    raise NotImplementedError

  def get_config(self) -> dict[str, Any]:
    return {
        **super().get_config(),
        **self.arguments(),
        'ignore_class': self.ignore_class,
    }


class LogitsLoss(LabelLoss):
  """A loss of logits that is a function of labels, logits and some numbers.

  Subclasses have that `function`, whose arguments are those of the subclass.

  Args:
    arguments: The subclass's own, by name.
    ignore_class: As of `LabelLoss`.
    from_logits: False if the model ends in a softmax.
    reduction: As of every Keras loss.
    name: As of every Keras loss.
    dtype: As of every Keras loss.
  """

  function: Callable[..., Tensor]

  def __init__(self, arguments: dict[str, Any], ignore_class: int | None,
               from_logits: bool, reduction: str | None, name: str | None,
               dtype: Any):
    super().__init__(ignore_class, reduction, name, dtype)
    self._arguments = arguments
    self.from_logits = from_logits

  def call(self, y_true, y_pred):
    return self.function(
        y_true, y_pred, **self._arguments, ignore_class=self.ignore_class,
        from_logits=self.from_logits)

  def arguments(self):
    return {**self._arguments, 'from_logits': self.from_logits}


class RandomLoss(LabelLoss):
  """A loss that draws random numbers, new ones at every call.

  The state is a `keras.random.SeedGenerator`, which Keras does not save with
  the model. Replicas of a `tf.distribute` strategy share it. On JAX, where a
  loss has no state, the numbers are new as soon as the predictions are.

  Args:
    seed: Integer; `None` takes one from Keras.
    **kwargs: As of `LabelLoss`.
  """

  def __init__(self, seed: int | None, **kwargs):
    super().__init__(**kwargs)
    self.seed = None if seed is None else checks.whole('seed', seed, 0)
    self._generator = keras.random.SeedGenerator(self.seed)

  def next_seed(self, y_pred: Tensor) -> tuple[Tensor, Tensor]:
    """Returns two integers, the same on every replica and new at every call."""
    return backend.next_seed(self._generator, y_pred)


def read_logits(y_true: Tensor, y_pred: Tensor, from_logits: bool,
                ignore_class: int | None) -> tuple[labels_lib.Labels, Tensor]:
  """Returns the labels and the logits `[..., K]` of a softmax classifier.

  Args:
    y_true: Labels in any form.
    y_pred: Logits `[..., K]`, or probabilities.
    from_logits: Which of them.
    ignore_class: As in `LabelLoss`.
  """
  y_pred = ops.convert_to_tensor(y_pred)
  shape = tuple(y_pred.shape)
  if not shape or shape[-1] is None or shape[-1] < 2:
    raise ValueError(
        'Argument `y_pred` must be logits or probabilities of at least two '
        f'classes, of shape [..., K]. Received: a tensor of shape {shape}.')
  labels = labels_lib.Labels(y_true, shape[:-1], shape[-1], ignore_class)
  if not from_logits:  # The softmax of log p is p.
    y_pred = ops.log(ops.maximum(y_pred, keras.config.epsilon()))
  return labels, y_pred


def log_probability(
    y_true: Tensor, y_pred: Tensor, from_logits: bool,
    ignore_class: int | None) -> tuple[labels_lib.Labels, Tensor, Tensor]:
  """Returns labels, their rows `[..., K]` and log p, `[..., K]`.

  As `read_logits`; a function f of the label's probability is then
  `sum(rows * f(log p))`, for soft labels the mean over them.
  """
  labels, logits = read_logits(y_true, y_pred, from_logits, ignore_class)
  return labels, labels.distribution(logits.dtype), ops.log_softmax(logits)

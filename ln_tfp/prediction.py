"""The likeliest classes of examples."""

from typing import Any

import keras
from keras import ops
import numpy as np
import tensorflow as tf

from ln_tfp import checks
from ln_tfp import export
from ln_tfp import heads
from ln_tfp import many_classes


def predict_top_k(
    model: keras.Model, x: Any, k: int = 5, output: str | None = None,
    **arguments
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the k likeliest classes of examples, and their probabilities.

  The probabilities are those of `ln_tfp.to_classifier(model)`. Of a model with
  a `ManyClassesHead` the logits are computed for some thousand classes at a
  time: neither `N x K` nor `B x K` numbers are ever in memory.

  ```python
  classes, _ = ln_tfp.predict_top_k(model, images, 5, batch_size=256)
  top_5_accuracy = np.mean(np.any(classes == labels[:, None], axis=1))
  ```

  Args:
    model: A built Keras model with an output that comes from a
      `LogisticNormalHead` or a `ManyClassesHead`.
    x: As of `model.predict`.
    k: Number of classes, at most K.
    output: Name of the output, for a model that has several, as of
      `ln_tfp.to_classifier`.
    **arguments: As of `model.predict`, for example `batch_size`.

  Returns:
    An int32 array of classes, `[..., k]`, the likeliest first, and a float
    array of their probabilities.
  """
  head = export.output_head(model, output)
  k = checks.whole('k', k, 1)
  if k > head.num_classes:
    raise ValueError(f'Argument `k` must not exceed {head.num_classes}, the '
                     f'number of classes. Received: k={k}.')
  layer = _TopK(head, k)
  inputs = model.inputs[0] if len(model.inputs) == 1 else model.inputs
  top = keras.Model(inputs, layer(export.find_output(model, output)))
  classes, probabilities = top.predict(x, **{'verbose': 0, **arguments})
  return classes, probabilities


class _TopK(keras.layers.Layer):
  """Classes and probabilities from the output of a head."""

  def __init__(self, head, k):
    super().__init__(dtype=head.dtype_policy)
    self.supports_masking = True
    self._top_k = lambda outputs: _top_k(outputs, head, k)

  def call(self, inputs):
    return self._top_k(inputs)


def _top_k(outputs, head, k):
  if isinstance(head, many_classes.ManyClassesHead):
    return head.top_k(outputs, k)
  probabilities = heads.probabilities(outputs, head.num_classes)
  values, classes = ops.top_k(probabilities, k)
  return tf.cast(classes, tf.int32), values

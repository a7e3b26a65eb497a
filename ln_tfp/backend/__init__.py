"""What differs between the Keras backends, or costs TensorFlow time.

All else of the library is written in `keras.ops`. Three modules have the same
functions, and only that of the backend is imported:

| function         |                                                      |
|------------------|------------------------------------------------------|
| `read_labels`    | a tensor in which no label has become another one    |
| `require`        | an error where labels are invalid, if one can be had |
| `normal`         | random numbers that follow from integers             |
| `next_seed`      | other integers for every step of a training          |
| `first_id`       | where a replica begins to count its examples         |
| `places`         | 0, 1, ...                                            |
| `log_of_product` | `log(exp(a) B)`                                      |
| `one_hot`        | rows of zeros and a one; zeros for what is no class  |
"""

import sys
from typing import Any

import keras

NAME = keras.backend.backend()
IS_TENSORFLOW = NAME == 'tensorflow'
INFINITE_CARDINALITY = -1  # of `tf.data`

if NAME not in ('tensorflow', 'jax', 'torch'):
  raise ImportError(
      'ln_tfp runs on Keras with its TensorFlow, JAX or PyTorch backend: set '
      'KERAS_BACKEND to one of them before Keras is imported. Received: '
      f'KERAS_BACKEND={NAME}.')

one_hot = keras.ops.one_hot
if IS_TENSORFLOW:
  from ln_tfp.backend.on_tensorflow import first_id
  from ln_tfp.backend.on_tensorflow import log_of_product
  from ln_tfp.backend.on_tensorflow import next_seed
  from ln_tfp.backend.on_tensorflow import normal
  from ln_tfp.backend.on_tensorflow import places
  from ln_tfp.backend.on_tensorflow import read_labels
  from ln_tfp.backend.on_tensorflow import require
elif NAME == 'torch':
  from ln_tfp.backend.on_torch import first_id
  from ln_tfp.backend.on_torch import log_of_product
  from ln_tfp.backend.on_torch import next_seed
  from ln_tfp.backend.on_torch import normal
  from ln_tfp.backend.on_torch import one_hot
  from ln_tfp.backend.on_torch import places
  from ln_tfp.backend.on_torch import read_labels
  from ln_tfp.backend.on_torch import require
else:
  from ln_tfp.backend.on_others import first_id
  from ln_tfp.backend.on_others import log_of_product
  from ln_tfp.backend.on_others import next_seed
  from ln_tfp.backend.on_others import normal
  from ln_tfp.backend.on_others import places
  from ln_tfp.backend.on_others import read_labels
  from ln_tfp.backend.on_others import require


def check_tensorflow(purpose: str) -> None:
  """Raises unless Keras runs on TensorFlow, which `purpose` needs."""
  if not IS_TENSORFLOW:
    raise ImportError(
        f'{purpose} needs TensorFlow: set KERAS_BACKEND=tensorflow before '
        f'Keras is imported. Received: KERAS_BACKEND={NAME}.')


def is_dataset(x: Any) -> bool:
  """Whether it is a `tf.data.Dataset`, which all backends can read."""
  tf = sys.modules.get('tensorflow')
  return tf is not None and isinstance(x, tf.data.Dataset)

"""A plugin of pytest: TensorFlow is as if it were not installed."""

import sys

import keras as keras  # before: PyTorch, which it imports, looks for TensorFlow


class _WithoutTensorFlow:
  """With `None` in `sys.modules` Keras would believe that it is there."""

  def find_spec(self, name, path=None, target=None):
    if name.partition('.')[0] in (
        'tensorflow', 'tensorflow_probability', 'tf_keras'):
      raise ModuleNotFoundError(f'No module named {name!r}', name=name)


sys.meta_path.insert(0, _WithoutTensorFlow())

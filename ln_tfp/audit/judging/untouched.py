"""What a model knows of its inputs before its labels come in.

A network that has learnt wrong labels by heart puts them, in its last layers,
where they seem to belong; leave-one-out predictions from there find nothing.
What stands before the first layer with trainable weights cannot be spoilt like
that: the embedding of a frozen backbone, or the inputs themselves.
"""

import keras

from ln_tfp import heads


def features_before(
    output: keras.KerasTensor) -> dict[str, list[keras.KerasTensor]]:
  """Returns the features that a model has, by kind.

  'frozen' are the last tensors that depend on no trainable weight, 'features'
  the inputs of the head.

  Args:
    output: of a functional or Sequential model.
  """
  frozen = {}

  def walk(tensor):
    if _is_frozen(tensor):
      frozen[id(tensor)] = tensor
    else:
      for parent in _parents(tensor):
        walk(parent)

  walk(output)
  found = {'frozen': list(frozen.values())}
  if isinstance(output._keras_history.operation, heads.LogisticNormalHead):
    found['features'] = list(_parents(output))
  if [*map(id, found.get('features', ()))] == [*frozen]:
    del found['features']  # the same
  return found


def _is_frozen(tensor):
  operation = tensor._keras_history.operation
  return not getattr(operation, 'trainable_weights', ()) and all(
      map(_is_frozen, _parents(tensor)))


def _parents(tensor):
  operation, node_index, _ = tensor._keras_history
  if isinstance(operation, keras.layers.InputLayer):
    return ()
  return operation._inbound_nodes[node_index].input_tensors

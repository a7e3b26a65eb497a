"""From a classifier to a Logistic-Normal model, and back to a classifier."""

from collections.abc import Callable
from collections.abc import Sequence
import tempfile

import keras
import numpy as np

from ln_tfp import backend
from ln_tfp import heads


def from_classifier(model: keras.Model, output: str | None = None,
                    warm_start: bool = False, **head_arguments) -> keras.Model:
  """Replaces a classifier's last layer by a `LogisticNormalHead`.

  Args:
    model: A built Keras classifier, Sequential or functional, that ends in a
      `Dense` layer, or in a `Dense` layer and a softmax.
    output: Name of the output, for a model that has several: its key if the
      outputs are a dictionary, or the name of the layer that makes it.
    warm_start: Whether the head's `loc` starts with the weights of the layer
      that it replaces, scaled such that the new model's probabilities are the
      classifier's.
    **head_arguments: Passed on to `LogisticNormalHead`, which gets
      `num_classes` and `dtype` from the layer that it replaces.

  Returns:
    A new, uncompiled model with that one output. The backbone's weights are
    copies of the model's, the head is freshly initialised.
  """
  _check_model(model)
  dense, features = _last_dense(model, find_output(model, output))
  head = heads.LogisticNormalHead(**{
      'num_classes': dense.units, 'dtype': dense.dtype_policy,
      **head_arguments})
  backbone = _copy(keras.Model(_inputs(model), features))
  result = keras.Model(
      backbone.input, head(backbone.outputs[0]), name=model.name)
  if warm_start:
    head.loc.set_weights(_loc_weights(head, dense))
    head.end_warm_up()  # it knows the classes
  return result


def to_classifier(model: keras.Model, output: str | None = None,
                  class_names: Sequence[str] | None = None) -> keras.Model:
  """Returns the model as a plain softmax classifier over K classes.

  The covariance is gone and the temperature is folded into the kernel of a
  `Dense` layer, so the result can be saved, loaded and served with Keras
  alone; its output is `ln_tfp.probabilities` of the model's.

  Args:
    model: A built Keras model with an output that comes from a
      `LogisticNormalHead` or a `ManyClassesHead`; Sequential, functional, or
      with the head inside a nested model.
    output: Name of the output, for a model that has several: its key if the
      outputs are a dictionary, or the name of the layer that makes it, also of
      one inside a nested model.
    class_names: If given, the classifier knows them (on TensorFlow: the other
      backends have no strings). It returns a dictionary of the
      `'probabilities'` and the likeliest `'class_name'`, and
      `classifier.get_layer('class_names').get_vocabulary()` lists them. To be
      evaluated it is `keras.Model(classifier.input,
      classifier.output['probabilities'])`, because Keras wants labels for every
      output.

  Returns:
    An independent, uncompiled model with one output.
  """
  head = output_head(model, output)
  if class_names is not None:
    backend.check_tensorflow('Argument `class_names`')
  if class_names is not None and not (
      len(class_names) == len(set(class_names)) == head.num_classes):
    raise ValueError(
        f'Argument `class_names` must hold {head.num_classes} different names. '
        f'Received: {len(class_names)} names, {len(set(class_names))} of them '
        'different.')
  weights = head.softmax_weights()
  dense = keras.layers.Dense(
      head.num_classes, activation='softmax', use_bias=len(weights) > 1,
      name=head.name, dtype=head.dtype_policy)
  if len(model.outputs) > 1:
    model = keras.Model(
        _inputs(model), find_output(model, output), name=model.name)
  classifier = _copy(model, lambda layer: dense if layer is head else None)
  dense.set_weights(weights)
  return classifier if class_names is None else _with_names(
      classifier, class_names)


def output_head(model: keras.Model,
                output: str | None = None) -> keras.layers.Layer:
  """Returns the head that makes a model's output, or raises."""
  _check_model(model)
  layer = _makers(find_output(model, output))[-1]
  if not hasattr(layer, 'softmax_weights'):
    raise ValueError(
        'Argument `model` must have an output that comes from a '
        'LogisticNormalHead or a ManyClassesHead. Received: '
        f'{_describe(model)}.')
  _check_not_quantised(layer)
  return layer


def _with_names(classifier, class_names):
  """Adds the name of the likeliest class to the outputs."""
  lookup = keras.layers.StringLookup(
      vocabulary=[str(name) for name in class_names], num_oov_indices=0,
      invert=True, name='class_names')
  probabilities = classifier.outputs[0]
  likeliest = keras.ops.argmax(probabilities, axis=-1)
  return keras.Model(
      _inputs(classifier),
      {'probabilities': probabilities, 'class_name': lookup(likeliest)},
      name=classifier.name)


def _loc_weights(head, dense):
  """Returns weights of `loc` that predict like a softmax over `dense`."""
  if (head.use_bias, head.num_classes) != (dense.use_bias, dense.units):
    raise ValueError(
        'Argument `warm_start` needs a head with as many classes as the '
        f'Dense layer, and a bias if it has one. Received: {dense.units} units '
        f'with use_bias={dense.use_bias}, num_classes={head.num_classes} with '
        f'use_bias={head.use_bias}.')
  weights = [head.temperature * w for w in dense.get_weights()]
  if head.dummy_class:
    return weights
  return [w[..., :-1] - w[..., -1:] for w in weights]


def _copy(model: keras.Model,
          replace: Callable[[keras.Layer], keras.Layer | None] = lambda _: None
         ) -> keras.Model:
  """Returns an uncompiled copy of a model with all its state.

  `keras.models.clone_model` would copy how the model was compiled, nested
  models included, and leave out weights and the tables of lookup layers.

  Args:
    model: Sequential or functional.
    replace: Returns what to put in the place of a layer, `None` for a copy.
  """
  copies = {}

  def copy_layer(layer):
    if id(layer) not in copies:
      _check_not_quantised(layer)
      copies[id(layer)] = layer, (replace(layer) or copy_of(layer))
    return copies[id(layer)][1]

  def copy_of(layer):
    if isinstance(layer, keras.Sequential):
      first = layer.inputs[0]
      inputs = keras.Input(
          batch_shape=first.shape, dtype=first.dtype, name=first.name)
      return keras.Sequential(
          [inputs, *map(copy_layer, layer.layers)], name=layer.name)
    if isinstance(layer, keras.Model) and layer.inputs:
      return keras.models.clone_model(  # of a model that was never compiled
          keras.Model(layer.input, layer.output, name=layer.name),
          clone_function=copy_layer)
    if isinstance(layer, keras.layers.Lambda):
      return layer  # has no state, and Keras refuses to make it anew
    copy = type(layer).from_config(layer.get_config())
    _copy_assets(layer, copy)
    return copy

  result = copy_layer(model)
  for source, copy in copies.values():
    if type(copy) is type(source) and isinstance(source, keras.Layer):
      _copy_variables(source, copy)
  return result


def _copy_variables(source, copy):
  """Copies what Keras would save of a layer and of those inside it."""
  if isinstance(source, keras.Model):
    return  # its layers are copied one by one
  for old, new in zip(source._flatten_layers(), copy._flatten_layers()):
    store = {}
    old.save_own_variables(store)
    if store:  # as arrays: JAX's variables would share what training overwrites
      new.load_own_variables(
          {key: np.array(keras.ops.convert_to_numpy(value))
           for key, value in store.items()})


def _copy_assets(source, copy):
  """Copies the tables of a lookup layer, which it needs to be called."""
  if hasattr(source, 'save_assets'):
    with tempfile.TemporaryDirectory() as folder:
      source.save_assets(folder)
      copy.load_assets(folder)


def _check_not_quantised(layer):
  for part in getattr(layer, '_flatten_layers', list)():
    if getattr(part, 'quantization_mode', None) is not None:
      raise ValueError(
          'Argument `model` must not be quantised; quantise the result '
          f'instead. Received: a layer {part.name!r} in '
          f'{part.quantization_mode}.')


def _check_model(model):
  if not isinstance(model, keras.Model) or not model.built or not getattr(
      model, 'outputs', None):
    raise ValueError('Argument `model` must be a built Sequential or '
                     f'functional Keras model. Received: {_describe(model)}.')


def find_output(model, output):
  """Returns the output of that name, or the only one."""
  if output is None:
    if len(model.outputs) > 1:
      raise ValueError(
          'Argument `model` must have a single output, or `output` must name '
          f'one of them. Received: {_describe(model)}.')
    return model.outputs[0]
  if not isinstance(model, keras.Sequential) and isinstance(
      model.output, dict):
    named = list(model.output.items())
  else:
    named = [(layer.name, tensor) for tensor in model.outputs
             for layer in _makers(tensor)]
  found = [tensor for name, tensor in named if name == output]
  if len(found) != 1:
    names = [name for name, _ in named]
    unique = sorted(name for name in names if names.count(name) == 1)
    raise ValueError(f'Argument `output` must be one of {unique}. '
                     f'Received: output={output!r}.')
  return found[0]


def _makers(tensor):
  """Returns the layer that makes a tensor, and so on into nested models."""
  layers = [tensor._keras_history.operation]
  while isinstance(layers[-1], keras.Model):
    tensor = layers[-1].outputs[tensor._keras_history.tensor_index]
    layers.append(tensor._keras_history.operation)
  return layers


def _last_dense(model, tensor):
  """Returns a classifier's last `Dense` layer and the features it reads."""
  layer = tensor._keras_history.operation
  if isinstance(layer, keras.layers.Softmax) or (
      isinstance(layer, keras.layers.Activation)
      and layer.activation is keras.activations.softmax):
    tensor = _input_of(tensor)
    layer = tensor._keras_history.operation
  softmax_or_linear = (keras.activations.softmax, keras.activations.linear)
  if (not isinstance(layer, keras.layers.Dense)
      or layer.activation not in softmax_or_linear):
    raise ValueError(
        'Argument `model` must have an output that comes from a Dense layer '
        'with softmax or no activation, or from a softmax after one. Received: '
        f'{_describe(model)}.')
  _check_not_quantised(layer)
  return layer, _input_of(tensor)


def _inputs(model):
  """Returns the inputs as they are given to the model."""
  if isinstance(model, keras.Sequential):
    return model.inputs[0]
  return model.input


def _input_of(tensor):
  """Returns what the layer that made this tensor made it of."""
  layer, node_index, _ = tensor._keras_history
  return layer._inbound_nodes[node_index].input_tensors[0]


def _describe(model):
  if isinstance(model, keras.Model) and getattr(model, 'outputs', None):
    makers = [t._keras_history.operation.name for t in model.outputs]
    return f'a model whose outputs come from the layers {makers}'
  return f'{type(model).__name__}'

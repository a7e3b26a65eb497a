"""From a classifier to a Logistic-Normal model, and back to a classifier."""

import keras
import numpy as np

from ln_tfp import heads
from ln_tfp import many_classes

_HEADS = (heads.LogisticNormalHead, many_classes.ManyClassesHead)


def from_classifier(model, **head_arguments):
  """Replaces a classifier's last layer by a `LogisticNormalHead`.

  Args:
    model: A built Keras classifier, Sequential or functional, that ends in a
      `Dense` layer, or in a `Dense` layer and a softmax.
    **head_arguments: Passed on to `LogisticNormalHead`, which gets
      `num_classes` from the layer that it replaces.

  Returns:
    A new, uncompiled model. The backbone's weights are copies of the model's,
    the head is freshly initialised.
  """
  _check_model(model)
  dense, features = _last_dense(model)
  head = heads.LogisticNormalHead(
      head_arguments.pop('num_classes', dense.units), **head_arguments)
  backbone = keras.Model(model.inputs, features)
  copy = keras.models.clone_model(backbone)
  copy.set_weights(backbone.get_weights())
  _finalize(copy)
  inputs = copy.inputs[0] if len(copy.inputs) == 1 else copy.inputs
  return keras.Model(inputs, head(copy.outputs[0]), name=model.name)


def to_classifier(model):
  """Returns the model as a plain softmax classifier over K classes.

  The covariance is gone and the temperature is folded into the kernel of a
  `Dense` layer, so the result can be saved, loaded and served with Keras
  alone; its output is `ln_tfp.probabilities` of the model's.

  Args:
    model: A built Keras model whose only output comes from a
      `LogisticNormalHead` or a `ManyClassesHead`; Sequential, functional, or
      with the head inside a nested model.

  Returns:
    An independent, uncompiled model.
  """
  output_head(model)
  sources = {}

  def clone(layer):
    if isinstance(layer, _HEADS):
      copy = keras.layers.Dense(
          layer.num_classes, activation='softmax', name=layer.name,
          dtype='float32')
    else:
      copy = layer.__class__.from_config(layer.get_config())
    sources[id(copy)] = layer
    return copy

  classifier = keras.models.clone_model(
      model, clone_function=clone, recursive=True)
  _copy_weights(classifier, sources)
  _finalize(classifier)
  return classifier


def _copy_weights(model, sources):
  """Fills a clone's layers with the weights of those they were made from."""
  for layer in model.layers:
    if isinstance(layer, keras.Model):
      _copy_weights(layer, sources)
      continue
    source = sources.get(id(layer))
    if isinstance(source, _HEADS):
      layer.set_weights(_softmax_weights(source))
    elif source is not None:
      layer.set_weights(source.get_weights())


def _finalize(model):
  """Lets layers take up weights of which they compute with something else."""
  for layer in model._flatten_layers():
    if isinstance(layer, keras.layers.Normalization):
      layer.finalize_state()


def _softmax_weights(head):
  """Returns kernel and bias whose softmax is the head's prediction."""
  if isinstance(head, many_classes.ManyClassesHead):
    return head.softmax_weights()
  kernel, bias = (w / head.temperature for w in head.loc.get_weights())
  if not head.dummy_class:  # S_C's last logit is zero.
    kernel = np.pad(kernel, [[0, 0], [0, 1]])
    bias = np.pad(bias, [[0, 1]])
  return [kernel, bias]


def _check_model(model):
  if not isinstance(model, keras.Model) or not model.built or not getattr(
      model, 'outputs', None):
    raise ValueError('Argument `model` must be a built Sequential or '
                     f'functional Keras model. Received: {_describe(model)}.')


def output_head(model):
  """Returns the head that makes the model's output, or raises."""
  _check_model(model)
  layer = model
  while isinstance(layer, keras.Model):
    layer = _producer(layer) if len(layer.outputs) == 1 else None
  if not isinstance(layer, _HEADS):
    raise ValueError(
        'Argument `model` must have a single output, that of a '
        'LogisticNormalHead or a ManyClassesHead. Received: '
        f'{_describe(model)}.')
  return layer


def _producer(model):
  """Returns the layer that makes the model's first output."""
  return model.outputs[0]._keras_history.operation


def _last_dense(model):
  """Returns a classifier's last `Dense` layer and the features it reads."""
  layer = _producer(model)
  tensor = model.outputs[0]
  if isinstance(layer, keras.layers.Softmax) or (
      isinstance(layer, keras.layers.Activation)
      and layer.activation is keras.activations.softmax):
    tensor = layer.input
    layer = tensor._keras_history.operation
  softmax_or_linear = (keras.activations.softmax, keras.activations.linear)
  if (len(model.outputs) != 1 or not isinstance(layer, keras.layers.Dense)
      or layer.activation not in softmax_or_linear):
    raise ValueError(
        'Argument `model` must have a single output, that of a Dense layer '
        'with softmax or no activation, or of a softmax after one. Received: '
        f'{_describe(model)}.')
  return layer, layer.input


def _describe(model):
  if isinstance(model, keras.Model) and getattr(model, 'outputs', None):
    makers = [t._keras_history.operation.name for t in model.outputs]
    return f'a model whose outputs come from the layers {makers}'
  return f'{type(model).__name__}'

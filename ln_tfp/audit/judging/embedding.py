"""What a model makes of all examples: outputs, and features to judge by."""

import dataclasses
import functools
from typing import Any

import keras
from keras import ops
import numpy as np

from ln_tfp import heads
from ln_tfp.audit import trust as trust_lib
from ln_tfp.audit.inputs import examples as examples_lib
from ln_tfp.audit.judging import untouched

_WIDEST = 20_000  # features of one example


class Embedder:
  """Runs a model on inputs: packed outputs, and features by kind.

  Args:
    model: with a `LogisticNormalHead`.
    output: which of its outputs.
    evidence: the kind of features wanted, see `audit_labels`.
  """

  def __init__(self, model: keras.Model, output: examples_lib.Output,
               evidence: str):
    self._model, self._output = model, output
    self._sizes = {}
    if evidence == 'outputs':
      return
    found = {}
    if getattr(model, 'outputs', None):
      packed = model.outputs[output.index or 0]
      found = untouched.features_before(packed)
    usable = {kind: tensors for kind, tensors in found.items()
              if _are_usable(tensors)}
    if evidence != 'auto':
      if evidence not in usable:
        raise ValueError(
            f'Argument `evidence` cannot be {evidence!r} for this model: there '
            'must be floating-point features of a fixed size, and at most '
            f'{_WIDEST}. Found: {found.get(evidence)}.')
      usable = {evidence: usable[evidence]}
    if usable:
      self._sizes = {kind: len(tensors) for kind, tensors in usable.items()}
      inputs = (model.inputs[0] if isinstance(model, keras.Sequential)
                else model.input)
      self._model = keras.Model(
          inputs, [packed, *(t for part in usable.values() for t in part)])

  def __call__(self, inputs: Any) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    values = self._model(inputs, training=False)
    if not self._sizes:
      return ops.convert_to_numpy(self._output.of(values)), {}
    packed, *tensors = map(ops.convert_to_numpy, values)
    features = {}
    for kind, size in self._sizes.items():
      parts, tensors = tensors[:size], tensors[size:]
      features[kind] = np.concatenate(
          [np.reshape(part, [len(packed), -1]) for part in parts],
          axis=1).astype(np.float32)
    return packed, features


def _are_usable(tensors):
  """Whether tensors can be columns of numbers, and not too many."""
  shapes = [tensor.shape[1:] for tensor in tensors]
  return bool(tensors) and all(
      keras.backend.is_float_dtype(tensor.dtype) for tensor in tensors) and all(
          None not in shape for shape in shapes) and (
              sum(int(np.prod(shape)) for shape in shapes) <= _WIDEST)


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
  """What a model makes of all examples.

  Attributes:
    outputs: packed `[N, 2 + R, D]`.
    features: `[N, F]` by kind.
    labels: as they came.
    ignored: bool `[N]`, those of weight zero.
    prints: uint64 `[N]`, fingerprints of the inputs.
  """
  outputs: np.ndarray
  features: dict[str, np.ndarray]
  labels: np.ndarray
  ignored: np.ndarray
  prints: np.ndarray


def run(embed: Embedder, head: heads.LogisticNormalHead,
        examples: examples_lib.Examples) -> Run:
  """Runs a model on all examples, once."""
  parts, start = [], 0
  for inputs, labels, weight in examples.begin():
    packed, features = embed(inputs)
    _check_outputs(packed, head, start)
    if len(labels) != len(packed):
      raise ValueError(
          'Argument `x` must have one label for each example. Received: '
          f'{len(labels)} labels for {len(packed)} examples.')
    ignored = np.zeros(len(labels), bool) if weight is None else (
        np.reshape(weight, [len(labels), -1]) == 0).all(axis=1)
    parts.append((packed, features, labels, ignored, _fingerprints(inputs)))
    start += len(labels)
  if not start:
    raise ValueError('Argument `x` must have at least one example.')
  outputs, features, *rest = zip(*parts)
  return Run(
      np.concatenate(outputs),
      {kind: np.concatenate([part[kind] for part in features])
       for kind in features[0]}, *map(np.concatenate, rest))


def _check_outputs(packed, head, start):
  """Refuses outputs that are not the head's; `start` is the first example."""
  if packed.ndim != 3 or packed.shape[1] < 2 or packed.shape[2] != head.dims:
    raise ValueError(
        'Argument `model` must return the output of its LogisticNormalHead, of '
        f'shape [N, 2 + R, {head.dims}]. Received: an output of shape '
        f'{packed.shape}.')
  if not np.all(np.isfinite(packed)):
    raise ValueError(
        'Argument `model` must have finite outputs. Received: NaN or infinity '
        f'among those for examples {start} to {start + len(packed) - 1}.')


def _fingerprints(inputs):
  """Returns the fingerprints of a batch of one or several inputs."""
  return functools.reduce(
      lambda whole, part: whole * np.uint64(31) + part,
      map(trust_lib.fingerprints, keras.tree.flatten(inputs)))

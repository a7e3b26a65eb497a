"""What a run is made of: its examples, its network and its optimiser."""

from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import dataclasses
import os

import keras

from experiments import data
from experiments import methods
from experiments import models
from experiments.training import results
from experiments.training import runs
from experiments.training import store
from ln_tfp import noise

Path = str | os.PathLike


def load_splits(
    run: runs.Run, *, source: data.Source | None = None,
    data_dir: Path | None = None) -> data.Source:
  """The examples of a run, a function of the run and its source alone.

  Labels are corrupted before the split, so that a label does not depend on
  the side its example falls on.

  Args:
    run: the run.
    source: the data set, if it is in memory already; None loads it by name.
    data_dir: where the data sets are.

  Returns:
    The data set with noise in the given labels of training and validation.
  """
  if source is None:
    source = data.load(run.dataset, data_dir=data_dir)
  elif source.name != run.dataset:
    raise ValueError(
        'Argument `source` must be the data set of the run. Received: '
        f'source.name={source.name!r}, run.dataset={run.dataset!r}.')
  options = run.resolve_options()
  train = _corrupt(run, source.train, source.num_classes)
  if source.validation is not None:
    validation = _corrupt(run, source.validation, source.num_classes)
  else:
    sizes = data.traits(run.dataset).authors_sizes
    train, validation = data.split(
        train, sizes=sizes if options.split == 'authors' else None)
  preprocessing = source.preprocessing
  if preprocessing.pad:
    preprocessing = dataclasses.replace(preprocessing, pad=options.pad)
  return dataclasses.replace(
      source, train=train, validation=validation, preprocessing=preprocessing)


def _corrupt(
    run: runs.Run, examples: data.Examples,
    num_classes: int) -> data.Examples:
  options, traits = run.resolve_options(), data.traits(run.dataset)
  mapping = traits.mapping
  if options.truck:
    mapping = {**traits.mapping, **traits.mapping_of_code}
  return dataclasses.replace(examples, given=noise.corrupt(
      examples.true, run.noise, run.seed, examples.ids,
      num_classes=num_classes, mapping=mapping, mode=options.noise_mode,
      human_labels=examples.label_sets))


def build_model(
    run: runs.Run, method: methods.Method, input_shape: tuple[int, ...],
    num_classes: int, seed: int | None = None) -> keras.Model:
  """The network of a run with its initial weights, a function of the seed.

  Args:
    run: the run.
    method: its method.
    input_shape: of an example.
    num_classes: K.
    seed: another one than that of the run, for another network.
  """
  seed = run.seed if seed is None else seed
  with _dtype_policy('mixed_bfloat16' if run.mixed_precision else 'float32'):
    return models.build(
        run.model, input_shape, method.head(num_classes), seed=seed,
        **dict(run.model_arguments))


def build_optimizer(
    run: runs.Run, model: keras.Model,
    name: str = 'optimizer') -> keras.optimizers.Optimizer:
  """The optimiser of a run, with its variables."""
  # Its variables are kept by name; Keras's own would count the optimisers.
  settings = dict(learning_rate=run.learning_rate, name=name)
  if run.optimizer == 'adam':
    optimizer = keras.optimizers.Adam(**settings)
  elif run.optimizer == 'sgd':
    optimizer = keras.optimizers.SGD(momentum=.9, nesterov=True, **settings)
  else:
    optimizer = keras.optimizers.SGD(**settings)
  optimizer.build(model.trainable_variables)
  return optimizer


def load_model(
    run: runs.Run | results.Result, output_dir: Path) -> keras.Model:
  """The network of a finished run, with the weights kept beside its result.

  Args:
    run: the run or its result.
    output_dir: that of `train(..., keep_weights=True)`.

  Returns:
    A Keras model: inputs as `data.Batches` prepares them -> outputs of the
    method's head.
  """
  result = run
  if isinstance(run, runs.Run):
    result = results.read(results.path(output_dir, run.key))
  weights = store.read_weights(result, output_dir)
  run = runs.Run.from_dict(result.run)
  model = build_model(
      run, run.resolve_method(), tuple(result.input_shape), result.num_classes)
  named = by_path(model.variables, 'model/')
  if 'model/0000' in weights:  # as they were kept before they had names
    weights = dict(zip(named, (weights[name] for name in sorted(weights))))
  for name, variable in named.items():
    variable.assign(weights[name])
  return model


def by_path(
    variables: Sequence[keras.Variable],
    prefix: str = '') -> dict[str, keras.Variable]:
  """Variables by the names under which they are kept."""
  named = {f'{prefix}{variable.path}': variable for variable in variables}
  if len(named) < len(variables):
    raise ValueError(
        'The layers of a network must have names that differ. Received: '
        f'{sorted(variable.path for variable in variables)}.')
  return named


@contextlib.contextmanager
def _dtype_policy(name: str) -> Iterator[None]:
  """Layers made inside compute with this policy; the global one comes back.

  bfloat16 has the range of float32 and needs no scaling of the loss.
  """
  before = keras.config.dtype_policy()
  keras.config.set_dtype_policy(name)
  try:
    yield
  finally:
    keras.config.set_dtype_policy(before)

"""A run: every setting that decides what comes out of a training."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import functools
import hashlib
import json
import re
from typing import Any

from etils import epy

from experiments import data
from experiments import methods
from experiments import models
from experiments.paper import protocols

with epy.lazy_imports():  # flags are parsed before TensorFlow is imported
  from ln_tfp import checks

OPTIMIZERS = ('adam', 'sgd', 'gd')
STOPS = ('none', 'label_wave')

Pairs = tuple[tuple[str, Any], ...]

_NO_WORD = re.compile(r'[^\w.]+')
_encode = json.JSONEncoder(sort_keys=True, separators=(',', ':')).encode


@dataclasses.dataclass(frozen=True)
class Run:
  """One training; the defaults are the recipe of the digits data set.

  Equal runs have equal keys, however they were written: hyperparameters,
  options and model arguments are stored as sorted pairs, and those at their
  default are left out.

  Attributes:
    dataset: name of the data set.
    method: name of the method, see `methods.NAMES`.
    hyperparameters: the method's, as a mapping or as pairs.
    noise: 'none', 'sym:RATE', 'asym:RATE' or 'human:NAME'.
    seed: of initialisation, order, augmentation, synthetic noise and the
      method's own randomness.
    model: name of the network, see `models.NAMES`.
    model_arguments: of the network, as a mapping or as pairs.
    optimizer: 'adam', 'sgd' (Nesterov momentum 0.9) or 'gd' (no momentum).
    learning_rate: constant, unless an option of the protocol lowers it.
    weight_decay: w adds w/2 * sum(p^2) over all that is trainable.
    batch_size: of all devices together; None takes all examples.
    per_class: an epoch is a subset with as many examples of each class,
      redrawn each time; None takes all examples (Clothing1M: 18976).
    epochs: number of passes over the training set.
    jit: compile the step with XLA; one replica only.
    mixed_precision: compute in bfloat16, with weights in float32.
    protocol: 'paper' or 'authors', see `protocols`.
    options: single options of the protocol, as a mapping or as pairs.
    stop: 'none', or the rule that chooses an epoch without clean labels, whose
      metrics the result has beside those of the last one: 'label_wave', see
      `ln_tfp.LabelWave`. The run goes on to its last epoch.
  """
  dataset: str = 'digits'
  method: str = 'LN'
  hyperparameters: Mapping[str, Any] | Pairs = ()
  noise: str = 'none'
  seed: int = 0
  model: str = 'mlp'
  model_arguments: Mapping[str, Any] | Pairs = ()
  optimizer: str = 'adam'
  learning_rate: float = 1e-3
  weight_decay: float = 0.
  batch_size: int | None = 64
  per_class: int | None = None
  epochs: int = 100
  jit: bool = False
  mixed_precision: bool = False
  protocol: str = 'paper'
  options: Mapping[str, Any] | Pairs = ()
  stop: str = 'none'

  def __post_init__(self):
    for name, check in _checks().items():
      self._store(name, check(name, getattr(self, name)))
    for name in ('hyperparameters', 'model_arguments', 'options'):
      self._store(name, tuple(
          (key, _plain(value)) for key, value in dict(
              getattr(self, name)).items()))
    self._store('hyperparameters', _hyperparameters(
        self.method, self.hyperparameters))
    self._store('options', _options(
        self.protocol, self.dataset, self.options))
    self._store('model_arguments', _model_arguments(
        self.model, self.model_arguments))

  def _store(self, name: str, value: Any) -> None:
    object.__setattr__(self, name, value)

  @functools.cached_property
  def key(self) -> str:
    """A readable prefix and a hash of all that is not at its default.

    Leaving the defaults out keeps old keys when a setting is added later.
    """
    document = {
        name: value for name, default in _defaults(type(self))
        if (value := getattr(self, name)) != default}
    digest = hashlib.sha256(_encode(document).encode()).hexdigest()[:12]
    words = (self.dataset, self.noise, self.method, f'seed{self.seed}', digest)
    return '-'.join(_NO_WORD.sub('', word) for word in words)

  def resolve_options(self) -> protocols.Options:
    """All options of the protocol, with the run's own ones."""
    return protocols.options(self.protocol, self.dataset, dict(self.options))

  def resolve_method(self) -> methods.Method:
    """The method with its hyperparameters and those of the protocol."""
    given = dict(self.hyperparameters)
    method, options = methods.get(self.method, **given), self.resolve_options()
    return dataclasses.replace(method, **{
        name: getattr(options, name) for name in method.protocol_options
        if name not in given and getattr(options, name) is not None})

  def resolve_weight_decay(self) -> float:
    """The weight decay, the protocol's where that has one."""
    option = self.resolve_options().weight_decay
    return self.weight_decay if option is None else option

  def prerequisites(self) -> tuple[Run, ...]:
    """Runs whose results this one needs, such as Forward its CE run."""
    needed = self.resolve_method().requires()
    if needed is None:
      return ()
    return (dataclasses.replace(
        self, method=needed.name, hyperparameters=needed.hyperparameters()),)

  def to_dict(self) -> dict[str, Any]:
    """All settings as JSON-able values."""
    document = dataclasses.asdict(self)
    for name in ('hyperparameters', 'model_arguments', 'options'):
      document[name] = {key: _listed(value) for key, value in document[name]}
    return document

  @classmethod
  def from_dict(cls, document: Mapping[str, Any]) -> Run:
    """The inverse of `to_dict`."""
    return cls(**document)


@functools.cache
def _defaults(of: type[Run]) -> tuple[tuple[str, Any], ...]:
  return tuple((field.name, field.default) for field in dataclasses.fields(of))


def _remembered(function: Callable[..., Any]) -> Callable[..., Any]:
  """Thousands of runs differ in little but their seed."""
  known = {}

  @functools.wraps(function)
  def look_up(*arguments):
    text = repr(arguments)  # 1, 1. and True are equal, and not the same
    if text not in known:
      known[text] = function(*arguments)
    return known[text]

  return look_up


@_remembered
def _hyperparameters(method: str, pairs: Pairs) -> Pairs:
  default = methods.get(method).hyperparameters()
  values = methods.get(method, **dict(pairs)).hyperparameters()
  for name, _ in pairs:
    if name not in values:
      raise ValueError(
          f'Argument `hyperparameters` has no place for {name!r}: a run of '
          f'{method} finds it by itself.')
  return _differences(values, default)


@_remembered
def _options(protocol: str, dataset: str, pairs: Pairs) -> Pairs:
  options, default = (
      dataclasses.asdict(protocols.options(protocol, dataset, changes))
      for changes in (dict(pairs), {}))
  return _differences(options, default)


@_remembered
def _model_arguments(model: str, pairs: Pairs) -> Pairs:
  return _differences(dict(pairs), models.arguments(model, dict(pairs)))


@functools.cache
def _checks() -> dict[str, Callable[[str, Any], Any]]:
  """Of each setting: refuses what no data set could make right.

  They return the value in its canonical type.
  """
  whole = lambda minimum: lambda name, value: checks.whole(
      name, value, minimum)
  optional = lambda name, value: (
      None if value is None else checks.whole(name, value, 1))
  switch = lambda name, value: bool(value)
  return {
      'noise': _check_noise,
      'seed': whole(0),
      'optimizer': lambda name, value: checks.one_of(name, value, OPTIMIZERS),
      'learning_rate': checks.positive,
      'weight_decay': checks.not_negative,
      'batch_size': optional,
      'per_class': optional,
      'epochs': whole(1),
      'jit': switch,
      'mixed_precision': switch,
      'stop': lambda name, value: checks.one_of(name, value, STOPS),
  }


@_remembered
def _check_noise(name: str, value: str) -> str:
  noise = data.parse_noise(value)
  if noise.kind == 'matrix':
    raise ValueError(
        f"Argument `{name}` must not be 'matrix': a run has no place for the "
        'matrix. Corrupt the labels of the source instead.')
  return str(noise)


def _plain(value: Any) -> Any:
  """A value of Python where it is one of NumPy."""
  if isinstance(value, (list, tuple)):
    return type(value)(map(_plain, value))
  return value.tolist() if hasattr(value, 'tolist') else value


def _differences(
    values: Mapping[str, Any], default: Mapping[str, Any]) -> Pairs:
  """What differs from the default, in the default's type, sorted by name."""
  typed = {name: _as(default[name], value) for name, value in values.items()}
  return tuple(sorted(
      (name, value) for name, value in typed.items()
      if value != _as(default[name], default[name])))


def _as(default: Any, value: Any) -> Any:
  """A value in the type of the default: 1 and 1. are the same run.

  Lists, as they come from JSON, become tuples, which can be hashed.
  """
  if isinstance(value, (list, tuple)):
    first = default[0] if isinstance(default, (list, tuple)) else default
    return tuple(_as(first, item) for item in value)
  for kind in (float, int):
    if type(default) is kind and type(value) in (float, int):
      return kind(value) if kind(value) == value else value
  return value


def _listed(value: Any) -> Any:
  if isinstance(value, tuple):
    return [_listed(item) for item in value]
  return value

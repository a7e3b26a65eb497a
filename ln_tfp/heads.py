"""The heads, and the packed tensors that they and the losses speak."""

from __future__ import annotations

import typing
from typing import Any

import keras
from keras import ops
import numpy as np

from ln_tfp import backend
from ln_tfp import checks
from ln_tfp import labels as labels_lib

if typing.TYPE_CHECKING:
  from ln_tfp import logistic_normal

Tensor = labels_lib.Tensor
COVARIANCES = ('identity', 'isotropic', 'diagonal', 'full')
_MIN_SIGMA = 1e-3
# In the first half of a warm-up: lambda over the temperature, and by how much
# the gradient of the mean is multiplied.
_BEGIN, _PULL = 8., 4.


class _Head(keras.layers.Layer):
  """Linear maps of features, in float32 whatever the policy.

  The likelihoods need the range and the precision: squares of float16 overflow
  soon. float64 stays float64. A plain softmax classifier gets the same
  from `keras.layers.Dense(10, dtype='float32')`.
  """

  def __init__(self, num_classes, use_bias, kernel_initializer,
               bias_initializer, kernel_regularizer, bias_regularizer,
               kernel_constraint, bias_constraint, dtype, **kwargs):
    policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
    super().__init__(
        dtype='float64' if policy.compute_dtype == 'float64' else 'float32',
        **kwargs)
    self.num_classes = checks.whole('num_classes', num_classes, 2)
    self.use_bias = use_bias
    self.kernel_initializer = keras.initializers.get(kernel_initializer)
    self.bias_initializer = keras.initializers.get(bias_initializer)
    self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
    self.bias_regularizer = keras.regularizers.get(bias_regularizer)
    self.kernel_constraint = keras.constraints.get(kernel_constraint)
    self.bias_constraint = keras.constraints.get(bias_constraint)
    self.supports_masking = True
    self.loc = self.scale = self.factor = None  # the maps
    self._last_initializer = None

  def _make_map(self, name, units):
    """Returns a new linear map, whose kernel begins unlike the others'."""
    self._last_initializer = (
        self.kernel_initializer if self._last_initializer is None
        else _another(self._last_initializer))
    return keras.layers.Dense(
        units,
        use_bias=self.use_bias,
        kernel_initializer=self._last_initializer,
        bias_initializer=self.bias_initializer,
        kernel_regularizer=self.kernel_regularizer,
        bias_regularizer=self.bias_regularizer,
        kernel_constraint=self.kernel_constraint,
        bias_constraint=self.bias_constraint,
        dtype=self.dtype_policy,
        name=name)

  def build(self, input_shape):
    if not len(input_shape):
      raise ValueError('A head must be given features of shape [..., F]. '
                       f'Received: inputs of shape {tuple(input_shape)}.')
    for dense in (self.loc, self.scale, self.factor):
      if dense is not None:
        dense.build(input_shape)
    super().build(input_shape)

  def get_config(self):
    return {
        **super().get_config(),
        'num_classes': self.num_classes,
        'use_bias': self.use_bias,
        'kernel_initializer': keras.initializers.serialize(
            self.kernel_initializer),
        'bias_initializer': keras.initializers.serialize(
            self.bias_initializer),
        'kernel_regularizer': keras.regularizers.serialize(
            self.kernel_regularizer),
        'bias_regularizer': keras.regularizers.serialize(
            self.bias_regularizer),
        'kernel_constraint': keras.constraints.serialize(
            self.kernel_constraint),
        'bias_constraint': keras.constraints.serialize(self.bias_constraint),
    }


@keras.saving.register_keras_serializable(package='ln_tfp')
class LogisticNormalHead(_Head):
  """Maps features to the parameters of a Logistic-Normal distribution.

  Two linear maps of the features give the mean `mu` and `c`; with
  `lambda = min_scale` the scale of the noise is

  | covariance    | scale `S`                        | outputs for `c` |
  |---------------|----------------------------------|-----------------|
  | `'identity'`  | `I`                              | none            |
  | `'isotropic'` | `(lambda + c^2) I`               | 1               |
  | `'diagonal'`  | `diag(lambda + c_k^2)`           | D               |
  | `'full'`      | `lambda I + sum_r c_r c_r^T`     | D x rank        |

  `'full'` is the paper's Eq. 9 (at `rank=1`); the other three are those of its
  ablation. D is `num_classes`, or one less without the dummy class.

  The output is one tensor `[..., 2 + R, D]` with the temperature folded in:
  `[..., 0, :]` is `mu / tau`, `[..., 1, :]` the diagonal of the scale over
  `tau`, `[..., 2:, :]` the columns of the factor over `sqrt(tau)` (`R = rank`
  for `'full'`, otherwise 0). The losses, the metrics, `probabilities` and
  `to_distribution` read it and need no hyperparameter of the head but the
  number of classes, and that only where there is no dummy class. `loss` and
  `metrics` know it.

  The covariance of a network that knows nothing yet takes whatever is rare for
  a mistake. Therefore the head warms up. In the first half of `warm_up` steps
  of training `c` is zero, and the loss a squared error in logit space (with
  four times its gradient, which matters to SGD). In the second half `c` is
  learnt, too, and lambda descends from 8 temperatures, which is beyond any
  residual, to `min_scale`. Called with `training=False` the head is always as
  in the table.

  The head computes in float32 whatever the policy, from features of the
  policy's precision; float64 stays float64.

  ```python
  head = ln_tfp.LogisticNormalHead(10)
  model = keras.Sequential([backbone, head])
  model.compile('adam', loss=head.loss(), metrics=head.metrics())
  ```

  Args:
    num_classes: Number of classes K, at least 2.
    covariance: One of `'identity'`, `'isotropic'`, `'diagonal'`, `'full'`.
    rank: Number of columns of the factor, for `'full'`.
    temperature: `tau`. Small values move the targets towards the origin and
      make them easy to fit; large ones make examples easier to disbelieve.
    min_scale: `lambda`, the smallest scale and the residual above which the
      loss is attenuated (the paper's Section 3.1).
    dummy_class: Whether to add the class that gives all K classes targets of
      equal norm (Section 3.2). Without it the loss and the metrics need
      `num_classes=`: take `head.loss()` and `head.metrics()`.
    kernel_initializer: Initialiser of both kernels. It must not be zero: a
      factor of zero is a stationary point of the loss.
    kernel_regularizer: Regulariser of both kernels.
    bias_regularizer: Regulariser of both biases.
    use_bias: Whether the two maps have biases.
    bias_initializer: Initialiser of both biases.
    kernel_constraint: Constraint of both kernels.
    bias_constraint: Constraint of both biases.
    dtype: As of every Keras layer; half precision counts as float32.
    warm_up: Number of training steps before the head is as in the table; 0 is
      the paper's recipe. The steps that were made are saved with the weights.
    **kwargs: Passed on to `keras.layers.Layer`.
  """

  def __init__(self,
               num_classes: int,
               covariance: str = 'full',
               rank: int = 1,
               temperature: float = .5,
               min_scale: float = .5,
               dummy_class: bool = True,
               kernel_initializer: Any = 'glorot_uniform',
               kernel_regularizer: Any = None,
               bias_regularizer: Any = None,
               use_bias: bool = True,
               bias_initializer: Any = 'zeros',
               kernel_constraint: Any = None,
               bias_constraint: Any = None,
               dtype: Any = None,
               warm_up: int = 300,
               **kwargs):
    super().__init__(
        num_classes, use_bias, kernel_initializer, bias_initializer,
        kernel_regularizer, bias_regularizer, kernel_constraint,
        bias_constraint, dtype, **kwargs)
    if isinstance(self.kernel_initializer, keras.initializers.Zeros):
      raise ValueError(
          'Argument `kernel_initializer` must not be zero: the covariance '
          'would never be learnt. Received: '
          f'kernel_initializer={kernel_initializer!r}.')
    self.covariance = checks.one_of('covariance', covariance, COVARIANCES)
    self.rank = checks.whole('rank', rank, 1)
    self.temperature = checks.positive('temperature', temperature)
    self.min_scale = checks.positive('min_scale', min_scale)
    self.dummy_class = bool(dummy_class)
    self.dims = self.num_classes if dummy_class else self.num_classes - 1
    if covariance == 'full' and self.rank > self.dims:
      raise ValueError('Argument `rank` must not exceed the dimension of the '
                       f'logits, {self.dims}. Received: rank={rank}.')
    outputs = {'identity': 0, 'isotropic': 1, 'diagonal': self.dims,
               'full': self.dims * self.rank}[covariance]
    self.loc = self._make_map('loc', self.dims)
    if outputs:
      self.scale = self._make_map('scale', outputs)
    self.warm_up = checks.whole('warm_up', warm_up, 0)
    self._steps = _Steps() if self.warm_up and outputs else None

  def call(self, inputs, training=None):
    loc = self.loc(inputs)
    raw = None if self.scale is None else self.scale(inputs)
    min_scale = self.min_scale
    if training and self._steps is not None:
      loc, raw, min_scale = self._warming(loc, raw)
    columns = []
    if self.covariance == 'identity':
      diag = ops.ones_like(loc)
    elif self.covariance == 'full':
      diag = ops.full_like(loc, min_scale)
      columns = ops.split(raw, self.rank, axis=-1) if self.rank > 1 else [raw]
    else:
      diag = (min_scale + ops.square(raw)) * ops.ones_like(loc)
    return pack(loc, diag, *columns, temperature=self.temperature)

  def _warming(self, loc, raw):
    """Returns mean, `c` and lambda at a step of training, which it counts."""
    done = ops.cast(self._steps.next(), raw.dtype) / self.warm_up
    begin = max(_BEGIN * self.temperature / self.min_scale, 1.)
    descent = ops.power(begin, ops.clip(2. - 2. * done, 0., 1.))
    late = ops.cast(done >= .5, raw.dtype)
    # The pull on the mean, r / lambda^2, is weak while lambda is so large. Adam
    # divides that out, SGD does not: it would begin late.
    pull = late + (1. - late) * min(_PULL, begin)
    loc = pull * loc - ops.stop_gradient((pull - 1.) * loc)
    return loc, raw * late, self.min_scale * descent

  def compute_output_shape(self, input_shape):
    factors = self.rank if self.covariance == 'full' else 0
    return tuple(input_shape[:-1]) + (2 + factors, self.dims)

  def end_warm_up(self) -> None:
    """From now on `c` is learnt, however many steps there were."""
    if self._steps is not None:
      self._steps.state.assign(self.warm_up)

  def save_own_variables(self, store):
    if self._steps is not None:
      store['steps'] = self._steps.state

  def load_own_variables(self, store):
    if 'steps' not in list(store.keys()):  # a head without a warm-up
      self.end_warm_up()
    elif self._steps is not None:
      self._steps.state.assign(store['steps'])

  def loss(self, label_smoothing: float = .01,
           ignore_class: int | None = None) -> keras.losses.Loss:
    """Returns the `NegativeLogLikelihood` of this head's outputs.

    It refuses those of a head of another number of classes.
    """
    from ln_tfp import losses  # which read what this module packs
    return losses.NegativeLogLikelihood(
        label_smoothing, self.num_classes, ignore_class=ignore_class)

  @property
  def metrics(self):
    """`head.metrics()` returns new metrics of this head's outputs.

    They are `Accuracy`, `PredictiveNLL` and `ExpectedCalibrationError`; the
    argument `ignore_class` is passed on to them. As an attribute it is, as of
    every Keras layer, the list of metrics that the layer keeps, of which there
    are none.
    """
    return _Metrics(super().metrics, self.num_classes)

  def softmax_weights(self) -> list[Any]:
    """Returns weights of a `Dense` layer whose softmax is the prediction."""
    weights = [w / self.temperature for w in self.loc.get_weights()]
    if not self.dummy_class:  # the last logit is zero
      weights = [np.pad(w, [[0, 0]] * (w.ndim - 1) + [[0, 1]]) for w in weights]
    return weights

  def get_config(self):
    return {
        **super().get_config(),
        'covariance': self.covariance,
        'rank': self.rank,
        'temperature': self.temperature,
        'min_scale': self.min_scale,
        'dummy_class': self.dummy_class,
        'warm_up': self.warm_up,
    }

  @classmethod
  def from_config(cls, config):
    # Those that were saved before there was a warm-up have none.
    return super().from_config({'warm_up': 0, **config})


class _Steps(keras.random.SeedGenerator):
  """Counts steps.

  A layer's seeds are part of its state, on every backend, but none of its
  weights: those of the head remain two kernels and two biases.
  """

  def __init__(self):
    super().__init__(0)
    self.state = keras.Variable(
        0, dtype='int', trainable=False, aggregation='only_first_replica',
        name='steps')

  def next(self, ordered=True):
    del ordered
    steps = ops.copy(self.state)
    self.state.assign_add(1)
    return steps


class _Metrics(list):
  """A layer's list of metrics that makes new ones when called."""

  def __init__(self, own, num_classes):
    super().__init__(own)
    self._num_classes = num_classes

  def __call__(self, ignore_class: int | None = None):
    from ln_tfp import metrics  # which read what this module packs
    return [kind(num_classes=self._num_classes, ignore_class=ignore_class)
            for kind in (metrics.Accuracy, metrics.PredictiveNLL,
                         metrics.ExpectedCalibrationError)]


@keras.saving.register_keras_serializable(package='ln_tfp')
class HeteroscedasticHead(_Head):
  """Maps features to a normal distribution over K logits.

  The output is one tensor `[..., K, 2 + rank]`: `[..., 0]` is the mean mu,
  `[..., 1]` the standard deviations `softplus(.) + 0.001`, and `[..., 2:]` the
  columns of V; the covariance is `diag(sigma^2) + V V^T`. It goes with
  `ln_tfp.losses.HeteroscedasticNLL`.

  The head computes in float32 whatever the policy, from features of the
  policy's precision; float64 stays float64.

  Args:
    num_classes: K, at least 2.
    rank: Number of columns of V, at most K.
    kernel_regularizer: Regulariser of all kernels.
    bias_regularizer: Regulariser of all biases.
    use_bias: Whether the maps have biases.
    kernel_initializer: Initialiser of all kernels.
    bias_initializer: Initialiser of all biases.
    kernel_constraint: Constraint of all kernels.
    bias_constraint: Constraint of all biases.
    dtype: As of every Keras layer; half precision counts as float32.
    **kwargs: Passed on to `keras.layers.Layer`.
  """

  def __init__(self,
               num_classes: int,
               rank: int = 0,
               kernel_regularizer: Any = None,
               bias_regularizer: Any = None,
               use_bias: bool = True,
               kernel_initializer: Any = 'glorot_uniform',
               bias_initializer: Any = 'zeros',
               kernel_constraint: Any = None,
               bias_constraint: Any = None,
               dtype: Any = None,
               **kwargs):
    super().__init__(
        num_classes, use_bias, kernel_initializer, bias_initializer,
        kernel_regularizer, bias_regularizer, kernel_constraint,
        bias_constraint, dtype, **kwargs)
    self.rank = checks.whole('rank', rank, 0)
    if self.rank > self.num_classes:
      raise ValueError(
          'Argument `rank` must not exceed the number of classes, '
          f'{num_classes}. Received: rank={rank}.')
    self.loc = self._make_map('loc', self.num_classes)
    self.scale = self._make_map('scale', self.num_classes)
    if self.rank:
      self.factor = self._make_map('factor', self.num_classes * self.rank)

  def call(self, inputs):
    sigma = ops.softplus(self.scale(inputs)) + _MIN_SIGMA
    columns = [self.loc(inputs), sigma]
    if self.rank:
      columns += ops.split(self.factor(inputs), self.rank, axis=-1)
    return ops.stack(columns, axis=-1)

  def compute_output_shape(self, input_shape):
    return (*input_shape[:-1], self.num_classes, 2 + self.rank)

  def get_config(self):
    return {**super().get_config(), 'rank': self.rank}


def pack(loc: Tensor, diag: Tensor, *columns: Tensor,
         temperature: float = 1.) -> Tensor:
  """Packs parameters into one tensor `[..., 2 + R, D]`, folding `tau` in.

  Args:
    loc: `[..., D]`.
    diag: `[..., D]`, the diagonal of the scale.
    *columns: of the factor, `[..., D]` each.
    temperature: LN(mu, S; tau) is the same law as LN(mu / tau, S / tau; 1).
  """
  return ops.stack(
      [loc / temperature, diag / temperature,
       *(column / temperature**.5 for column in columns)], axis=-2)


def rows(y_pred: Tensor) -> list[Tensor]:
  """Returns loc, diagonal and the factor's columns, `[..., D]` each.

  All are at temperature 1, see `pack`.
  """
  return ops.unstack(check_packed(y_pred), axis=-2)


def check_packed(y_pred: Tensor) -> Tensor:
  """Returns `y_pred` as a tensor, or raises if it cannot be a packed one."""
  return _check(y_pred, -2, 'a LogisticNormalHead, of shape [..., 2 + R, D] '
                'with R <= D, or a distribution')


def check_heteroscedastic(y_pred: Tensor) -> Tensor:
  """Returns `y_pred` as a tensor, or raises if it is of another head."""
  return _check(y_pred, -1, 'a HeteroscedasticHead, of shape '
                '[..., K, 2 + R] with R <= K')


def _check(y_pred, axis, expected):
  """Checks a tensor that has 2 + R parameters along `axis`, -2 or -1."""
  y_pred = ops.convert_to_tensor(y_pred)
  shape = tuple(y_pred.shape)
  if (len(shape) < 2 or None in shape[-2:]
      or not 2 <= shape[axis] <= 2 + shape[-3 - axis]):
    raise ValueError(
        f'Argument `y_pred` must be the output of {expected}. '
        f'Received: a tensor of shape {shape}.')
  if not keras.backend.is_float_dtype(y_pred.dtype):
    raise ValueError('Argument `y_pred` must be floating. Received: '
                     f'dtype={keras.backend.standardize_dtype(y_pred.dtype)}.')
  return y_pred


def read_labels(y_true: Tensor, y_pred: Tensor, num_classes: int | None = None,
                ignore_class: int | None = None,
                classes_only: bool = False) -> labels_lib.Labels:
  """Returns the labels that go with packed outputs `[..., 2 + R, D]`."""
  dims = y_pred.shape[-1]
  classes = dims if has_dummy_class(dims, num_classes) else dims + 1
  return labels_lib.Labels(
      y_true, y_pred.shape[:-2], classes, ignore_class, dims + 1, classes_only)


def to_distribution(y_pred: Tensor) -> logistic_normal.LogisticNormal:
  """Returns the `LogisticNormal`, at temperature 1, that `y_pred` packs.

  The temperature is folded in: residuals are the head's divided by its
  temperature, `label_term` is unchanged.
  """
  backend.check_tensorflow('`ln_tfp.to_distribution`')
  from ln_tfp import logistic_normal  # which imports all of TFP
  loc, diag, *columns = rows(y_pred)
  return logistic_normal.LogisticNormal(
      loc, diag, ops.stack(columns, axis=-1) if columns else None)


def probabilities(y_pred: Tensor, num_classes: int | None = None,
                  dummy_class: bool = False) -> Tensor:
  """Returns the predicted probabilities of a packed output.

  Args:
    y_pred: Packed tensor `[..., 2 + R, D]`.
    num_classes: Number of classes K; `None` means D, the head with the dummy
      class, and a head without it has `D + 1`.
    dummy_class: Whether to return all `D + 1` classes of `S_C(mu / tau)`, as in
      the paper's calibration table, instead of the K that a user asks for. It
      makes no difference for a head without the dummy class.

  Returns:
    Float tensor of shape `[..., K]` or `[..., D + 1]`.
  """
  return ops.softmax(predictive_logits(y_pred, num_classes, dummy_class))


def predictive_logits(y_pred: Tensor, num_classes: int | None = None,
                      dummy_class: bool = False) -> Tensor:
  """Returns the logits of `probabilities`."""
  loc = check_packed(y_pred)[..., 0, :]
  if dummy_class or not has_dummy_class(loc.shape[-1], num_classes):
    return ops.pad(loc, [[0, 0]] * (len(loc.shape) - 1) + [[0, 1]])
  return loc


def has_dummy_class(dims: int, num_classes: int | None) -> bool:
  """Whether D-dimensional logits are those of K classes and a dummy class."""
  if num_classes not in (None, dims, dims + 1):
    raise ValueError(
        f'Argument `num_classes` must be {dims} (a head with the dummy class) '
        f'or {dims + 1} (without) for outputs of {dims} logits. Received: '
        f'num_classes={num_classes}.')
  return num_classes != dims + 1


def check_num_classes(num_classes: int | None) -> int | None:
  """Returns a number of classes as an integer, and `None` as it is."""
  if num_classes is None:
    return None
  return checks.whole('num_classes', num_classes, 2)


def _another(initializer):
  """Returns an initialiser of the same kind that draws other numbers.

  One and the same instance repeats its numbers at every call.
  """
  if not isinstance(initializer, keras.initializers.Initializer) or isinstance(
      getattr(initializer, 'seed', None), keras.random.SeedGenerator):
    return initializer  # its generator goes on
  config = initializer.get_config()
  if isinstance(config.get('seed'), int):
    config['seed'] += 1
  return type(initializer).from_config(config)

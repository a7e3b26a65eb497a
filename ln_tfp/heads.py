"""The Logistic-Normal head, and the packed tensor it speaks."""

import numbers

import keras
import tensorflow as tf

from ln_tfp import logistic_normal

COVARIANCES = ('identity', 'isotropic', 'diagonal', 'full')


@keras.saving.register_keras_serializable(package='ln_tfp')
class LogisticNormalHead(keras.layers.Layer):
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

  The output is one float32 tensor `[..., 2 + R, D]` with the temperature folded
  in: `[..., 0, :]` is `mu / tau`, `[..., 1, :]` the diagonal of the scale over
  `tau`, `[..., 2:, :]` the columns of the factor over `sqrt(tau)` (`R = rank`
  for `'full'`, otherwise 0). The losses, the metrics, `probabilities` and
  `to_distribution` read it and need no hyperparameter of the head.

  ```python
  model = keras.Sequential([backbone, ln_tfp.LogisticNormalHead(10)])
  model.compile('adam', loss=ln_tfp.nll, metrics=[ln_tfp.Accuracy()])
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
      equal norm (Section 3.2). Without it pass `num_classes=` to the loss.
    kernel_initializer: Initialiser of both kernels. It must not be zero: a
      factor of zero is a stationary point of the loss.
    kernel_regularizer: Regulariser of both kernels.
    bias_regularizer: Regulariser of both biases.
    **kwargs: Passed on to `keras.layers.Layer`.
  """

  def __init__(self,
               num_classes,
               covariance='full',
               rank=1,
               temperature=.5,
               min_scale=.5,
               dummy_class=True,
               kernel_initializer='glorot_uniform',
               kernel_regularizer=None,
               bias_regularizer=None,
               **kwargs):
    super().__init__(**kwargs)
    num_classes = _to_whole('num_classes', num_classes, 2)
    rank = _to_whole('rank', rank, 1)
    _check_positive('temperature', temperature)
    _check_positive('min_scale', min_scale)
    if covariance not in COVARIANCES:
      raise ValueError(f'Argument `covariance` must be one of {COVARIANCES}. '
                       f'Received: covariance={covariance!r}.')
    self.num_classes = num_classes
    self.covariance = covariance
    self.rank = rank
    self.temperature = temperature
    self.min_scale = min_scale
    self.dummy_class = dummy_class
    self.dims = num_classes if dummy_class else num_classes - 1
    if covariance == 'full' and rank > self.dims:
      raise ValueError('Argument `rank` must not exceed the dimension of the '
                       f'logits, {self.dims}. Received: rank={rank}.')
    self.kernel_initializer = keras.initializers.get(kernel_initializer)
    if isinstance(self.kernel_initializer, keras.initializers.Zeros):
      raise ValueError(
          'Argument `kernel_initializer` must not be zero: the covariance '
          'would never be learnt. Received: '
          f'kernel_initializer={kernel_initializer!r}.')
    self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
    self.bias_regularizer = keras.regularizers.get(bias_regularizer)
    self.supports_masking = True
    self.loc = self._dense(self.dims, self.kernel_initializer, 'loc')
    outputs = {'identity': 0, 'isotropic': 1, 'diagonal': self.dims,
               'full': self.dims * rank}[covariance]
    self.scale = None
    if outputs:
      self.scale = self._dense(
          outputs, _another(self.kernel_initializer), 'scale')

  def _dense(self, units, initializer, name):
    return keras.layers.Dense(
        units,
        kernel_initializer=initializer,
        kernel_regularizer=self.kernel_regularizer,
        bias_regularizer=self.bias_regularizer,
        dtype=self.dtype_policy,
        name=name)

  def build(self, input_shape):
    self.loc.build(input_shape)
    if self.scale is not None:
      self.scale.build(input_shape)
    super().build(input_shape)

  def call(self, inputs):
    # float32 even under mixed precision: squares of float16 overflow soon.
    dtype = 'float64' if self.compute_dtype == 'float64' else 'float32'
    ops = keras.ops
    loc = ops.cast(self.loc(inputs), dtype)
    raw = None if self.scale is None else ops.cast(self.scale(inputs), dtype)
    columns = []
    if self.covariance == 'identity':
      diag = ops.ones_like(loc)
    elif self.covariance == 'full':
      diag = ops.full_like(loc, self.min_scale)
      columns = ops.split(raw, self.rank, axis=-1) if self.rank > 1 else [raw]
    else:
      diag = (self.min_scale + ops.square(raw)) * ops.ones_like(loc)
    return pack(loc, diag, *columns, temperature=self.temperature)

  def compute_output_shape(self, input_shape):
    factors = self.rank if self.covariance == 'full' else 0
    return tuple(input_shape[:-1]) + (2 + factors, self.dims)

  def compute_output_spec(self, inputs):
    dtype = 'float64' if self.compute_dtype == 'float64' else 'float32'
    return keras.KerasTensor(self.compute_output_shape(inputs.shape), dtype)

  def get_config(self):
    return {
        **super().get_config(),
        'num_classes': self.num_classes,
        'covariance': self.covariance,
        'rank': self.rank,
        'temperature': self.temperature,
        'min_scale': self.min_scale,
        'dummy_class': self.dummy_class,
        'kernel_initializer': keras.initializers.serialize(
            self.kernel_initializer),
        'kernel_regularizer': keras.regularizers.serialize(
            self.kernel_regularizer),
        'bias_regularizer': keras.regularizers.serialize(
            self.bias_regularizer),
    }


def pack(loc, diag, *columns, temperature=1.):
  """Packs parameters into one tensor `[..., 2 + R, D]`, folding `tau` in.

  Args:
    loc: `[..., D]`.
    diag: `[..., D]`, the diagonal of the scale.
    *columns: of the factor, `[..., D]` each.
    temperature: LN(mu, S; tau) is the same law as LN(mu / tau, S / tau; 1).
  """
  return keras.ops.stack(
      [loc / temperature, diag / temperature,
       *(column / temperature**.5 for column in columns)], axis=-2)


def rows(y_pred):
  """Returns loc, diagonal and the factor's columns, `[..., D]` each.

  All are at temperature 1, see `pack`.
  """
  return tf.unstack(check_packed(y_pred), axis=-2)


def check_packed(y_pred):
  """Returns `y_pred` as a tensor, or raises if it cannot be a packed one."""
  y_pred = tf.convert_to_tensor(y_pred)
  if (y_pred.shape.rank is None or y_pred.shape.rank < 2
      or None in y_pred.shape[-2:] or y_pred.shape[-2] < 2):
    raise ValueError(
        'Argument `y_pred` must be the output of a LogisticNormalHead, of '
        'shape [..., 2 + R, D], or a distribution. Received: a tensor of shape '
        f'{y_pred.shape}.')
  if not y_pred.dtype.is_floating:
    raise ValueError('Argument `y_pred` must be floating. Received: '
                     f'dtype={y_pred.dtype.name}.')
  return y_pred


def to_distribution(y_pred):
  """Returns the `LogisticNormal`, at temperature 1, that `y_pred` packs.

  The temperature is folded in: residuals are the head's divided by its
  temperature, `label_term` is unchanged.
  """
  loc, diag, *columns = rows(y_pred)
  return logistic_normal.LogisticNormal(
      loc, diag, tf.stack(columns, axis=-1) if columns else None)


def probabilities(y_pred, num_classes=None, dummy_class=False):
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
  return tf.nn.softmax(predictive_logits(y_pred, num_classes, dummy_class))


def predictive_logits(y_pred, num_classes=None, dummy_class=False):
  """Returns the logits of `probabilities`."""
  loc = check_packed(y_pred)[..., 0, :]
  if dummy_class or not has_dummy_class(loc.shape[-1], num_classes):
    return tf.pad(loc, [[0, 0]] * (loc.shape.rank - 1) + [[0, 1]])
  return loc


def has_dummy_class(dims, num_classes):
  """Whether D-dimensional logits are those of K classes and a dummy class."""
  if num_classes not in (None, dims, dims + 1):
    raise ValueError(
        f'Argument `num_classes` must be {dims} (a head with the dummy class) '
        f'or {dims + 1} (without) for outputs of {dims} logits. Received: '
        f'num_classes={num_classes}.')
  return num_classes != dims + 1


def _another(initializer):
  """Returns an initialiser of the same kind that draws other numbers.

  One and the same instance repeats its numbers at every call.
  """
  if not isinstance(initializer, keras.initializers.Initializer):
    return initializer
  config = initializer.get_config()
  if isinstance(config.get('seed'), int):
    config['seed'] += 1
  return type(initializer).from_config(config)


def _to_whole(name, value, minimum):
  """Returns a number, such as NumPy's, as an integer."""
  if (isinstance(value, bool) or not isinstance(value, numbers.Real)
      or int(value) != value or value < minimum):
    raise ValueError(f'Argument `{name}` must be a whole number of at least '
                     f'{minimum}. Received: {name}={value}.')
  return int(value)


def _check_positive(name, value):
  if not 0 < value < float('inf'):
    raise ValueError(f'Argument `{name}` must be positive. Received: '
                     f'{name}={value}.')

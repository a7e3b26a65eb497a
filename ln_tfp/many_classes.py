"""A Logistic-Normal head for many classes, cheaper than cross entropy.

    head = ln_tfp.ManyClassesHead(21_843)
    model = keras.Sequential([backbone, head])
    model.compile('adam', loss=head.loss())
    model.fit(images, noisy_labels)
    classes, probabilities = ln_tfp.predict_top_k(model, images, 5)
    classifier = ln_tfp.to_classifier(model)

It is `LogisticNormalHead` with its loss, but nothing of the size `[B, K]` is
ever computed: see `ln_tfp.gram`, and docs/many_classes.md for when it pays.
"""

import math
from typing import Any
import weakref

import keras
from keras import ops
import tensorflow as tf

from ln_tfp import checks
from ln_tfp import gram
from ln_tfp import heads
from ln_tfp import labels as labels_lib
from ln_tfp import top_k as top_k_lib
from ln_tfp.losses import base

Tensor = labels_lib.Tensor

# The newest head of each name. A loss is saved with its head's name; when Keras
# loads or clones a compiled model, it makes the head first and the loss next.
_newest = weakref.WeakValueDictionary()


@keras.saving.register_keras_serializable(package='ln_tfp')
class ManyClassesHead(keras.layers.Layer):
  """A `LogisticNormalHead` of rank 1 that leaves its work to the loss.

  The layer holds a table with a row for every class, the kernel and the bias of
  the mean, and another for the factor `c`. Its output is its input, the
  features `[..., D]` in float32; `model.predict` gives just that. The loss
  reads the tables itself: only `head.loss()` of this very head goes with it.
  Classes come from `ln_tfp.predict_top_k` or `ln_tfp.to_classifier`.

  The loss equals `ln_tfp.nll` of a `LogisticNormalHead` with the same weights,
  in value and gradients, up to rounding: in float32 its error is about
  `1e-6 (|y|^2 + |mu|^2) / lambda^2`, with the target `y` in logit space, which
  stays below .01 while `|mu| < 100 lambda`.

  ```python
  head = ln_tfp.ManyClassesHead(21_843)
  model = keras.Sequential([backbone, head])
  model.compile('adam', loss=head.loss(), metrics=[head.accuracy(examples=64)])
  ```

  Args:
    num_classes: Number of classes K, at least 2.
    temperature: `tau`, as of `LogisticNormalHead`.
    min_scale: `lambda`, as of `LogisticNormalHead`.
    dummy_class: As of `LogisticNormalHead`. Without it the target of the last
      class has a norm that grows with the root of K.
    tied: Whether `c` comes from the table of the mean, `c = F U x` with a
      square matrix U, instead of a table of its own. It halves the weights and
      the time.
    kernel_initializer: Initialiser of the kernels. It must not be zero: a
      factor of zero is a stationary point of the loss. Biases begin at zero.
    kernel_regularizer: Regulariser of the tables, biases included.
    dtype: As of every Keras layer; half precision counts as float32.
    **kwargs: Passed on to `keras.layers.Layer`.
  """

  def __init__(self,
               num_classes: int,
               temperature: float = .5,
               min_scale: float = .5,
               dummy_class: bool = True,
               tied: bool = False,
               kernel_initializer: Any = 'glorot_uniform',
               kernel_regularizer: Any = None,
               dtype: Any = None,
               **kwargs):
    policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
    super().__init__(
        dtype='float64' if policy.compute_dtype == 'float64' else 'float32',
        **kwargs)
    self.num_classes = checks.whole('num_classes', num_classes, 2)
    self.temperature = checks.positive('temperature', temperature)
    self.min_scale = checks.positive('min_scale', min_scale)
    self.dummy_class = bool(dummy_class)
    self.tied = bool(tied)
    self.dims = self.num_classes - (not dummy_class)
    self.kernel_initializer = keras.initializers.get(kernel_initializer)
    if isinstance(self.kernel_initializer, keras.initializers.Zeros):
      raise ValueError(
          'Argument `kernel_initializer` must not be zero: the covariance '
          'would never be learnt. Received: '
          f'kernel_initializer={kernel_initializer!r}.')
    self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
    self.supports_masking = True
    _newest[self.name] = self

  def build(self, input_shape):
    if len(input_shape) < 2 or input_shape[-1] is None:
      raise ValueError(
          'A ManyClassesHead must be given features of shape [B, ..., F] whose '
          f'F is known. Received: inputs of shape {tuple(input_shape)}.')
    self.input_spec = keras.layers.InputSpec(
        min_ndim=2, axes={-1: input_shape[-1]})
    size = input_shape[-1] + 1  # a one follows the features, for the bias
    self.loc_table = self._add_table('loc', self.kernel_initializer, size)
    another = heads._another(self.kernel_initializer)
    if self.tied:
      self.factor_table = None
      self.factor_map = self.add_weight(
          name='factor_map', shape=(size, size), initializer=another,
          regularizer=self.kernel_regularizer)
    else:
      self.factor_table = self._add_table('factor', another, size)
      self.factor_map = None

  def _add_table(self, name, initializer, size):
    """Returns a new table, `[dims, D + 1]`."""
    def initialize(shape, dtype):
      kernel = initializer((shape[1] - 1, shape[0]), dtype=dtype)
      return ops.pad(ops.transpose(kernel), [[0, 0], [0, 1]])

    return self.add_weight(
        name=name, shape=(self.dims, size), initializer=initialize,
        regularizer=self.kernel_regularizer)

  def call(self, inputs):
    # A tensor of its own: another head may be given the same features.
    outputs = ops.copy(ops.cast(inputs, self.compute_dtype))
    outputs._ln_tfp_head = weakref.ref(self)  # which `_check_features` reads
    return outputs

  def compute_output_shape(self, input_shape):
    return input_shape

  def loss(self, label_smoothing: float = .01,
           ignore_class: int | None = None) -> 'ManyClassesNLL':
    """Returns the loss of this head, and of no other."""
    return ManyClassesNLL(self, label_smoothing, ignore_class)

  def accuracy(self, examples: int | None = None,
               ignore_class: int | None = None) -> 'ManyClassesAccuracy':
    """Returns the accuracy of this head, and of no other.

    Args:
      examples: How many of each batch to look at, the first ones; `None` means
        all. It costs as much as a third of cross entropy's step on as many.
      ignore_class: Whole labels that are this number neither count nor fail.
    """
    return ManyClassesAccuracy(self, examples, ignore_class)

  def top_k(self, features: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Returns the k likeliest classes and their probabilities, `[..., k]`."""
    flat = tf.reshape(features, [-1, features.shape[-1]])
    results = top_k_lib.top_k(
        _with_one(flat) / self.temperature,
        tf.convert_to_tensor(self.loc_table), k, not self.dummy_class)
    shape = tf.concat([tf.shape(features)[:-1], [k]], axis=0)
    return tuple(tf.reshape(result, shape) for result in results)

  def softmax_weights(self) -> list[Tensor]:
    """Returns kernel and bias whose softmax is the prediction."""
    table = self.loc_table.numpy() / self.temperature
    if not self.dummy_class:  # the last logit is zero
      table = ops.convert_to_numpy(ops.pad(table, [[0, 1], [0, 0]]))
    return [table[:, :-1].T, table[:, -1]]

  def get_config(self):
    return {
        **super().get_config(),
        'num_classes': self.num_classes,
        'temperature': self.temperature,
        'min_scale': self.min_scale,
        'dummy_class': self.dummy_class,
        'tied': self.tied,
        'kernel_initializer': keras.initializers.serialize(
            self.kernel_initializer),
        'kernel_regularizer': keras.regularizers.serialize(
            self.kernel_regularizer),
    }


@keras.saving.register_keras_serializable(package='ln_tfp')
class ManyClassesNLL(base.LabelLoss):
  """`ln_tfp.nll` of a `ManyClassesHead`, from its features.

  Labels are whole, `[...]` or `[..., 1]`, or soft ones of k classes each,
  `[..., k, 2]`: `[..., 0]` are classes and `[..., 1]` their probabilities, as
  `np.stack([classes, probabilities], axis=-1)` makes them.

  Args:
    head: The `ManyClassesHead`, part of the model that is compiled.
    label_smoothing: As in `ln_tfp.nll`.
    ignore_class: Whole labels that are this number neither count nor fail.
    reduction: As of every Keras loss.
    name: As of every Keras loss.
    dtype: As of every Keras loss; `None` means the head's.
  """

  def __init__(self, head: ManyClassesHead, label_smoothing: float = .01,
               ignore_class: int | None = None,
               reduction: str | None = 'sum_over_batch_size',
               name: str = 'nll', dtype=None):
    super().__init__(ignore_class, reduction, name, dtype or head.dtype)
    self.label_smoothing = checks.between(
        'label_smoothing', label_smoothing, 0, 1, open_below=True)
    self._head = _hide(head)

  def call(self, y_true, y_pred):
    head = self._head()
    _check_features(head, y_pred)
    batch_shape = tuple(y_pred.shape[:-1])
    classes, weights, finish = _read(
        y_true, batch_shape, head.num_classes, self.ignore_class, y_pred.dtype)
    k = classes.shape[-1]
    targets = gram.target(
        tf.reshape(classes, [-1, k]), tf.reshape(weights, [-1, k]),
        head.dims + 1, self.label_smoothing)
    values = self._values(
        head, tf.reshape(y_pred, [-1, y_pred.shape[-1]]), targets)
    return finish(tf.reshape(values, tf.shape(y_pred)[:-1]))

  def _values(self, head, features, targets):
    """The losses of features `[B, D]`, `[B]`."""
    x = _with_one(features)
    z, factor_table = x, None
    if head.tied:
      z = gram.matmul(x, tf.cast(head.factor_map, x.dtype))
    else:
      factor_table = tf.cast(head.factor_table, x.dtype)
    # LN(mu, l, c; tau) is LN(mu / tau, l / tau, c / sqrt(tau); 1).
    tau = head.temperature
    energy = gram.energy(
        tf.cast(head.loc_table, x.dtype), factor_table, x / tau, z / tau**.5,
        targets, head.min_scale / tau, head.dummy_class)
    constant = .5 * head.dims * math.log(2. * math.pi)
    return energy + (targets.log_jacobian + constant)

  def arguments(self):
    return {'head': self._head().name, 'label_smoothing': self.label_smoothing}

  @classmethod
  def from_config(cls, config):
    return cls(**{**config, 'head': _find(config['head'])})


@keras.saving.register_keras_serializable(package='ln_tfp')
class ManyClassesAccuracy(keras.metrics.Mean):
  """Share of examples whose likeliest class is the label.

  Labels are as of `ManyClassesNLL`. Of soft ones the likeliest class is meant;
  a label of no class, all of whose probabilities are zero, is never met.

  Args:
    head: The `ManyClassesHead`, part of the model that is compiled.
    examples: How many of each batch to look at; `None` means all.
    ignore_class: Whole labels that are this number neither count nor fail.
    name: Name of the metric.
    dtype: Dtype of the metric.
  """

  _direction = 'up'  # where Keras looks for it

  def __init__(self, head: ManyClassesHead, examples: int | None = None,
               ignore_class: int | None = None, name: str = 'accuracy',
               dtype: Any = None):
    super().__init__(name=name, dtype=dtype)
    self.examples = (
        None if examples is None else checks.whole('examples', examples, 1))
    self.ignore_class = labels_lib.check_ignore_class(ignore_class)
    self._head = _hide(head)

  def update_state(self, y_true, y_pred, sample_weight=None):
    head = self._head()
    _check_features(head, y_pred)
    num_dims = len(y_pred.shape) - 1
    if sample_weight is not None:
      sample_weight = labels_lib.align_weights(sample_weight, num_dims)
    parts = [y_true, y_pred, sample_weight, labels_lib.mask_of(y_pred)]
    if self.examples is not None:
      parts = [part if part is None else part[:self.examples]
               for part in parts]
    y_true, features, *weights = parts
    y_true = labels_lib.without_uncounted(y_true, num_dims, *weights)
    classes, shares, finish = _read(
        y_true, tuple(features.shape[:-1]), head.num_classes,
        self.ignore_class, features.dtype)
    likeliest = tf.gather(
        classes, tf.argmax(shares, axis=-1), batch_dims=num_dims)
    share = ops.sum(shares, axis=-1)
    predicted, _ = head.top_k(features, 1)
    hits = ops.cast(ops.logical_and(
        ops.equal(predicted[..., 0], likeliest), share > 0), self.dtype)
    # Shares of what is no class are NaN, where that is no error (XLA).
    hits = finish(ops.where(
        ops.isnan(share), ops.cast(share, self.dtype), hits))
    total = ops.ones_like(hits)
    for weight in (*weights, labels_lib.mask_of(hits)):
      if weight is not None:
        total *= ops.cast(weight, self.dtype)
    super().update_state(ops.copy(hits), total)

  def get_config(self):
    return {
        'name': self.name,
        'dtype': self.dtype,
        'head': self._head().name,
        'examples': self.examples,
        'ignore_class': self.ignore_class,
    }

  @classmethod
  def from_config(cls, config):
    return cls(**{**config, 'head': _find(config['head'])})


def _with_one(features):
  return tf.concat([features, tf.ones_like(features[:, :1])], axis=-1)


def _hide(head):
  """Returns a function that returns the head.

  As an attribute of its own the head would be saved a second time, and where
  Keras comes upon it first.
  """
  if not isinstance(head, ManyClassesHead):
    raise ValueError('Argument `head` must be a ManyClassesHead. Received: '
                     f'{type(head).__name__}.')
  return lambda: head


def _find(name):
  """Returns the head that a saved loss belongs to."""
  if name not in _newest:
    raise ValueError(
        f'The ManyClassesHead {name!r} of a saved loss or metric is not there. '
        'Load the model with compile=False, and compile it with head.loss().')
  return _newest[name]


def _check_features(head, y_pred):
  maker = getattr(y_pred, '_ln_tfp_head', None)
  if maker is not None and maker() is not head:
    raise ValueError(
        'Argument `y_pred` must be the output of the ManyClassesHead whose '
        f'loss (or metric) this is, {head.name!r}. Received: that of another '
        'one; compile with the loss() of the head in this very model.')
  if not head.built or y_pred.shape[-1] != head.loc_table.shape[1] - 1:
    expected = head.loc_table.shape[1] - 1 if head.built else 'no'
    raise ValueError(
        'Argument `y_pred` must be the output of the ManyClassesHead whose '
        f'loss (or metric) this is, with {expected} features. Received: a '
        f'tensor of shape {tuple(y_pred.shape)}.')


def _read(y_true, batch_shape, num_classes, ignore_class, dtype):
  """Returns classes and weights, `[..., k]`, and what finishes the losses."""
  y_true = ops.convert_to_tensor(y_true)
  if len(y_true.shape) < len(batch_shape) + 2:
    if (len(y_true.shape) == len(batch_shape) + 1
        and y_true.shape[-1] not in (1, None)):
      raise ValueError(
          'Argument `y_true` must hold labels of shape '
          f'{list(batch_shape)}, or soft labels of k classes each, of shape '
          f'{[*batch_shape, "k", 2]}. Received: a tensor of shape '
          f'{tuple(y_true.shape)}.')
    labels = labels_lib.Labels(y_true, batch_shape, num_classes, ignore_class)
    classes = labels.classes()[..., None]
    return classes, ops.ones_like(classes, dtype=dtype), labels.finish
  k = y_true.shape[-2]
  weights = labels_lib.Labels(y_true[..., 1], batch_shape, k)
  classes = labels_lib.Labels(y_true[..., 0], (*batch_shape, k), num_classes)
  return (classes.classes(),
          _merge(classes.classes(),
                 classes.finish(weights.distribution(dtype))), weights.finish)


def _merge(classes, weights):
  """Gives the sum of the weights of equal classes to the first of them."""
  same = tf.cast(tf.equal(classes[..., tf.newaxis],
                          classes[..., tf.newaxis, :]), weights.dtype)
  earlier = tf.reduce_sum(tf.linalg.band_part(same, -1, 0), axis=-1) - 1.
  return tf.where(earlier > 0., tf.zeros([], weights.dtype),
                  tf.linalg.matvec(same, weights))

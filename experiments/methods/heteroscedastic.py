"""The head of the heteroscedastic methods."""

import keras

from experiments.methods import base

_MIN_SIGMA = 1e-3


@keras.saving.register_keras_serializable(package='ln_tfp')
class HeteroscedasticHead(keras.layers.Layer):
  """Maps features to a normal distribution over K logits.

  The output is one tensor `[..., 2 + rank, K]`: `[..., 0, :]` is the mean mu,
  `[..., 1, :]` the standard deviations `softplus(.) + 0.001`, and
  `[..., 2:, :]` the columns of V; the covariance is
  `diag(sigma^2) + V V^T`.

  Args:
    num_classes: K, at least 2.
    rank: Number of columns of V, at most K.
    kernel_regularizer: Regulariser of all kernels.
    bias_regularizer: Regulariser of all biases.
    dtype: float32 whatever the policy, since the losses need it.
    **kwargs: Passed on to `keras.layers.Layer`.
  """

  def __init__(self, num_classes, rank=0, kernel_regularizer=None,
               bias_regularizer=None, dtype='float32', **kwargs):
    super().__init__(dtype=dtype, **kwargs)
    base.check_whole('num_classes', num_classes, 2)
    base.check_whole('rank', rank, 0)
    if rank > num_classes:
      raise ValueError(
          'Argument `rank` must not exceed the number of classes, '
          f'{num_classes}. Received: rank={rank}.')
    self.num_classes = num_classes
    self.rank = rank
    self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
    self.bias_regularizer = keras.regularizers.get(bias_regularizer)
    self.loc = self._dense(num_classes, 'loc')
    self.scale = self._dense(num_classes, 'scale')
    self.factor = self._dense(num_classes * rank, 'factor') if rank else None

  def _dense(self, units, name):
    return keras.layers.Dense(
        units, kernel_regularizer=self.kernel_regularizer,
        bias_regularizer=self.bias_regularizer, dtype=self.dtype_policy,
        name=name)

  def build(self, input_shape):
    for layer in (self.loc, self.scale, self.factor):
      if layer is not None:
        layer.build(input_shape)
    super().build(input_shape)

  def call(self, inputs):
    ops = keras.ops
    sigma = ops.softplus(self.scale(inputs)) + _MIN_SIGMA
    rows = ops.stack([self.loc(inputs), sigma], axis=-2)
    if self.factor is None:
      return rows
    factor = self.factor(inputs)
    factor = ops.reshape(
        factor, ops.shape(factor)[:-1] + (self.rank, self.num_classes))
    return ops.concatenate([rows, factor], axis=-2)

  def compute_output_shape(self, input_shape):
    return (*input_shape[:-1], 2 + self.rank, self.num_classes)

  def get_config(self):
    serialize = keras.regularizers.serialize
    return {
        **super().get_config(),
        'num_classes': self.num_classes,
        'rank': self.rank,
        'kernel_regularizer': serialize(self.kernel_regularizer),
        'bias_regularizer': serialize(self.bias_regularizer),
    }

"""Any method's loss for Keras's own `compile` and `fit`."""

import keras
import tensorflow as tf

from experiments.methods import registry


@keras.saving.register_keras_serializable(package='ln_tfp', name='MethodLoss')
class Loss(keras.losses.Loss):
  """The loss of a method as a Keras loss, to go with the method's head.

      method = methods.get('Het', samples=1000)
      model = keras.Sequential([backbone, method.head(10)])
      model.compile('adam', loss=methods.Loss('Het', samples=1000))

  Args:
    method: Name of the method.
    num_classes: K; None means the last dimension of the outputs, which is
      right for all but LN without its dummy class.
    seed: Of the random methods, NAN and the heteroscedastic ones. Their state
      is a `keras.random.SeedGenerator`, so that each batch has its own noise;
      Keras does not save it with the model.
    name: Name of the loss.
    reduction: As of every Keras loss.
    dtype: As of every Keras loss.
    **hyperparameters: Of the method.
  """

  def __init__(self, method, num_classes=None, seed=0, name=None,
               reduction='sum_over_batch_size', dtype=None,
               **hyperparameters):
    self._method = registry.get(method, **hyperparameters)
    super().__init__(
        name=name or self._method.name, reduction=reduction, dtype=dtype)
    self._num_classes = num_classes
    self._seed = seed
    self._hyperparameters = {
        key: getattr(self._method, key) for key in hyperparameters}
    self._generator = (
        keras.random.SeedGenerator(seed) if self._method.is_random else None)

  def call(self, y_true, y_pred):
    # Keras may give the labels as floats and with an axis of size one.
    labels = tf.cast(tf.reshape(y_true, [-1]), tf.int32)
    seed, step = 0, 0
    if self._generator is not None:
      seed, step = tf.unstack(tf.cast(self._generator.next(), tf.int64))
    return self._method.loss(
        labels, y_pred, num_classes=self._num_classes or y_pred.shape[-1],
        seed=seed, step=step, ids=tf.range(tf.shape(labels)[0]))

  def get_config(self):
    return {
        **super().get_config(),
        'method': self._method.name,
        'num_classes': self._num_classes,
        'seed': self._seed,
        **self._hyperparameters,
    }

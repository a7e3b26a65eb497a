"""SGN in Keras's own `fit`: a model around a model."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from ln_tfp import backend
from ln_tfp import checks
from ln_tfp import heads
from ln_tfp import losses


@keras.saving.register_keras_serializable(package='ln_tfp')
class ShiftedGaussianNoise(keras.Model):
  """Trains a model with a Logistic-Normal head by SGN.

      model = keras.Sequential([backbone, ln_tfp.LogisticNormalHead(
          10, temperature=1., min_scale=1.)])
      sgn = ln_tfp.ShiftedGaussianNoise(model)
      sgn.compile('adam', metrics=[ln_tfp.Accuracy()])
      sgn.fit(images, noisy_labels, epochs=100)
      classifier = ln_tfp.to_classifier(sgn.average)

  The targets move from the labels towards the predictions of a network whose
  weights are a moving average of the model's (Englesson and Azizpour, 2024,
  "Robust classification via regression for learning with noisy labels"): at
  epoch e the labels' share is alpha^e, see `ln_tfp.losses.isometric_nll`. The
  average sees each batch in training mode, and so has its own statistics of
  batch normalisation. The model itself is trained in place; called, evaluated
  and saved it is the model, and the average is saved with it. The warm-up of
  the head is left out.

  The defaults are those of 600 epochs on CIFAR, with 352 steps each. With
  fewer, take an alpha such that alpha^epochs is about .05, and a decay such
  that 1 / (1 - decay) is a twentieth of all steps.

  Args:
    model: Ends in a `LogisticNormalHead`; its weights must be built.
    alpha: In (0, 1]; 1 never shifts.
    decay: Of the moving average, in [0, 1].
    label_smoothing: t of the targets, in (0, 1].
    average: The second network; by default a copy of the model.
    **kwargs: As of every Keras model.

  Attributes:
    model: The model.
    average: The network with the averaged weights.
  """

  def __init__(self, model: keras.Model, alpha: float = .995,
               decay: float = .9999, label_smoothing: float = .001,
               average: keras.Model | None = None, **kwargs):
    backend.check_tensorflow('`ln_tfp.ShiftedGaussianNoise`')
    super().__init__(**kwargs)
    if not model.built or not model.weights:
      raise ValueError(
          'Argument `model` must be built, with `keras.Input` for instance: '
          'the moving average begins as its copy.')
    self.model = model
    if average is None:
      average = type(model).from_config(model.get_config())
      average.build(model.input_shape)
      average.set_weights(model.get_weights())
    self.average = average
    for layer in [*model._flatten_layers(), *average._flatten_layers()]:
      if isinstance(layer, heads.LogisticNormalHead):
        layer.end_warm_up()
    self.alpha = checks.between('alpha', alpha, 0, 1, open_below=True)
    self.decay = checks.between('decay', decay, 0, 1)
    self.label_smoothing = checks.between(
        'label_smoothing', label_smoothing, 0, 1, open_below=True)
    self._epoch = self.add_weight(
        name='epoch', shape=(), initializer='zeros', trainable=False)
    self._step = self.add_weight(
        name='step_of_epoch', shape=(), initializer='zeros', trainable=False)
    self.built = True

  def call(self, inputs, training=None, mask=None):
    return self.model(inputs, training=training, mask=mask)

  # The average does not learn, though its layers are not frozen: they are to
  # see each batch in training mode.
  @property
  def trainable_variables(self):
    return self.model.trainable_variables

  @property
  def trainable_weights(self):
    return self.model.trainable_weights

  @property
  def losses(self):
    return self.model.losses

  def compile(self, optimizer: Any = 'adam', loss: Any = None, **kwargs):
    """As of every Keras model; the loss is SGN's own."""
    if loss is not None and not isinstance(loss, _ShiftedNLL):
      raise ValueError('Argument `loss` must be None: SGN has its own. '
                       f'Received: loss={loss!r}.')
    self._shifted = _ShiftedNLL(self.label_smoothing)
    super().compile(optimizer, loss=self._shifted, **kwargs)

  def compile_from_config(self, config):
    """As Keras does where `compile` is its own."""
    self.compile(**keras.saving.deserialize_keras_object(config))
    self.optimizer.build(self.trainable_variables)

  def fit(self, *args, callbacks: Any = None, **kwargs):
    """As of every Keras model."""
    if isinstance(callbacks, keras.callbacks.CallbackList):
      callbacks.append(_Progress(self))
    else:
      given = callbacks if isinstance(callbacks, (list, tuple)) else (
          [] if callbacks is None else [callbacks])
      callbacks = [_Progress(self), *given]
    return super().fit(*args, callbacks=callbacks, **kwargs)

  def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None,
                   training=True):
    """The loss of a batch, shifted where it is one of training."""
    if training:
      self._shifted.shift_to = self.average(x, training=True)
      self._shifted.shift = 1. - ops.power(
          self.alpha, self._epoch + self._step)
    try:
      return super().compute_loss(x, y, y_pred, sample_weight, training)
    finally:
      self._shifted.shift_to = None

  def train_step(self, *args, **kwargs):
    logs = super().train_step(*args, **kwargs)
    for own, other in zip(self._averaged, self.model.trainable_variables):
      own.assign(self.decay * own + (1. - self.decay) * other)
    return logs

  @property
  def _averaged(self):
    """The average's variables that belong to the model's trainable ones."""
    pairs = dict(zip((id(v) for v in self.model.variables),
                     self.average.variables))
    return [pairs[id(v)] for v in self.model.trainable_variables]

  def get_config(self):
    return {
        **super().get_config(),
        'model': keras.saving.serialize_keras_object(self.model),
        'average': keras.saving.serialize_keras_object(self.average),
        'alpha': self.alpha,
        'decay': self.decay,
        'label_smoothing': self.label_smoothing,
    }

  @classmethod
  def from_config(cls, config, custom_objects=None):
    for name in ('model', 'average'):
      config[name] = keras.saving.deserialize_keras_object(
          config[name], custom_objects)
    return cls(**config)


@keras.saving.register_keras_serializable(package='ln_tfp')
class _ShiftedNLL(losses.IsometricNLL):
  """The loss of a batch whose shift the model has just computed."""

  shift_to, shift = None, 0.

  def call(self, y_true, y_pred):
    return losses.isometric_nll(
        y_true, y_pred, self.label_smoothing, self.ignore_class,
        shift_to=self.shift_to, shift=self.shift)


class _Progress(keras.callbacks.Callback):
  """Tells the model the fractional epoch."""

  def __init__(self, wrapper):
    super().__init__()
    self._wrapper = wrapper
    self._batches = 0  # of this epoch, so far
    self._counted = 0  # of the epoch before

  def on_epoch_begin(self, epoch, logs=None):
    self._wrapper._epoch.assign(float(epoch))
    self._wrapper._step.assign(0.)

  def on_train_batch_begin(self, batch, logs=None):
    # Unknown in the first epoch of a stream; whole epochs then.
    steps = self.params.get('steps') or self._counted
    if steps:
      self._wrapper._step.assign(min(batch / steps, 1.))

  def on_train_batch_end(self, batch, logs=None):
    self._batches = batch + 1

  def on_epoch_end(self, epoch, logs=None):
    self._counted = self._batches

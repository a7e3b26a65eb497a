"""Heteroscedastic classification: normal logits, by Monte Carlo.

Kendall and Gal (2017) with a diagonal covariance, Collier et al. (2020) with a
temperature, Collier et al. (2021) with a low-rank covariance.
"""

import keras
from keras import ops

from ln_tfp import backend
from ln_tfp import checks
from ln_tfp import heads
from ln_tfp import labels as labels_lib
from ln_tfp.losses import base

if backend.IS_TENSORFLOW:
  from ln_tfp.losses import monte_carlo
else:
  from ln_tfp.losses import monte_carlo_scan as monte_carlo


def heteroscedastic_nll(
    y_true: base.Tensor, y_pred: base.Tensor, samples: int = 100,
    temperature: float = 1., *, seed, step=0,
    ignore_class: int | None = None) -> base.Tensor:
  """Returns `-log mean_s p_s[label]`, `[...]`; see `HeteroscedasticNLL`.

  A pure function: the samples follow from (seed, step) and are shared by all
  examples.

  Args:
    y_true: Labels, see `ln_tfp.labels`; for soft ones it is the mean over them.
    y_pred: Output of a `HeteroscedasticHead`, `[..., K, 2 + rank]`.
    samples: S.
    temperature: tau.
    seed: Integer or scalar integer tensor.
    step: Integer or scalar integer tensor, the number of the training step.
    ignore_class: Labels that do not count.
  """
  y_pred, flat, noise = _prepare(y_pred, samples, seed, step)
  labels = labels_lib.Labels(
      y_true, y_pred.shape[:-2], flat.shape[1], ignore_class)
  if labels.is_soft:
    target = labels.distribution(flat.dtype)
    loss = monte_carlo.cross_entropy(
        ops.reshape(target, [-1, flat.shape[1]]), flat, noise, temperature)
  else:
    loss = monte_carlo.nll(
        ops.reshape(labels.classes(), [-1]), flat, noise, temperature)
  return labels.finish(ops.reshape(loss, ops.shape(y_pred)[:-2]))


def heteroscedastic_probabilities(
    y_pred: base.Tensor, samples: int = 100, temperature: float = 1.,
    seed=0) -> base.Tensor:
  """Returns the prediction `mean_s softmax((mu + e_s) / tau)`, `[..., K]`.

  Args:
    y_pred: Output of a `HeteroscedasticHead`, `[..., K, 2 + rank]`.
    samples: S.
    temperature: tau, as in the loss.
    seed: Integer or scalar integer tensor.
  """
  y_pred, flat, noise = _prepare(y_pred, samples, seed, 0)
  mean = monte_carlo.probabilities(flat, noise, temperature)
  return ops.reshape(mean, ops.shape(y_pred)[:-1])


@keras.saving.register_keras_serializable(package='ln_tfp')
class HeteroscedasticNLL(base.RandomLoss):
  """`-log mean_s softmax((mu + sigma e_s + V f_s) / tau)[label]`.

  The paper's Eq. 13. The samples are redrawn at every step and shared over the
  batch (and over the replicas of a `tf.distribute` strategy).

  ```python
  model = keras.Sequential([backbone, ln_tfp.HeteroscedasticHead(10, rank=1)])
  model.compile('adam', loss=ln_tfp.losses.HeteroscedasticNLL(temperature=.5))
  ln_tfp.losses.heteroscedastic_probabilities(
      model.predict(images), temperature=.5)
  ```

  Args:
    samples: S. The paper's authors took 10,000 for CIFAR.
    temperature: tau.
    seed: Integer; `None` takes one from Keras.
    ignore_class: Labels that are this number neither count nor fail.
    reduction: As of every Keras loss.
    name: As of every Keras loss.
    dtype: As of every Keras loss.
  """

  num_event_dims = 2

  def __init__(self, samples: int = 100, temperature: float = 1.,
               seed: int | None = None, ignore_class: int | None = None,
               reduction: str | None = 'sum_over_batch_size',
               name: str = 'heteroscedastic_nll', dtype=None):
    super().__init__(seed, ignore_class=ignore_class, reduction=reduction,
                     name=name, dtype=dtype)
    self.samples = checks.whole('samples', samples, 1)
    self.temperature = checks.positive('temperature', temperature)

  def call(self, y_true, y_pred):
    seed, step = self.next_seed(y_pred)
    return heteroscedastic_nll(
        y_true, y_pred, self.samples, self.temperature, seed=seed, step=step,
        ignore_class=self.ignore_class)

  def arguments(self):
    return {'samples': self.samples, 'temperature': self.temperature,
            'seed': self.seed}


def _prepare(y_pred, samples, seed, step):
  """Returns the predictions, the same as `[batch, K, J]`, and the noise."""
  y_pred = heads.check_heteroscedastic(y_pred)
  num_classes, columns = y_pred.shape[-2:]
  noise = backend.normal(
      seed, step, backend.places(checks.whole('samples', samples, 1)),
      num_classes + columns - 2)
  return y_pred, ops.reshape(y_pred, [-1, num_classes, columns]), noise

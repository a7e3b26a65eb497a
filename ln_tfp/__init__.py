"""Logistic-Normal likelihoods for heteroscedastic label noise.

    model = keras.Sequential([backbone, ln_tfp.LogisticNormalHead(10)])
    model.compile('adam', loss=ln_tfp.nll, metrics=[ln_tfp.Accuracy()])
    model.fit(images, noisy_labels)
    classifier = ln_tfp.to_classifier(model)
"""

from ln_tfp import quiet as _quiet

if _quiet.is_program():
  _quiet.start()

try:
  from ln_tfp import backend as _backend
except ModuleNotFoundError as error:  # often the Keras backend
  raise ImportError('ln_tfp runs on Keras with its TensorFlow, JAX or PyTorch '
                    f'backend ({error}).') from error

from ln_tfp import losses
from ln_tfp import noise
from ln_tfp.audit import LabelReport
from ln_tfp.audit import MarginRecorder
from ln_tfp.audit import audit_features
from ln_tfp.audit import audit_labels
from ln_tfp.audit import consensus
from ln_tfp.export import from_classifier
from ln_tfp.export import to_classifier
from ln_tfp.heads import HeteroscedasticHead
from ln_tfp.heads import LogisticNormalHead
from ln_tfp.heads import probabilities
from ln_tfp.heads import to_distribution
from ln_tfp.label_wave import LabelWave
from ln_tfp.losses import NegativeLogLikelihood
from ln_tfp.losses import nll
from ln_tfp.metrics import Accuracy
from ln_tfp.metrics import ExpectedCalibrationError
from ln_tfp.metrics import PredictiveNLL
from ln_tfp.process import LogisticNormalProcess
from ln_tfp.sgn import ShiftedGaussianNoise
from ln_tfp.version import __version__

if _backend.IS_TENSORFLOW:  # now, lest Keras not know the head of a saved model
  from ln_tfp.many_classes import ManyClassesHead
  from ln_tfp.prediction import predict_top_k

_ON_TENSORFLOW = ('LogisticNormal', 'ManyClassesHead', 'predict_top_k')


def __getattr__(name):
  if name not in _ON_TENSORFLOW:
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
  _backend.check_tensorflow(f'`ln_tfp.{name}`')
  from ln_tfp import logistic_normal  # late, because it imports all of TFP
  return logistic_normal.LogisticNormal


def __dir__():
  return sorted({*globals(), *_ON_TENSORFLOW})

"""Logistic-Normal likelihoods for heteroscedastic label noise.

    model = keras.Sequential([backbone, ln_tfp.LogisticNormalHead(10)])
    model.compile('adam', loss=ln_tfp.nll, metrics=[ln_tfp.Accuracy()])
    model.fit(images, noisy_labels)
    classifier = ln_tfp.to_classifier(model)
"""

from ln_tfp import quiet as _quiet

if _quiet.is_program():
  _quiet.start()

_BACKEND = 'ln_tfp runs on Keras with its TensorFlow backend, and on no other'
try:
  import keras as _keras
except ModuleNotFoundError as error:  # often the other backend
  raise ImportError(f'{_BACKEND} ({error}).') from error
if _keras.backend.backend() != 'tensorflow':
  raise ImportError(
      f'{_BACKEND}: set KERAS_BACKEND=tensorflow before Keras is imported. '
      f'Received: KERAS_BACKEND={_keras.backend.backend()}.')

from ln_tfp import losses
from ln_tfp import noise
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
from ln_tfp.logistic_normal import LogisticNormal
from ln_tfp.losses import NegativeLogLikelihood
from ln_tfp.losses import nll
from ln_tfp.many_classes import ManyClassesHead
from ln_tfp.metrics import Accuracy
from ln_tfp.metrics import ExpectedCalibrationError
from ln_tfp.metrics import PredictiveNLL
from ln_tfp.prediction import predict_top_k
from ln_tfp.process import LogisticNormalProcess
from ln_tfp.sgn import ShiftedGaussianNoise
from ln_tfp.version import __version__

"""Losses for noisy labels, each a pure function and a Keras class.

All take the labels that Keras's cross entropies take (`ln_tfp.labels`), sample
weights, masks and `ignore_class`. Label smoothing, the paper's remaining
baseline, is Keras's own `CategoricalCrossentropy(label_smoothing=t)`.

The outputs of all heads should be float32 (or float64) whatever the policy:
`LogisticNormalHead` and `HeteroscedasticHead` see to it themselves, and logits
need `keras.layers.Dense(10, dtype='float32')` under mixed precision.
"""

from ln_tfp.losses.active_passive import ActiveNegativeCrossEntropy
from ln_tfp.losses.active_passive import NormalizedReverseCrossEntropy
from ln_tfp.losses.active_passive import SymmetricCrossEntropy
from ln_tfp.losses.active_passive import active_negative_cross_entropy
from ln_tfp.losses.active_passive import normalized_reverse_cross_entropy
from ln_tfp.losses.active_passive import symmetric_cross_entropy
from ln_tfp.losses.bounded import AsymmetricGCE
from ln_tfp.losses.bounded import TaylorCrossEntropy
from ln_tfp.losses.bounded import asymmetric_gce
from ln_tfp.losses.bounded import taylor_cross_entropy
from ln_tfp.losses.forward import ForwardCorrection
from ln_tfp.losses.forward import estimate_transition
from ln_tfp.losses.forward import forward_correction
from ln_tfp.losses.gce import GeneralizedCrossEntropy
from ln_tfp.losses.gce import generalized_cross_entropy
from ln_tfp.losses.het import HeteroscedasticNLL
from ln_tfp.losses.het import heteroscedastic_nll
from ln_tfp.losses.het import heteroscedastic_probabilities
from ln_tfp.losses.isometric import IsometricNLL
from ln_tfp.losses.isometric import isometric_nll
from ln_tfp.losses.ln import NegativeLogLikelihood
from ln_tfp.losses.ln import nll
from ln_tfp.losses.nan import NoiseAgainstNoise
from ln_tfp.losses.nan import noise_against_noise
from ln_tfp.losses.trusting import Bootstrapping
from ln_tfp.losses.trusting import EpsilonSoftmax
from ln_tfp.losses.trusting import bootstrapping
from ln_tfp.losses.trusting import epsilon_softmax

__all__ = [
    'ActiveNegativeCrossEntropy',
    'AsymmetricGCE',
    'Bootstrapping',
    'EpsilonSoftmax',
    'ForwardCorrection',
    'GeneralizedCrossEntropy',
    'HeteroscedasticNLL',
    'IsometricNLL',
    'NegativeLogLikelihood',
    'NoiseAgainstNoise',
    'NormalizedReverseCrossEntropy',
    'SymmetricCrossEntropy',
    'TaylorCrossEntropy',
    'active_negative_cross_entropy',
    'asymmetric_gce',
    'bootstrapping',
    'epsilon_softmax',
    'estimate_transition',
    'forward_correction',
    'generalized_cross_entropy',
    'heteroscedastic_nll',
    'heteroscedastic_probabilities',
    'isometric_nll',
    'nll',
    'noise_against_noise',
    'normalized_reverse_cross_entropy',
    'symmetric_cross_entropy',
    'taylor_cross_entropy',
]

"""Losses for noisy labels, each a pure function and a Keras class.

All take the labels that Keras's cross entropies take (`ln_tfp.labels`), sample
weights, masks and `ignore_class`. Label smoothing, the paper's remaining
baseline, is Keras's own `CategoricalCrossentropy(label_smoothing=t)`.

The outputs of all heads should be float32 (or float64) whatever the policy:
`LogisticNormalHead` and `HeteroscedasticHead` see to it themselves, and logits
need `keras.layers.Dense(10, dtype='float32')` under mixed precision.
"""

from ln_tfp.losses.forward import ForwardCorrection
from ln_tfp.losses.forward import estimate_transition
from ln_tfp.losses.forward import forward_correction
from ln_tfp.losses.gce import GeneralizedCrossEntropy
from ln_tfp.losses.gce import generalized_cross_entropy
from ln_tfp.losses.het import HeteroscedasticNLL
from ln_tfp.losses.het import heteroscedastic_nll
from ln_tfp.losses.het import heteroscedastic_probabilities
from ln_tfp.losses.ln import NegativeLogLikelihood
from ln_tfp.losses.ln import nll
from ln_tfp.losses.nan import NoiseAgainstNoise
from ln_tfp.losses.nan import noise_against_noise

__all__ = [
    'ForwardCorrection',
    'GeneralizedCrossEntropy',
    'HeteroscedasticNLL',
    'NegativeLogLikelihood',
    'NoiseAgainstNoise',
    'estimate_transition',
    'forward_correction',
    'generalized_cross_entropy',
    'heteroscedastic_nll',
    'heteroscedastic_probabilities',
    'nll',
    'noise_against_noise',
]

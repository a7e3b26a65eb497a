"""Data sets, label noise and batches."""

from experiments.data.batches import Batch
from experiments.data.batches import Batches
from experiments.data.examples import Examples
from experiments.data.examples import MissingDataError
from experiments.data.examples import Source
from experiments.data.label_files import LabelFileError
from experiments.data.preprocessing import Preprocessing
from experiments.data.sources import NAMES
from experiments.data.sources import load
from experiments.data.sources import prepare
from experiments.data.splits import authors_split
from experiments.data.splits import validation_split
from ln_tfp import random
from ln_tfp.noise import ASYMMETRIC_MAPPINGS
from ln_tfp.noise import CIFAR10_MAPPING_WITH_TRUCK
from ln_tfp.noise import Noise
from ln_tfp.noise import corrupt
from ln_tfp.noise import parse_noise
from ln_tfp.noise import transition_matrix
from ln_tfp.noisy_labels import NoisyLabels

__all__ = [
    'ASYMMETRIC_MAPPINGS',
    'Batch',
    'Batches',
    'CIFAR10_MAPPING_WITH_TRUCK',
    'Examples',
    'LabelFileError',
    'MissingDataError',
    'NAMES',
    'Noise',
    'NoisyLabels',
    'Preprocessing',
    'Source',
    'authors_split',
    'corrupt',
    'load',
    'parse_noise',
    'prepare',
    'random',
    'transition_matrix',
    'validation_split',
]

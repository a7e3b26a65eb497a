"""Data sets, label noise and batches."""

from ln_tfp.data import random
from ln_tfp.data.batches import Batch
from ln_tfp.data.batches import Batches
from ln_tfp.data.examples import Examples
from ln_tfp.data.examples import MissingDataError
from ln_tfp.data.examples import Source
from ln_tfp.data.label_files import LabelFileError
from ln_tfp.data.noise import ASYMMETRIC_MAPPINGS
from ln_tfp.data.noise import CIFAR10_MAPPING_WITH_TRUCK
from ln_tfp.data.noise import Noise
from ln_tfp.data.noise import corrupt
from ln_tfp.data.noise import parse_noise
from ln_tfp.data.noise import transition_matrix
from ln_tfp.data.noisy_labels import NoisyLabels
from ln_tfp.data.preprocessing import Preprocessing
from ln_tfp.data.sources import NAMES
from ln_tfp.data.sources import load
from ln_tfp.data.sources import prepare
from ln_tfp.data.splits import authors_split
from ln_tfp.data.splits import validation_split

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

"""Data sets, label noise and batches."""

import experiments

__getattr__, __dir__ = experiments.lazy(__name__, {
    'ASYMMETRIC_MAPPINGS': 'ln_tfp.noise:ASYMMETRIC_MAPPINGS',
    'Batch': 'experiments.data.batches:Batch',
    'Batches': 'experiments.data.batches:Batches',
    'CIFAR10_MAPPING_WITH_TRUCK': 'ln_tfp.noise:CIFAR10_MAPPING_WITH_TRUCK',
    'Examples': 'experiments.data.examples:Examples',
    'LabelFileError': 'experiments.data.label_files:LabelFileError',
    'MissingDataError': 'experiments.data.examples:MissingDataError',
    'NAMES': 'experiments.data.sources:NAMES',
    'Noise': 'ln_tfp.noise:Noise',
    'NoisyLabels': 'ln_tfp.noisy_labels:NoisyLabels',
    'Preprocessing': 'experiments.data.preprocessing:Preprocessing',
    'Source': 'experiments.data.examples:Source',
    'authors_split': 'experiments.data.splits:authors_split',
    'corrupt': 'ln_tfp.noise:corrupt',
    'load': 'experiments.data.sources:load',
    'parse_noise': 'ln_tfp.noise:parse_noise',
    'prepare': 'experiments.data.sources:prepare',
    'random': 'ln_tfp.random',
    'transition_matrix': 'ln_tfp.noise:transition_matrix',
    'validation_split': 'experiments.data.splits:validation_split',
})

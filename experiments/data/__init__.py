"""Data sets and batches."""

import experiments

__getattr__, __dir__ = experiments.lazy(__name__, {
    'BadDataError': 'experiments.data.registry:BadDataError',
    'Batch': 'experiments.data.batches:Batch',
    'Batches': 'experiments.data.batches:Batches',
    'Examples': 'experiments.data.examples:Examples',
    'MissingDataError': 'experiments.data.registry:MissingDataError',
    'NAMES': 'experiments.data.registry:NAMES',
    'Preprocessing': 'experiments.data.preprocessing:Preprocessing',
    'Source': 'experiments.data.examples:Source',
    'Traits': 'experiments.data.registry:Traits',
    'load': 'experiments.data.registry:load',
    'parse_noise': 'ln_tfp.noise:parse_noise',
    'prepare': 'experiments.data.registry:prepare',
    'split': 'experiments.data.examples:split',
    'traits': 'experiments.data.registry:traits',
})

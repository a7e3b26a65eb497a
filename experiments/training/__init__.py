"""Training: a `Run` goes in, a `Result` comes out.

    from experiments import training

    run = training.Run(dataset='digits', method='LN', noise='sym:0.4', seed=0)
    result = training.train(run, output_dir='results')
    result.metrics['test_accuracy']
"""

import experiments

__getattr__, __dir__ = experiments.lazy(__name__, {
    'BadClusterError': 'experiments.training.cluster:BadClusterError',
    'DamagedResultError': 'experiments.training.results:DamagedResultError',
    'LostWorkerError': 'experiments.training.cluster:LostWorkerError',
    'Options': 'experiments.paper.protocols:Options',
    'Result': 'experiments.training.results:Result',
    'Run': 'experiments.training.runs:Run',
    'build_model': 'experiments.training.loading:build_model',
    'create_strategy': 'experiments.training.devices:create',
    'load_model': 'experiments.training.loading:load_model',
    'load_splits': 'experiments.training.loading:load_splits',
    'read_result': 'experiments.training.results:read',
    'train': 'experiments.training.runner:train',
    'write_result': 'experiments.training.results:write',
})

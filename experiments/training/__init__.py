"""Training: a `Run` goes in, a `Result` comes out.

    from experiments import training

    run = training.Run(dataset='digits', method='LN', noise='sym:0.4', seed=0)
    result = training.train(run, output_dir='results')
    result.metrics['test_accuracy']
"""

from experiments.paper.protocols import Options
from experiments.training.cluster import BadClusterError
from experiments.training.cluster import LostWorkerError
from experiments.training.networks import build_model
from experiments.training.results import DamagedResultError
from experiments.training.results import Result
from experiments.training.results import read as read_result
from experiments.training.results import write as write_result
from experiments.training.runner import load_model
from experiments.training.runner import train
from experiments.training.runs import Run
from experiments.training.splits import Split
from experiments.training.splits import Splits
from experiments.training.splits import load_splits
from experiments.training.strategies import create as create_strategy

__all__ = [
    'BadClusterError',
    'DamagedResultError',
    'LostWorkerError',
    'Options',
    'Result',
    'Run',
    'Split',
    'Splits',
    'build_model',
    'create_strategy',
    'load_model',
    'load_splits',
    'read_result',
    'train',
    'write_result',
]

"""Training: a `Run` goes in, a `Result` comes out.

    from ln_tfp import training

    run = training.Run(dataset='digits', method='LN', noise='sym:0.4', seed=0)
    result = training.train(run, output_dir='results')
    result.metrics['test_accuracy']
"""

from ln_tfp.training.cluster import BadClusterError
from ln_tfp.training.cluster import LostWorkerError
from ln_tfp.training.networks import build_model
from ln_tfp.training.protocols import Options
from ln_tfp.training.results import DamagedResultError
from ln_tfp.training.results import Result
from ln_tfp.training.results import read as read_result
from ln_tfp.training.results import write as write_result
from ln_tfp.training.runner import load_model
from ln_tfp.training.runner import train
from ln_tfp.training.runs import Run
from ln_tfp.training.splits import Split
from ln_tfp.training.splits import Splits
from ln_tfp.training.splits import load_splits
from ln_tfp.training.strategies import create as create_strategy

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

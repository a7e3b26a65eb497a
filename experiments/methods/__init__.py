"""Methods to learn from noisy labels: the paper's nine, and others.

Each is a frozen dataclass of its hyperparameters with a head, a loss, a
prediction and a search grid, over the heads and losses of `ln_tfp`:

    from experiments import methods

    method = methods.get('GCE', q=0.3)
    model = keras.Sequential([backbone, method.head(10)])
    losses = method.loss(labels, model(images), methods.Context(
        num_classes=10, seed=0, step=0, ids=ids))
    method.probabilities(model(images), num_classes=10)
"""

import experiments

__getattr__, __dir__ = experiments.lazy(__name__, {
    'Context': 'experiments.methods.base:Context',
    'GROUPS': 'experiments.methods.registry:GROUPS',
    'GlobalBatch': 'experiments.methods.base:GlobalBatch',
    'Method': 'experiments.methods.base:Method',
    'MovingAverage': 'experiments.methods.base:MovingAverage',
    'NAMES': 'experiments.methods.registry:NAMES',
    'Needs': 'experiments.methods.base:Needs',
    'Rows': 'experiments.methods.base:Rows',
    'Twin': 'experiments.methods.base:Twin',
    'asks': 'experiments.methods.registry:asks',
    'get': 'experiments.methods.registry:get',
})

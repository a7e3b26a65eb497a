"""The paper's networks: a backbone of Keras layers and a head on top.

    from experiments import methods, models

    head = methods.get('LN').head(10)
    model = models.build('lenet5', (28, 28, 1), head, seed=0)

`mlp`, `lenet5`, `wide_resnet` and `resnet50` give the backbones alone,
input -> features `[batch, F]`.
"""

import experiments

__getattr__, __dir__ = experiments.lazy(__name__, {
    'NAMES': 'experiments.models.network:NAMES',
    'arguments': 'experiments.models.network:arguments',
    'build': 'experiments.models.network:build',
    'check': 'experiments.models.fitting:check',
    'lenet5': 'experiments.models.backbones:lenet5',
    'mlp': 'experiments.models.backbones:mlp',
    'resnet50': 'experiments.models.resnet:resnet50',
    'seeded': 'experiments.models.network:seeded',
    'wide_resnet': 'experiments.models.backbones:wide_resnet',
})

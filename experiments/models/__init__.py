"""The paper's networks: a backbone of Keras layers and a head on top.

    from experiments import methods, models

    head = methods.get('LN').head(10)
    model = models.build('lenet5', (28, 28, 1), head, seed=0)

`mlp`, `lenet5`, `wide_resnet` and `resnet50` give the backbones alone,
input -> features `[batch, F]`.
"""

from experiments.models.lenet import lenet5
from experiments.models.network import NAMES
from experiments.models.network import build
from experiments.models.network import seeded
from experiments.models.perceptron import mlp
from experiments.models.resnet import resnet50
from experiments.models.wrn import wide_resnet

__all__ = [
    'NAMES', 'build', 'lenet5', 'mlp', 'resnet50', 'seeded', 'wide_resnet'
]

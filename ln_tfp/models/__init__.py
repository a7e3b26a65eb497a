"""The paper's networks: a backbone of Keras layers and a head on top.

    from ln_tfp import methods, models

    head = methods.get('LN').head(10)
    model = models.build('lenet5', (28, 28, 1), head, seed=0)

`mlp`, `lenet5`, `wide_resnet` and `resnet50` give the backbones alone,
input -> features `[batch, F]`.
"""

from ln_tfp.models.lenet import lenet5
from ln_tfp.models.network import NAMES
from ln_tfp.models.network import build
from ln_tfp.models.network import seeded
from ln_tfp.models.perceptron import mlp
from ln_tfp.models.resnet import resnet50
from ln_tfp.models.wrn import wide_resnet

__all__ = [
    'NAMES', 'build', 'lenet5', 'mlp', 'resnet50', 'seeded', 'wide_resnet'
]

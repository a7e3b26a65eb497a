"""The paper's nine methods to learn from noisy labels.

Each is a frozen dataclass of its hyperparameters with a head, a loss, a
prediction and a search grid:

    from experiments import methods

    method = methods.get('GCE', q=0.3)
    model = keras.Sequential([backbone, method.head(10)])
    model.compile('adam', loss=methods.Loss('GCE', q=0.3))
    model.fit(images, noisy_labels)
    method.probabilities(model(images), num_classes=10)
"""

from experiments.methods.base import Method
from experiments.methods.forward import estimate_transition
from experiments.methods.heteroscedastic import HeteroscedasticHead
from experiments.methods.keras_loss import Loss
from experiments.methods.registry import NAMES
from experiments.methods.registry import get

__all__ = [
    'HeteroscedasticHead',
    'Loss',
    'Method',
    'NAMES',
    'estimate_transition',
    'get',
]

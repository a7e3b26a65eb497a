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

import experiments

__getattr__, __dir__ = experiments.lazy(__name__, {
    'HeteroscedasticHead': 'ln_tfp.heads:HeteroscedasticHead',
    'Loss': 'experiments.methods.keras_loss:Loss',
    'Method': 'experiments.methods.base:Method',
    'NAMES': 'experiments.methods.registry:NAMES',
    'asks': 'experiments.methods.registry:asks',
    'estimate_transition': 'experiments.methods.forward:estimate_transition',
    'get': 'experiments.methods.registry:get',
})

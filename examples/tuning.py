"""Chooses temperature and min_scale with keras-tuner.

    pip install keras-tuner
    python examples/tuning.py

The validation labels are as noisy as the others. They lower the accuracy of
all settings, but under symmetric noise do not change which one is best.
"""

import tempfile

import keras
import keras_tuner
import numpy as np
from sklearn import datasets

import ln_tfp


def build(hp):
  """Returns a model with the two settings that the paper searched over."""
  head = ln_tfp.LogisticNormalHead(
      10, temperature=hp.Choice('temperature', [.1, .5, 1.]),
      min_scale=hp.Choice('min_scale', [.5, 1.]))
  model = keras.Sequential([
      keras.layers.Dense(128, activation='relu'), head])
  model.compile(keras.optimizers.Adam(.003), loss=ln_tfp.nll,
                metrics=[ln_tfp.Accuracy()])
  return model


def main(max_trials=6, epochs=20):
  digits = datasets.load_digits()
  images = (digits.data / 16).astype(np.float32)
  noisy = ln_tfp.noise.corrupt(digits.target, 'sym:0.4')
  with tempfile.TemporaryDirectory() as folder:
    tuner = keras_tuner.GridSearch(
        build, objective=keras_tuner.Objective('val_accuracy', 'max'),
        max_trials=max_trials, directory=folder, project_name='ln')
    tuner.search(images, noisy, validation_split=.2, epochs=epochs, verbose=0)
  for trial in tuner.oracle.get_best_trials(max_trials):
    print(trial.hyperparameters.values, f'{trial.score:.1%}')
  model = build(tuner.get_best_hyperparameters()[0])
  model.fit(images, noisy, epochs=epochs, verbose=2)
  return model


if __name__ == '__main__':
  main()

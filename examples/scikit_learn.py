"""A scikit-learn classifier around a Keras model with the Logistic-Normal head.

    python examples/scikit_learn.py

It has fit, predict and predict_proba, and so works in pipelines, searches and
cross validation: probabilities out of fold come from `cross_val_predict`.
Without a network of your own there is `ln_tfp.LogisticNormalProcess`, which is
a scikit-learn classifier already.
"""

import keras
import numpy as np
from sklearn import base
from sklearn import datasets
from sklearn import model_selection
from sklearn.utils import validation

import ln_tfp


class RobustClassifier(base.ClassifierMixin, base.BaseEstimator):
  """A hidden layer and the head; replace `_make` by a network of your own."""

  def __init__(self, width=128, temperature=.5, epochs=30, random_state=0):
    self.width = width
    self.temperature = temperature
    self.epochs = epochs
    self.random_state = random_state

  def fit(self, X, y):
    X, y = validation.validate_data(self, X, y)
    self.classes_, labels = np.unique(y, return_inverse=True)
    keras.utils.set_random_seed(self.random_state)
    model = self._make(len(self.classes_))
    model.compile(keras.optimizers.Adam(.003), loss=ln_tfp.nll)
    model.fit(X, labels, epochs=self.epochs, verbose=0)
    self.classifier_ = ln_tfp.to_classifier(model)
    return self

  def predict_proba(self, X):
    validation.check_is_fitted(self)
    X = validation.validate_data(self, X, reset=False)
    return self.classifier_.predict(X, verbose=0)

  def predict(self, X):
    return self.classes_[self.predict_proba(X).argmax(axis=1)]

  def _make(self, num_classes):
    return keras.Sequential([
        keras.layers.Dense(self.width, activation='relu'),
        ln_tfp.LogisticNormalHead(num_classes, temperature=self.temperature)])


def main(cv=3, **settings):
  digits = datasets.load_digits()
  noisy = ln_tfp.noise.corrupt(digits.target, 'sym:0.4')
  names = np.array([f'class {k}' for k in range(10)])
  probabilities = model_selection.cross_val_predict(
      RobustClassifier(**settings), digits.data / 16, names[noisy], cv=cv,
      method='predict_proba')
  right = np.mean(probabilities.argmax(axis=1) == digits.target)
  print(f'{np.mean(noisy == digits.target):.1%} of the given labels are right, '
        f'{right:.1%} of those predicted out of fold.')
  return right


if __name__ == '__main__':
  main()

"""A table of numbers with a noisy label in its last column.

    python examples/tabular.py              # on scikit-learn's wines
    python examples/tabular.py table.csv    # a header, numbers, the label last

Trains a classifier, and lists the rows whose label is probably wrong.
"""

import csv
import sys

import keras
import numpy as np
from sklearn import datasets

import ln_tfp


def read_table(path):
  """Returns the numbers and the labels of a CSV file."""
  with open(path, newline='', encoding='utf-8') as file:
    rows = list(csv.reader(file))[1:]
  return (np.array([row[:-1] for row in rows], np.float32),
          np.array([row[-1] for row in rows]))


def make_table():
  """Returns measurements of wines; one label in five is drawn anew."""
  wines = datasets.load_wine()
  labels = ln_tfp.noise.corrupt(wines.target, 'sym:0.2')
  return wines.data.astype(np.float32), wines.target_names[labels]


def main(path=None):
  columns, given = read_table(path) if path else make_table()
  names, labels = np.unique(given, return_inverse=True)
  normalize = keras.layers.Normalization()
  normalize.adapt(columns)
  model = keras.Sequential([
      normalize, keras.layers.Dense(64, activation='relu'),
      ln_tfp.LogisticNormalHead(len(names))])
  model.compile(keras.optimizers.Adam(.01), loss=ln_tfp.nll,
                metrics=[ln_tfp.Accuracy()])
  model.fit(columns, labels, epochs=30, verbose=2)
  report = ln_tfp.audit_labels(model, columns, labels, class_names=names)
  print(report)
  return ln_tfp.to_classifier(model, class_names=names), report


if __name__ == '__main__':
  main(*sys.argv[1:2])

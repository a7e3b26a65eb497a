"""The contestants of `benchmarks.audit`: from features and labels to a verdict.

Each gets features, labels and the number of classes, never the truth. The
settings are in this file and are the same for every cell.
"""

from collections.abc import Callable
import dataclasses
import warnings

from cleanlab import filter as cleanlab_filter
from cleanlab import rank
import keras
import numpy as np
from sklearn import linear_model
from sklearn import metrics
from sklearn import neighbors
from sklearn import pipeline
from sklearn import preprocessing
import tensorflow as tf

import ln_tfp
from ln_tfp import random
from ln_tfp.audit.command import fitting

_NUM_FOLDS = 5
# Of logistic regression on standardised features, chosen for each part by the
# likelihood of the *noisy* labels of one fold.
_CS = (1e-4, 1e-3, 1e-2, 1e-1)
_MAX_ITERATIONS = 300
_NEIGHBORS = 10  # and the cosine distance: what cleanlab's Datalab takes


@dataclasses.dataclass(frozen=True, eq=False)
class Verdict:
  """What a contestant says.

  Attributes:
    quality: `[N]`, low where a label is likelier wrong.
    is_issue: bool `[N]`, its default decision; None if it has none.
    noise_rate: its estimate, or None.
  """
  quality: np.ndarray
  is_issue: np.ndarray | None = None
  noise_rate: float | None = None


def closed_form(features, given, num_classes) -> Verdict:
  """`ln_tfp.audit_features`."""
  report = ln_tfp.audit_features(
      features, given, class_names=range(num_classes))
  return Verdict(report.quality, report.is_issue, report.noise_rate)


def trained(features, given, num_classes) -> Verdict:
  """A network with the LN head, judged by its own outputs, in-sample."""
  model = fitting.fit(features, given, num_classes)
  report = ln_tfp.audit_labels(model, features, given, evidence='outputs')
  return Verdict(report.quality, report.is_issue, report.noise_rate)


def logistic_regression(features, given, num_classes) -> Verdict:
  """cleanlab with five folds of logistic regression."""
  return _cleanlab(given, out_of_sample(features, given, num_classes))


def nearest_neighbors(features, given, num_classes) -> Verdict:
  """cleanlab's way without a model: the labels of the ten nearest others."""
  search = neighbors.NearestNeighbors(
      metric='cosine' if features.shape[1] > 3 else 'euclidean').fit(features)
  near = search.kneighbors(return_distance=False, n_neighbors=_NEIGHBORS)
  probabilities = np.zeros((len(given), num_classes))
  for column in near.T:
    probabilities[np.arange(len(given)), given[column]] += 1 / _NEIGHBORS
  return _cleanlab(given, probabilities)


def network_folds(features, given, num_classes) -> Verdict:
  """cleanlab with five networks like that of `trained`, by cross entropy."""
  folds = _folds(given)
  probabilities = np.zeros((len(given), num_classes))
  for fold in range(_NUM_FOLDS):
    seen = folds != fold
    model = _cross_entropy(features[seen], given[seen], num_classes)
    logits = model.predict(features[~seen], batch_size=1024, verbose=0)
    probabilities[~seen] = tf.nn.softmax(logits).numpy()
  return _cleanlab(given, probabilities)


def margins(features, given, num_classes) -> Verdict:
  """AUM: margins of one such network, averaged over its epochs."""
  recorder = ln_tfp.MarginRecorder(features, given)
  _cross_entropy(features, given, num_classes, [recorder])
  return Verdict(recorder.margins)


def out_of_sample(
    features: np.ndarray, given: np.ndarray, num_classes: int) -> np.ndarray:
  """Returns probabilities `[N, K]` by five folds of logistic regression."""
  folds = _folds(given)

  def predict(fold, c):
    seen = folds != fold
    model = pipeline.make_pipeline(
        preprocessing.StandardScaler(), linear_model.LogisticRegression(
            C=c, max_iter=_MAX_ITERATIONS))
    with warnings.catch_warnings():
      warnings.simplefilter('ignore')  # not converged at weak regularisation
      model.fit(features[seen], given[seen])
    result = np.zeros((np.count_nonzero(~seen), num_classes))
    result[:, model.classes_] = model.predict_proba(features[~seen])
    return result / result.sum(axis=1, keepdims=True)

  first = given[folds == 0]
  tried = {c: predict(0, c) for c in _CS}
  losses = {c: metrics.log_loss(first, p, labels=np.arange(num_classes))
            for c, p in tried.items()}
  best = min(losses, key=losses.get)
  probabilities = np.zeros((len(given), num_classes))
  probabilities[folds == 0] = tried[best]
  for fold in range(1, _NUM_FOLDS):
    probabilities[folds == fold] = predict(fold, best)
  return probabilities


CONTESTANTS: dict[str, Callable[..., Verdict]] = {
    'closed form': closed_form,
    'cleanlab, logistic regression': logistic_regression,
    'cleanlab, nearest neighbours': nearest_neighbors,
    'LN network': trained,
    'AUM': margins,
    'cleanlab, networks': network_folds,
}


def _folds(given):
  """Returns the fold of each row; each class is spread over all folds."""
  order = random.order('folds', np.arange(len(given)))
  order = order[np.argsort(given[order], kind='stable')]
  folds = np.empty(len(given), np.int64)
  folds[order] = np.arange(len(given)) % _NUM_FOLDS
  return folds


def _cross_entropy(features, given, num_classes, callbacks=()):
  return fitting.fit(
      features, given, num_classes,
      head=lambda: keras.layers.Dense(num_classes),
      loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
      callbacks=callbacks)


def _cleanlab(given, probabilities):
  with warnings.catch_warnings():
    warnings.simplefilter('ignore')
    is_issue = cleanlab_filter.find_label_issues(given, probabilities)
  return Verdict(
      rank.get_label_quality_scores(given, probabilities), is_issue)

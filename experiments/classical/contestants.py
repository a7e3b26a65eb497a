"""The classifiers that are compared, and how each is tuned.

None sees a clean label: what is tuned is tuned on a quarter of the noisy
training rows, which are held out, and then fitted to all.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import calibration
from sklearn import gaussian_process
from sklearn import linear_model
from sklearn import metrics
from sklearn import model_selection
from sklearn import pipeline
from sklearn import preprocessing
from sklearn import svm
from sklearn.gaussian_process import kernels

from experiments.classical import problems
import ln_tfp

Classifier = Any  # of scikit-learn

_REGRESSION_C = 10. ** np.arange(-4, 3)
_SVM_C = (.1, 1., 10.)
# Rows that are enough to choose hyperparameters of a kernel.
_KERNEL_ROWS = 1_000
_GP_ROWS = 300
_GP_MOST_ROWS = 3_000


def fit_process(problem: problems.Problem, seed: int) -> Classifier:
  """The Logistic-Normal process as it comes."""
  return ln_tfp.LogisticNormalProcess(random_state=seed).fit(
      problem.x, problem.given)


def fit_regression(problem: problems.Problem, seed: int) -> Classifier:
  """Logistic regression, C by the held-out log loss."""
  make = lambda c: _scaled(problem, linear_model.LogisticRegression(
      C=c, tol=1e-3, max_iter=2_000))
  return _tuned(problem, seed, make, _REGRESSION_C, _log_loss)


def fit_svm(problem: problems.Problem, seed: int) -> Classifier:
  """An RBF support vector machine, C by held-out accuracy, gamma 'scale'.

  Probabilities by Platt's scaling of the margins of three folds.
  """
  make = lambda c: _scaled(problem, svm.SVC(C=c))
  best = _best(problem, seed, make, _SVM_C, lambda model, x, y: model.score(
      x, y), _KERNEL_ROWS)
  return calibration.CalibratedClassifierCV(
      make(best), cv=3, ensemble=False).fit(problem.x, problem.given)


def fit_gaussian_process(problem: problems.Problem, seed: int) -> Classifier:
  """scikit-learn's Gaussian process: Laplace's approximation, one against all.

  The kernel is a constant times an RBF; the search for its hyperparameters, by
  the marginal likelihood, starts at variance 1 and the median distance. Above
  300 rows it is made on 300 of them, and all are fitted with the geometric mean
  of the classes' kernels.
  """
  x, y = problem.x, problem.given
  few = np.random.default_rng(seed).permutation(len(x))[:_GP_ROWS]
  start = _median_distance(_scaled(problem, None).fit_transform(x[few]))
  kernel = kernels.ConstantKernel(1., (1e-2, 1e4)) * kernels.RBF(
      start, (1e-2 * start, 1e2 * start))
  make = lambda kernel, **arguments: _scaled(
      problem, gaussian_process.GaussianProcessClassifier(
          kernel, random_state=seed, **arguments))
  if len(x) <= _GP_ROWS:
    return make(kernel).fit(x, y)
  model = make(kernel).fit(x[few], y[few])[-1]
  found = [each.kernel_.theta for each in getattr(
      model.base_estimator_, 'estimators_', [model.base_estimator_])]
  return make(kernel.clone_with_theta(np.mean(found, axis=0)),
              optimizer=None).fit(x, y)


CONTESTANTS: dict[str, Callable[[problems.Problem, int], Classifier]] = {
    'LN process': fit_process,
    'Gaussian process (Laplace)': fit_gaussian_process,
    'logistic regression': fit_regression,
    'kernel SVM': fit_svm,
}


def is_feasible(method: str, problem: str) -> bool:
  """Whether a classifier takes part in a problem.

  scikit-learn's Gaussian process takes a minute for 3,000 rows and 10 classes,
  and grows with the cube of the rows.
  """
  return CONTESTANTS[method] is not fit_gaussian_process or (
      problems.size(problem) <= _GP_MOST_ROWS)


def probabilities(
    classifier: Classifier, x: np.ndarray, num_classes: int) -> np.ndarray:
  """Of all K classes `[N, K]`, also those that were never seen."""
  result = np.zeros([len(x), num_classes])
  result[:, classifier.classes_] = classifier.predict_proba(x)
  return result


def _tuned(problem, seed, make, values, score):
  best = _best(problem, seed, make, values, score, len(problem.x))
  return make(best).fit(problem.x, problem.given)


def _best(problem, seed, make, values, score, num_rows):
  """The first value after which the score on held-out rows falls."""
  rows = np.random.default_rng(seed).permutation(len(problem.x))[:num_rows]
  x, out_x, y, out_y = model_selection.train_test_split(
      problem.x[rows], problem.given[rows], test_size=.25, random_state=seed)
  best, highest = values[0], -np.inf
  for value in values:
    reached = score(make(value).fit(x, y), out_x, out_y)
    if reached < highest:
      break
    best, highest = value, reached
  return best


def _log_loss(model, x, y):
  known = np.isin(y, model.classes_)
  return -metrics.log_loss(
      y[known], model.predict_proba(x[known]), labels=model.classes_)


def _scaled(problem, model):
  """The model behind a standardisation, where features have many units."""
  scaler = None if problem.same_units else preprocessing.StandardScaler()
  return pipeline.make_pipeline(scaler or 'passthrough', model)


def _median_distance(x):
  squares = metrics.pairwise_distances(x)
  return float(np.median(squares[np.triu_indices(len(x), 1)]))

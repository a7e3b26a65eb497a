"""`LogisticNormalProcess`: a classifier in closed form."""

from collections.abc import Iterator
import numbers
import typing
from typing import Any

import keras
import numpy as np
import sklearn
from sklearn import base
from sklearn.utils import metaestimators
from sklearn.utils import validation

from ln_tfp import backend
from ln_tfp import heads
from ln_tfp.process import fitting
from ln_tfp.process import gathering
from ln_tfp.process import keras_bridge
from ln_tfp.process import leave_one_out
from ln_tfp.process import noise_model
from ln_tfp.process import sources
from ln_tfp.process import votes as votes_lib

if typing.TYPE_CHECKING:
  from ln_tfp import logistic_normal

# Above so many numbers N x K, `leave_one_out_` is not kept.
_LEAVE_ONE_OUT_SIZE = 50_000_000
_KERNELS = ('auto', 'linear', 'rbf')


class LogisticNormalProcess(base.ClassifierMixin, base.BaseEstimator):
  """A Gaussian process on the targets of labels, for labels that may be wrong.

  Because the map from logit space to the simplex is bijective, classification
  is regression on the target logits: the posterior is in closed form, and its
  prediction is a Logistic-Normal distribution. One factorisation serves all
  classes, and the leave-one-out predictions of all rows follow without
  refitting. They choose the hyperparameters, and they feed a noise model,
  which says how probable it is that a label is wrong. Nothing is trained.

  ```python
  process = ln_tfp.LogisticNormalProcess().fit(embeddings, noisy_labels)
  process.predict_proba(new_embeddings)      # of the true class
  process.leave_one_out_.posterior           # of the true class, given label
  process.transition_matrix_, process.noise_rate_
  ```

  The formulas are in docs/process.md.

  Args:
    kernel: 'linear' for embeddings; 'rbf' for pixels and other raw inputs;
      'auto', which takes 'rbf' where the leave-one-out predictions of at most
      1,000 rows tell 8 % more of the labels (and there are at most 50 classes,
      with five rows each); or a kernel of `tfp.math.psd_kernels`.
    num_inducing: number of inducing points of a kernel other than 'linear'. Up
      to twice as many rows are all used, which is the exact process.
    length_scale: of 'rbf', in median distances between rows.
    regularization: 'loo' for the value of least leave-one-out error, or the
      ratio of noise and prior variances.
    noise_model: whether labels may be wrong; or a `NoiseModel` to take as it
      is, such as that of the labels before the clearest mistakes were put
      right: what is left of them does not tell of the noise any more.
    relabel_rounds: how many times to refit half-way to the true classes that
      the noise model believes in. It helps where noise has structure.
    random_state: seed or generator that draws inducing points and, where there
      are more rows than needed, those that choose hyperparameters.

  Attributes:
    classes_: labels of the K classes.
    kernel_: 'linear', 'rbf' or 'tfp'.
    regularization_: the one in use.
    noise_model_: the `NoiseModel`.
    transition_matrix_: estimated P(label | true class), rows are true classes,
      `[K, K]`; `[M, K, K]` for M annotators. The identity where the features
      tell too little of the labels to learn from which are wrong.
    noise_rate_: estimated share of wrong labels, for M annotators `[M]`. A
      lower bound where people err on ambiguous examples: the class
      probabilities then take a part of the noise upon them (on CIFAR-10N
      "worst" .32 instead of .41). For noise that does not depend on the
      example it is nearly unbiased. Of soft labels the shares of all classes
      but the true one count as wrong, so softness counts as noise. NaN for an
      annotator without labels.
    leave_one_out_: `LeaveOneOut`, the predictions of all rows, each without its
      own label.
    log_marginal_likelihood_: of the targets, the flat intercept integrated out.
  """

  def __init__(self, kernel='auto', num_inducing=1000, length_scale=.5,
               regularization='loo', noise_model=True, relabel_rounds=3,
               random_state=0):
    self.kernel = kernel
    self.num_inducing = num_inducing
    self.length_scale = length_scale
    self.regularization = regularization
    self.noise_model = noise_model
    self.relabel_rounds = relabel_rounds
    self.random_state = random_state

  def fit(self, X: Any, y: Any = None, sample_weight: Any = None,
          certain: Any = None) -> 'LogisticNormalProcess':
    """Fits to labelled rows.

    Args:
      X: array `[N, F]`, read in slices (a memory map stays on disk); or
        batches `x`, `(x, y)` or `(x, y, weight)` from a function that returns
        an iterator, a `tf.data.Dataset`, a `keras.utils.PyDataset` or another
        loader. Batches are read several times and must come in the same order.
      y: labels `[N]` of any type, soft labels `[N, K]` (floating), or labels of
        M annotators `[N, M]` (integers, -1 where one is missing).
      sample_weight: `[N]`, not negative.
      certain: bool `[N]`, labels that are known to be right.
    """
    self._forget()
    self._check_parameters()
    source = self._source(X, y, sample_weight, certain, reset=True)
    self._reader = votes_lib.Reader()
    self._gathered = gatherer = self._gatherer(self._reader)
    gatherer.survey(source)
    for rows in source:
      gatherer.add(rows)
    gatherer.check_not_empty()
    self._check_classes()
    passes = self._passes(source)
    solution = gatherer.solve(self._settings(), passes)
    chunks = None
    if gatherer.num_rows * len(self.classes_) <= _LEAVE_ONE_OUT_SIZE:
      chunks = leave_one_out.concatenate(
          list(_leave_out(solution, passes)))
    self._solution, self._leave_one_out = solution, chunks
    return self

  def partial_fit(self, X: Any, y: Any, classes: Any = None,
                  sample_weight: Any = None) -> 'LogisticNormalProcess':
    """Adds rows, which are then forgotten but for a sample of them.

    After `fit` it goes on with the same features. Otherwise a kernel that is
    not 'linear', and its inducing points, are chosen by the first call's rows.
    Without further passes there is no relabelling, and leave-one-out
    predictions come from `leave_one_out_chunks`.

    Args:
      X: array `[n, F]`.
      y: labels, as for `fit`.
      classes: labels of all classes; needed at the first call, unless `fit`
        came before.
      sample_weight: `[n]`.
    """
    first = not hasattr(self, '_solution')  # also after calls that failed
    if first:
      self._check_parameters()
      if classes is None:
        raise ValueError(
            'classes must be passed on the first call to partial_fit.')
      self._reader = votes_lib.Reader(classes)
      self._check_classes()
      self._gathered = self._gatherer(self._reader)
    source = self._source(X, y, sample_weight, None, reset=first)
    for rows in source:  # all are looked at before any counts
      self._reader.read(rows.y, rows.certain)
    for rows in source:
      self._gathered.add(rows)
    self._solution = None  # until it is asked for
    self._leave_one_out = None
    return self

  def leave_one_out_chunks(
      self, X: Any, y: Any = None, sample_weight: Any = None,
      certain: Any = None) -> Iterator[leave_one_out.LeaveOneOut]:
    """Leave-one-out predictions of the training rows, part by part.

    For data whose N x K predictions are too many to hold.

    Args:
      X: what was passed to `fit`, as all arguments.
      y: labels.
      sample_weight: weights.
      certain: labels that are known to be right.
    """
    validation.check_is_fitted(self)
    return _leave_out(self._solved, self._passes(
        self._source(X, y, sample_weight, certain, reset=False)))

  def predict_proba(self, X: Any) -> np.ndarray:
    """Probabilities of the true classes, `[N, K]`."""
    return self._map(
        X, lambda solved, x: solved.last.noise.probabilities(solved.mean(x)))

  @metaestimators.available_if(lambda self: bool(self.noise_model))
  def noisy_predict_proba(self, X: Any) -> np.ndarray:
    """Probabilities of the labels that would be given, `[N, K]`.

    Of the average annotator, where there are several. Not available without
    a noise model.
    """
    transition = self._solved.last.noise.transition.mean(axis=0)
    return self.predict_proba(X) @ transition

  def predict(self, X: Any) -> np.ndarray:
    """The likeliest true classes, `[N]`."""
    likeliest = np.argmax(self.predict_proba(X), axis=1)
    return self.classes_[likeliest]

  def predict_distribution(
      self, X: Any, observation_noise: bool = True
  ) -> 'logistic_normal.LogisticNormal':
    """The prediction as a batch of N distributions.

    As with `LogisticNormalHead`, K logits beside the dummy class give points of
    a simplex of K + 1 classes. `predictive()` without the dummy class is
    `predict_proba`.

    Args:
      X: array `[N, F]`.
      observation_noise: whether the variance is that of a new label, or of its
        mean alone.
    """
    backend.check_tensorflow('`predict_distribution`')
    from ln_tfp import logistic_normal  # which imports all of TFP
    solved = self._solved
    noise = solved.last.noise
    temperature = 1. / noise.inverse_temperature
    parts = self._map(X, lambda _, x: np.column_stack([
        solved.mean(x) + temperature * noise.bias.astype(x.dtype),
        np.sqrt(solved.choice.variance * (observation_noise +
                                          solved.spread(x)))]))
    loc, scale = parts[:, :-1], parts[:, -1:]
    return logistic_normal.LogisticNormal(
        loc, np.broadcast_to(scale, loc.shape), temperature=temperature)

  @classmethod
  def from_backbone(cls, backbone: keras.Model, x: Any, y: Any = None,
                    batch_size: int = 256,
                    **arguments: Any) -> 'LogisticNormalProcess':
    """Fits to the outputs of a Keras model.

    ```python
    process = ln_tfp.LogisticNormalProcess.from_backbone(
        backbone, images, labels)
    classifier = keras.Sequential([backbone, process.to_keras()])
    ```

    Args:
      backbone: maps inputs to features `[batch, F]`.
      x: array of inputs; or batches as for `fit`, which are read once.
      y: labels as for `fit`, where there are none in batches.
      batch_size: for an array.
      **arguments: of the process.
    """
    return cls(**arguments).fit(
        *keras_bridge.embed(backbone, x, y, batch_size))

  def to_keras(self) -> keras.Model:
    """A plain Keras model, features to `predict_proba`.

    It needs no `ln_tfp` to load. For the kernels 'linear' and 'rbf'.
    """
    return keras_bridge.to_keras(self._solved)

  def initialize_head(self, head: heads.LogisticNormalHead,
                      label_smoothing: float = .01) -> None:
    """Lets the training of a head on the same features start from here.

    The head's mean becomes that of the process, its scale stays. For the kernel
    'linear'.

    Args:
      head: of as many classes.
      label_smoothing: that of the loss.
    """
    keras_bridge.initialize_head(self._solved, head, label_smoothing)

  @property
  def kernel_(self) -> str:
    features = self._solved.features
    return type(getattr(features, 'kernel', features)).__name__.lower()

  @property
  def regularization_(self) -> float:
    return self._solved.choice.regularization

  @property
  def noise_model_(self) -> noise_model.NoiseModel:
    return self._solved.last.noise

  @property
  def transition_matrix_(self) -> np.ndarray:
    matrices = self.noise_model_.transition
    return matrices[0] if len(matrices) == 1 else matrices

  @property
  def noise_rate_(self) -> float | np.ndarray:
    wrong = self._solved.wrong
    return float(wrong[0]) if len(wrong) == 1 else wrong

  @property
  def log_marginal_likelihood_(self) -> float:
    return self._solved.log_marginal_likelihood

  @property
  def leave_one_out_(self) -> leave_one_out.LeaveOneOut:
    validation.check_is_fitted(self)
    if self._leave_one_out is None:
      raise AttributeError(
          '`leave_one_out_` is kept by `fit` for up to '
          f'{_LEAVE_ONE_OUT_SIZE:,} numbers N x K. Use `leave_one_out_chunks`.')
    return self._leave_one_out

  @property
  def _solved(self) -> fitting.Solution:
    validation.check_is_fitted(self)
    if self._solution is None:
      self._solution = self._gathered.solve(self._settings())
    return self._solution

  def __sklearn_is_fitted__(self) -> bool:
    return hasattr(self, '_solution')

  def _forget(self):
    """Leaves nothing of a former fit, should this one fail."""
    for name in ('_reader', '_gathered', '_solution', '_leave_one_out'):
      vars(self).pop(name, None)

  def _gatherer(self, reader):
    return gathering.Gatherer(
        reader, _generator(self.random_state), self.kernel,
        self.num_inducing, self.length_scale)

  def _settings(self):
    return fitting.Settings(
        None if self.regularization == 'loo' else self.regularization,
        self.noise_model, self.relabel_rounds if self.noise_model else 0)

  def _source(self, X, y, sample_weight, certain, reset):
    if sources.is_stream(X):
      source = sources.from_stream(X, y, sample_weight, certain)
      if reset:
        self.n_features_in_ = source.num_features
      return source
    if y is None:  # raises, in scikit-learn's words
      validation.validate_data(self, X, None, reset=reset)
    X = validation.validate_data(
        self, X, reset=reset, ensure_all_finite=False)
    validation.check_consistent_length(X, y, certain)
    if sample_weight is not None:
      sample_weight = validation._check_sample_weight(
          sample_weight, X, ensure_non_negative=True)
    return sources.from_array(X, np.asarray(y), sample_weight, certain)

  def _passes(self, source):
    return fitting.Passes(lambda: (
        (rows, self._reader.read(rows.y, rows.certain)) for rows in source))

  def _map(self, X, function):
    """Applies a function to the rows of an array, slice by slice."""
    solved = self._solved
    X = validation.validate_data(
        self, X, reset=False, ensure_all_finite=False)
    return np.concatenate([
        function(solved, rows.x) for rows in sources.from_array(X)])

  def _check_classes(self):
    self.classes_ = np.sort(self._reader.classes)
    if len(self.classes_) < 2:
      raise ValueError(
          'This solver needs samples of at least 2 classes in the data, but '
          f'the data contains only one class: {self.classes_[0]!r}')
    if isinstance(self.noise_model, noise_model.NoiseModel) and (
        len(self.noise_model.bias) != len(self.classes_)):
      raise ValueError(
          f'Argument `noise_model` must be of {len(self.classes_)} classes, as '
          f'the labels are. Received: {len(self.noise_model.bias)} classes.')

  def _check_parameters(self):
    if (self.kernel not in _KERNELS if isinstance(self.kernel, str)
        else not hasattr(self.kernel, 'matrix')):
      raise ValueError(
          f'Argument `kernel` must be one of {_KERNELS} or a kernel of '
          f'tfp.math.psd_kernels. Received: kernel={self.kernel!r}.')
    batch_shape = getattr(self.kernel, 'batch_shape', ())
    if len(batch_shape):
      raise ValueError('Argument `kernel` must be one kernel. Received: a '
                       f'batch of shape {tuple(batch_shape)}.')
    if not isinstance(
        self.noise_model, (bool, np.bool_, noise_model.NoiseModel)):
      raise ValueError('Argument `noise_model` must be a bool or a NoiseModel. '
                       f'Received: noise_model={self.noise_model!r}.')
    for name, smallest in (('num_inducing', 1), ('relabel_rounds', 0)):
      value = getattr(self, name)
      if not isinstance(value, numbers.Integral) or value < smallest:
        raise ValueError(
            f'Argument `{name}` must be a whole number of at least {smallest}. '
            f'Received: {name}={value!r}.')
    if self.regularization != 'loo':
      _check_positive('regularization', self.regularization)
    _check_positive('length_scale', self.length_scale)


def _leave_out(solution, passes):
  for part in passes(solution.features):
    yield solution.leave_out(part)


def _check_positive(name, value):
  if not isinstance(value, numbers.Real) or not 0 < value < float('inf'):
    raise ValueError(f'Argument `{name}` must be positive. Received: '
                     f'{name}={value!r}.')


def _generator(random_state):
  """NumPy's generator from any of scikit-learn's seeds."""
  if isinstance(random_state, np.random.Generator):
    return random_state
  random = sklearn.utils.check_random_state(random_state)
  return np.random.default_rng(random.randint(2**31))

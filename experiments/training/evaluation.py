"""Metrics of predicted probabilities, in double precision."""

from collections.abc import Sequence

from etils import epy
import numpy as np

with epy.lazy_imports():  # flags are parsed before TensorFlow is imported
  from ln_tfp import metrics

NUM_BINS = 15


def accuracy(predictions: np.ndarray, labels: np.ndarray) -> float | None:
  """The share of right predictions; None of nothing."""
  if not len(labels):
    return None
  return float(np.mean(predictions == labels))


def negative_log_likelihood(
    probabilities: np.ndarray, labels: np.ndarray) -> float:
  """The mean of -log p[label].

  Probabilities below the smallest normal float32 count as that: float32 knows
  no smaller ones, and one certain error shall not make the mean infinite.
  """
  chosen = probabilities[np.arange(len(labels)), labels].astype(np.float64)
  return float(-np.mean(np.log(np.maximum(
      chosen, np.finfo(np.float32).tiny))))


def expected_calibration_error(
    probabilities: np.ndarray, labels: np.ndarray,
    num_bins: int = NUM_BINS) -> float:
  """As `ln_tfp.ExpectedCalibrationError`."""
  confidence = probabilities.max(axis=-1).astype(np.float64)
  hits = np.float64(probabilities.argmax(axis=-1) == labels)
  _, gaps = metrics.calibration_gaps(
      hits, confidence, np.ones_like(hits), num_bins)
  return float(np.abs(gaps).sum() / len(labels))


CLEAN_PART = 'train_accuracy_clean_part'
MISLABELLED = 'train_accuracy_mislabelled_given'
_TRAINING_PARTS = (
    'train_accuracy_given', CLEAN_PART, MISLABELLED,
    'train_accuracy_mislabelled_true')


def training_counts(
    predictions: np.ndarray, given: np.ndarray, true: np.ndarray,
    classes: Sequence[int] = ()) -> np.ndarray:
  """Right predictions and examples of parts of the training set, [parts, 2].

  The parts: all examples against the given labels, the clean ones, and the
  mislabelled ones against the given and against the true labels; then, of each
  of `classes`, the clean and the mislabelled ones against the given labels.
  Counts of several workers can be added.
  """
  wrong = given != true
  fits, knows = predictions == given, predictions == true
  parts = [(fits, np.ones_like(wrong)), (fits, ~wrong), (fits, wrong),
           (knows, wrong)]
  for label in classes:
    parts += [(fits, part & (true == label)) for part in (~wrong, wrong)]
  return np.array([
      [np.sum(right & part), np.sum(part)] for right, part in parts],
      np.float64)


def training_accuracies(
    counts: np.ndarray,
    classes: Sequence[int] = ()) -> dict[str, float | None]:
  """The accuracies by name; None where a part is empty."""
  names = [*_TRAINING_PARTS, *(
      of_class(name, label) for label in classes
      for name in (CLEAN_PART, MISLABELLED))]
  return {
      name: float(right / total) if total else None
      for name, (right, total) in zip(names, counts, strict=True)}


def of_class(name: str, label: int) -> str:
  """What is measured of one class is called so."""
  return f'{name}/{label}'


def moved_classes(noise: str, given: np.ndarray, true: np.ndarray) -> list[int]:
  """The classes that are measured apart, as asymmetric noise moves them.

  None where there are more than ten: a history holds a number an epoch of each.
  """
  moved = np.unique(true[given != true]) if noise.startswith('asym') else []
  return [int(label) for label in moved] if len(moved) <= 10 else []


def calibration(
    probabilities: np.ndarray, labels: np.ndarray,
    num_classes: int) -> dict[str, float]:
  """NLL and ECE over all columns, and over the K classes alone.

  LN has a column more, its dummy class: the paper's figures include it.
  """
  classes = probabilities[:, :num_classes].astype(np.float64)
  classes /= np.maximum(
      classes.sum(axis=-1, keepdims=True), np.finfo(np.float64).tiny)
  return {
      'nll': negative_log_likelihood(probabilities, labels),
      'ece': expected_calibration_error(probabilities, labels),
      'nll_classes': negative_log_likelihood(classes, labels),
      'ece_classes': expected_calibration_error(classes, labels),
  }

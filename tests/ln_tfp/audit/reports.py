"""Reports made by hand, for tests."""

import numpy as np

import ln_tfp
from ln_tfp.audit import trust


def make(wrong, given=None, num_classes=2, certain=None, **changes):
  """Returns a report of labels that are wrong with given probabilities."""
  wrong = np.asarray(wrong, np.float64)
  given = np.zeros(len(wrong), int) if given is None else np.asarray(given)
  names = changes.get(
      'class_names', tuple(f'class {k}' for k in range(num_classes)))
  alternative = (given + 1) % num_classes
  is_issue = np.zeros(len(wrong), bool)
  fields = dict(
      ids=np.arange(len(wrong)), class_names=names, given=given,
      alternative=alternative, quality=1. - wrong, wrong_probability=wrong,
      is_issue=is_issue, threshold=0.,
      nearest_classes=np.stack([given, alternative], axis=1),
      nearest_probabilities=np.stack([1. - wrong, wrong], axis=1),
      transition_matrix=np.eye(num_classes), noise_rate=float(wrong.mean()),
      noise_rate_kind='lower bound', certain=certain,
      trust=trust.assess(given, given, is_issue, names, kind='leave-one-out'))
  return ln_tfp.audit.LabelReport(**{**fields, **changes})

"""Tests that the audit finds what it promises, on digits."""

import numpy as np
import pytest
from sklearn import metrics

from experiments import data
import ln_tfp
from ln_tfp.audit.command import fitting

pytestmark = [pytest.mark.slow, pytest.mark.thorough]


def _audit(noise):
  source = data.load('digits')
  inputs, clean, ids = (
      np.concatenate([getattr(source.train, name), getattr(source.test, name)])
      for name in ('inputs', 'true', 'ids'))
  noisy = ln_tfp.noise.corrupt(
      clean, noise, 1, ids, mapping=data.traits('digits').mapping)
  examples = data.Examples(inputs, noisy, clean, ids)
  model = fitting.fit(inputs, noisy, 10, epochs=60, seed=1)
  return examples, ln_tfp.audit_labels(model, inputs, noisy)


@pytest.mark.parametrize('noise, auroc, precision, f1, matrix_error', [
    ('sym:0.4', .996, .99, .94, .08),
    ('asym:0.3', .993, .975, .93, .08)])
def test_one_training_finds_the_wrong_labels_of_digits(
    noise, auroc, precision, f1, matrix_error):
  noisy, report = _audit(noise)
  wrong = noisy.is_noisy
  assert metrics.roc_auc_score(wrong, -report.quality) >= auroc
  assert metrics.average_precision_score(wrong, -report.quality) >= precision
  assert metrics.f1_score(wrong, report.is_issue) >= f1
  np.testing.assert_allclose(
      report.transition_matrix, noisy.transition_matrix(10), atol=matrix_error)
  assert abs(report.noise_rate - noisy.rate) < .03


def test_clean_labels_raise_few_false_alarms():
  _, report = _audit('none')
  assert report.noise_rate < .01

"""Predicates over the results behind figures, for `claims`."""

import statistics

import numpy as np

from experiments import accuracy_evolution
from experiments import label_smoothing
from experiments import residuals
from experiments import sensitivity
from experiments import toy_datasets
from experiments.output import evidence

# Whether it holds, and the numbers that were compared.
Outcome = tuple[bool, str]


def toy_boundary(facts: evidence.Facts, dataset: str) -> Outcome:
  """CE fits over 90 % of the noisy labels, LN fewer; LN tests better."""
  runs = {result.run['method']: result.metrics
          for result in facts.figure('toy_datasets', toy_datasets.NOISE)
          if result.run['dataset'] == dataset}
  fits = {name: 100. * m['train_accuracy_given'] for name, m in runs.items()}
  test = {name: 100. * m['test_accuracy'] for name, m in runs.items()}
  holds = fits['LN'] <= 90. < fits['CE'] and test['CE'] < test['LN']
  return holds, (
      f"fitted labels: CE {fits['CE']:.1f}, LN {fits['LN']:.1f}; test: "
      f"CE {test['CE']:.1f}, LN {test['LN']:.1f}")


def fits_fewer_wrong_labels(facts: evidence.Facts, dataset: str) -> Outcome:
  """LN fits fewer wrong labels than Het-tau-Sigma, and degrades less."""
  groups = evidence.grouped(
      facts.figure(
          f'accuracy_evolution-{dataset}', *accuracy_evolution.NOISES),
      'noise', 'method')
  parts, holds = [], True
  for noise, methods in groups.items():
    fitted, fallen = (
        {name: statistics.fmean(map(measure, methods[name]))
         for name in ('LN', 'Het-tau-Sigma')}
        for measure in (_fitted_wrong_labels, _fall))
    holds &= all(value['LN'] < value['Het-tau-Sigma']
                 for value in (fitted, fallen))
    parts.append(
        f"{noise}: fits {fitted['LN']:.1f} against "
        f"{fitted['Het-tau-Sigma']:.1f} % of the wrong labels, falls "
        f"{fallen['LN']:.1f} against {fallen['Het-tau-Sigma']:.1f} points")
  return holds, '; '.join(parts)


def het_degrades(facts: evidence.Facts, dataset: str) -> Outcome:
  """Het-tau-Sigma ends more than a point below its best epoch."""
  groups = evidence.grouped(
      facts.figure(
          f'accuracy_evolution-{dataset}', *accuracy_evolution.NOISES),
      'noise', 'method')
  falls = {noise: statistics.fmean(map(_fall, methods['Het-tau-Sigma']))
           for noise, methods in groups.items()}
  return min(falls.values()) > 1., 'points below the best epoch: ' + ', '.join(
      f'{noise} {fall:.1f}' for noise, fall in falls.items())


def _fitted_wrong_labels(result):
  return 100. * result.metrics['train_accuracy_mislabelled_given']


def _fall(result):
  """From the best to the last epoch, on clean validation labels."""
  history = 100. * np.array(result.history['validation_accuracy_clean'])
  return float(history.max() - history[-1])


def small_tau_overfits(facts: evidence.Facts, dataset: str) -> Outcome:
  """At the least tau accuracy is below the best, more wrong labels fitted."""
  groups = _by_setting(
      facts, f'sensitivity-{dataset}', sensitivity.NOISE, 'temperature')
  parts, holds = [], True
  for min_scale, by_tau in groups.items():
    test = {tau: _mean(runs, 'test_accuracy') for tau, runs in by_tau.items()}
    wrong = {tau: _mean(runs, 'train_accuracy_mislabelled_given')
             for tau, runs in by_tau.items()}
    low, best = min(test), max(test, key=test.get)
    holds &= test[low] < test[best] and wrong[low] > wrong[best]
    parts.append(
        f'lambda {min_scale:g}: tau {low:g} {test[low]:.1f}, tau {best:g} '
        f'{test[best]:.1f} (fits {wrong[low]:.1f} and {wrong[best]:.1f} % of '
        'the wrong labels)')
  return holds, '; '.join(parts)


def slow_convergence(facts: evidence.Facts, dataset: str) -> Outcome:
  """At the largest tau a small lambda leaves a point more labels unfitted."""
  groups = _by_setting(
      facts, f'sensitivity-{dataset}', sensitivity.NOISE, 'temperature')
  high = max(max(by_tau) for by_tau in groups.values())
  clean = {min_scale: _mean(by_tau[high], 'train_accuracy_clean_part')
           for min_scale, by_tau in groups.items()}
  return clean[min(clean)] < clean[max(clean)] - 1., (
      f'tau {high:g}, right training labels fitted: ' + ', '.join(
          f'lambda {scale:g} {value:.1f} %'
          for scale, value in clean.items()))


def smoothing_matters_little(facts: evidence.Facts, dataset: str) -> Outcome:
  """For small lambda, all t give accuracies within three points."""
  groups = _by_setting(
      facts, f'label_smoothing-{dataset}', label_smoothing.NOISE,
      'label_smoothing')
  parts, holds = [], True
  for min_scale, by_t in groups.items():
    if min_scale < 1.:
      test = [_mean(runs, 'test_accuracy') for runs in by_t.values()]
      holds &= max(test) - min(test) < 3.
      parts.append(f'lambda {min_scale:g}: {min(test):.1f} to {max(test):.1f}')
  if not parts:
    raise evidence.NotRun('no lambda below 1 was run')
  return holds, '; '.join(parts)


def smoothing_hurts(facts: evidence.Facts, dataset: str) -> Outcome:
  """For lambda = 1 the largest t is worse than the least."""
  groups = _by_setting(
      facts, f'label_smoothing-{dataset}', label_smoothing.NOISE,
      'label_smoothing')
  if 1. not in groups:
    raise evidence.NotRun('lambda = 1 was not run')
  test = {t: _mean(runs, 'test_accuracy') for t, runs in groups[1.].items()}
  low, high = min(test), max(test)
  return test[high] < test[low], (
      f't {low:g} {test[low]:.1f}, t {high:g} {test[high]:.1f}')


def covariance_resists(facts: evidence.Facts, dataset: str) -> Outcome:
  """With Sigma_theta in training, fewer wrong labels are fitted than with I."""
  return _covariance_resists(
      facts.figure(f'residuals-{dataset}', residuals.MAIN))


def covariance_resists_others(facts: evidence.Facts, dataset: str) -> Outcome:
  """The same for the noises of the appendix."""
  return _covariance_resists(facts.figure(
      f'residuals_appendix-{dataset}', residuals.SYMMETRIC,
      *residuals.HUMAN_NOISES))


def _covariance_resists(results):
  fitted = {}
  for result in results:
    fitted.setdefault(result.run['noise'], {})[
        result.hyperparameters['covariance']] = _fitted_wrong_labels(result)
  return all(each['full'] < each['identity'] for each in fitted.values()), (
      'wrong labels fitted: ' + '; '.join(
          f"{noise}: I {each['identity']:.1f} %, Sigma_theta "
          f"{each['full']:.1f} %" for noise, each in fitted.items()))


def covariance_reweights(facts: evidence.Facts, dataset: str) -> Outcome:
  """Sigma_theta raises the median loss of right labels, lowers the wrong's."""
  numbers = facts.numbers(f'residuals_log-{dataset}', residuals.LOG)
  medians = {
      (sigma, label): numbers[f'median, Sigma_eval = {sigma}, {label} labels']
      for sigma in ('I', 'Sigma_theta') for label in ('right', 'wrong')}
  holds = (medians['Sigma_theta', 'right'] > medians['I', 'right']
           and medians['Sigma_theta', 'wrong'] < medians['I', 'wrong'])
  return holds, '; '.join(
      f"{label} labels: median {medians['I', label]:.3g} without, "
      f"{medians['Sigma_theta', label]:.3g} with Sigma_theta"
      for label in ('right', 'wrong'))


def _by_setting(facts, figure, noise, setting):
  """Results by lambda, then by another hyperparameter."""
  groups = {}
  for result in facts.figure(figure, noise):
    values = result.hyperparameters
    groups.setdefault(values['min_scale'], {}).setdefault(
        values[setting], []).append(result)
  return groups


def _mean(results, metric):
  return 100. * statistics.fmean(result.metrics[metric] for result in results)

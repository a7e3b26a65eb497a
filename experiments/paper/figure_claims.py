"""The claims of the paper that rest on its figures."""

import statistics

import numpy as np

from experiments.paper import claims
from experiments.paper import grids

CLAIMS = claims.Claims()

_WITH_HUMAN_LABELS = tuple(grids.CALIBRATION_DATASETS.values())


@CLAIMS.add(
    'CE fits nearly all noisy labels (more than 90 %); LN does not, and '
    'generalises better.',
    '5.3, figure 3', grids.TOY_DATASETS)
def _toy_boundary(facts, dataset):
  runs = {result.run['method']: result.metrics
          for result in facts.figure('toy_datasets', grids.TOY_NOISE)
          if result.run['dataset'] == dataset}
  fits = {name: 100. * m['train_accuracy_given'] for name, m in runs.items()}
  test = {name: 100. * m['test_accuracy'] for name, m in runs.items()}
  holds = fits['LN'] <= 90. < fits['CE'] and test['CE'] < test['LN']
  return holds, (
      f"fitted labels: CE {fits['CE']:.1f}, LN {fits['LN']:.1f}; test: "
      f"CE {test['CE']:.1f}, LN {test['LN']:.1f}")


@CLAIMS.add(
    'LN fits fewer wrong labels than Het-tau-Sigma, and its validation '
    'accuracy falls less.',
    '5.6, figure 4', grids.SYNTHETIC_DATASETS)
def _fits_fewer_wrong_labels(facts, dataset):
  groups = _evolution(facts, dataset)
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


@CLAIMS.add(
    'Het-tau-Sigma improves early and degrades then (by more than one '
    'point).',
    '5.6, figure 4', grids.SYNTHETIC_DATASETS)
def _het_degrades(facts, dataset):
  groups = _evolution(facts, dataset)
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


@CLAIMS.add(
    'A small tau overfits to the noise.',
    '5.6, figure 5', grids.SYNTHETIC_DATASETS)
def _small_tau_overfits(facts, dataset):
  groups = _by_setting(
      facts, f'sensitivity-{dataset}', grids.SENSITIVITY_NOISE, 'temperature')
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


@CLAIMS.add(
    'A large tau with a small lambda converges slowly (at the end at least '
    'one point fewer of the right labels is fitted).',
    '5.6, figure 5', grids.SYNTHETIC_DATASETS)
def _slow_convergence(facts, dataset):
  groups = _by_setting(
      facts, f'sensitivity-{dataset}', grids.SENSITIVITY_NOISE, 'temperature')
  high = max(max(by_tau) for by_tau in groups.values())
  clean = {min_scale: _mean(by_tau[high], 'train_accuracy_clean_part')
           for min_scale, by_tau in groups.items()}
  return clean[min(clean)] < clean[max(clean)] - 1., (
      f'tau {high:g}, right training labels fitted: ' + ', '.join(
          f'lambda {scale:g} {value:.1f} %'
          for scale, value in clean.items()))


@CLAIMS.add(
    'Label smoothing matters little (less than three points) for small '
    'lambda.',
    'G.1, figure 8', grids.SYNTHETIC_DATASETS)
def _smoothing_matters_little(facts, dataset):
  groups = _by_setting(
      facts, f'label_smoothing-{dataset}', grids.SMOOTHING_NOISE,
      'label_smoothing')
  parts, holds = [], True
  for min_scale, by_t in groups.items():
    if min_scale < 1.:
      test = [_mean(runs, 'test_accuracy') for runs in by_t.values()]
      holds &= max(test) - min(test) < 3.
      parts.append(f'lambda {min_scale:g}: {min(test):.1f} to {max(test):.1f}')
  if not parts:
    raise claims.NotRun('no lambda below 1 was run')
  return holds, '; '.join(parts)


@CLAIMS.add(
    'For lambda = 1 more label smoothing degrades accuracy.',
    'G.1, figure 8', grids.SYNTHETIC_DATASETS)
def _smoothing_hurts(facts, dataset):
  groups = _by_setting(
      facts, f'label_smoothing-{dataset}', grids.SMOOTHING_NOISE,
      'label_smoothing')
  if 1. not in groups:
    raise claims.NotRun('lambda = 1 was not run')
  test = {t: _mean(runs, 'test_accuracy') for t, runs in groups[1.].items()}
  low, high = min(test), max(test)
  return test[high] < test[low], (
      f't {low:g} {test[low]:.1f}, t {high:g} {test[high]:.1f}')


@CLAIMS.add(
    'Where the covariance is learnt, fewer of the wrong labels are fitted.',
    '5.6, figure 6', _WITH_HUMAN_LABELS)
def _covariance_resists(facts, dataset):
  return _fewer_wrong_labels(
      facts.figure(f'residuals-{dataset}', grids.RESIDUALS_MAIN))


@CLAIMS.add(
    'Where the covariance is learnt, fewer of the wrong labels are fitted '
    '(symmetric noise and human labels).',
    'G.3', _WITH_HUMAN_LABELS)
def _covariance_resists_others(facts, dataset):
  return _fewer_wrong_labels(facts.figure(
      f'residuals_appendix-{dataset}', grids.RESIDUALS_SYMMETRIC,
      *grids.RESIDUALS_HUMAN))


def _fewer_wrong_labels(results):
  fitted = {}
  for result in results:
    fitted.setdefault(result.run['noise'], {})[
        result.hyperparameters['covariance']] = _fitted_wrong_labels(result)
  return all(each['full'] < each['identity'] for each in fitted.values()), (
      'wrong labels fitted: ' + '; '.join(
          f"{noise}: I {each['identity']:.1f} %, Sigma_theta "
          f"{each['full']:.1f} %" for noise, each in fitted.items()))


@CLAIMS.add(
    'Sigma_theta raises the terms of right labels with low residuals (the '
    'lowest tenth), and lowers those of wrong labels and of hard right ones '
    '(the highest tenth): the middle panel against the right one.',
    '5.6, figure 6', _WITH_HUMAN_LABELS)
def _middle_against_right(facts, dataset):
  return _reweighted(facts.numbers(
      f'residuals-{dataset}', grids.RESIDUALS_MAIN), [grids.RESIDUALS_MAIN])


@CLAIMS.add(
    'Sigma_theta raises the terms of right labels with low residuals (the '
    'lowest tenth) and lowers those of high residuals (the highest tenth), of '
    'right and of wrong labels (symmetric noise and human labels).',
    'G.3', _WITH_HUMAN_LABELS)
def _middle_against_bottom(facts, dataset):
  noises = grids.RESIDUALS_SYMMETRIC, *grids.RESIDUALS_HUMAN
  return _reweighted(
      facts.numbers(f'residuals_appendix-{dataset}', *noises), noises)


def _reweighted(numbers, noises):
  parts, holds = [], True
  for noise in noises:
    low, hard, wrong = (numbers[f'{noise}: Sigma_theta scales {which} by']
                        for which in grids.RESIDUALS_ENDS)
    holds &= hard < 1. < low and wrong < 1.
    parts.append(f'{noise}: low right x {low:.2g}, high right x {hard:.2g}, '
                 f'high wrong x {wrong:.2g}')
  return holds, 'medians of the quotient: ' + '; '.join(parts)


@CLAIMS.add(
    'With a learnt covariance the residuals are bimodal (at least two modes '
    'on a log axis).',
    '5.6, figure 6', _WITH_HUMAN_LABELS)
def _bimodal(facts, dataset):
  numbers = facts.numbers(f'residuals-{dataset}', grids.RESIDUALS_MAIN)
  modes = numbers[f'{grids.RESIDUALS_MAIN}: modes of the residuals']
  return modes >= 2, f'{modes:.0f} modes'


@CLAIMS.add(
    'The covariance raises the loss of right labels and lowers that of '
    'wrong ones.',
    'D, figure 7', ('digits', 'mnist', 'fashion_mnist', 'cifar10'))
def _covariance_reweights(facts, dataset):
  numbers = facts.numbers(f'residuals_log-{dataset}', grids.RESIDUALS_LOG)
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


def _evolution(facts, dataset):
  """Results by noise, then by method."""
  groups = {}
  for result in facts.figure(
      f'accuracy_evolution-{dataset}', *grids.EVOLUTION_NOISES):
    groups.setdefault(result.run['noise'], {}).setdefault(
        result.run['method'], []).append(result)
  return groups

"""How long runs will take, from those that are finished."""

from collections.abc import Iterable
import statistics

from ln_tfp import training

# Seconds per epoch on two CPU cores, for data sets without a finished run.
_SECONDS_PER_EPOCH = {
    'two_moons': .01, 'circles': .01, 'digits': .06, 'digits_n': .06,
    'mnist': 30., 'fashion_mnist': 30., 'cifar10': 1400., 'cifar100': 1400.,
    'cifar10n': 1400., 'cifar100n': 1400., 'clothing1m': 60_000.,
}
# Drawing samples makes these methods slower.
_SLOWER = {'Het': 1.5, 'Het-tau': 1.5, 'Het-tau-Sigma': 1.5}


class Estimates:
  """Seconds a run, learnt from finished runs.

  Args:
    results: of finished runs.
  """

  def __init__(self, results: Iterable[training.Result] = ()):
    self._seconds = {}
    for result in results:
      self.add(result)

  def add(self, result: training.Result) -> None:
    """Learns from a finished run."""
    run, epochs = result.run, len(result.seconds['epochs'])
    if epochs:
      for kind in ((run['dataset'], run['model'], run['method']),
                   (run['dataset'], run['model'])):
        self._seconds.setdefault(kind, []).append(
            result.seconds['wall'] / epochs)

  def seconds(self, run: training.Run) -> float:
    """Of the same data set, network and method, or of the next best."""
    for kind in ((run.dataset, run.model, run.method),
                 (run.dataset, run.model)):
      if kind in self._seconds:
        return run.epochs * statistics.median(self._seconds[kind])
    return run.epochs * (
        _SECONDS_PER_EPOCH[run.dataset] * _SLOWER.get(run.method, 1.))

  def knows(self, run: training.Run) -> bool:
    """Whether an estimate comes from finished runs."""
    return (run.dataset, run.model) in self._seconds


def duration(seconds: float) -> str:
  """Seconds for a person: '4 min'."""
  if seconds < 60:
    return f'{seconds:.0f} s'
  if seconds < 3600:
    return f'{seconds / 60:.0f} min'
  if seconds < 48 * 3600:
    return f'{seconds / 3600:.1f} h'
  return f'{seconds / 86400:.0f} days'

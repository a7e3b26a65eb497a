"""Methods by name."""

import dataclasses
import pkgutil

from experiments import methods

# In the order of the paper's tables. They are imported on demand: the names
# alone need no TensorFlow.
_PLACES = {
    'CE': 'experiments.methods.ce:CE',
    'GCE': 'experiments.methods.gce:GCE',
    'NAN': 'experiments.methods.nan:NAN',
    'Forward': 'experiments.methods.forward:Forward',
    'LS': 'experiments.methods.ls:LS',
    'Het': 'experiments.methods.het:Het',
    'Het-tau': 'experiments.methods.het_tau:HetTau',
    'Het-tau-Sigma': 'experiments.methods.het_tau_sigma:HetTauSigma',
    'LN': 'experiments.methods.ln:LN',
}
NAMES = tuple(_PLACES)


def asks(method: 'methods.Method') -> type['methods.Method'] | None:
  """Returns the method, if any, that needs a finished run of this one."""
  for place in _PLACES.values():
    asking = pkgutil.resolve_name(place)
    if asking().requires() == method:
      return asking
  return None


def get(name: str, **hyperparameters) -> 'methods.Method':
  """Returns the method `name`, one of `NAMES`, with these hyperparameters."""
  if name not in NAMES:
    raise ValueError(
        f'Argument `name` must be one of {", ".join(NAMES)}. '
        f'Received: name={name!r}.')
  method = pkgutil.resolve_name(_PLACES[name])
  known = tuple(field.name for field in dataclasses.fields(method))
  for key in hyperparameters:
    if key not in known:
      raise ValueError(
          f'{name} has no hyperparameter `{key}`; it has '
          f'{", ".join(known) or "none"}.')
  try:
    return method(**hyperparameters)
  except TypeError as error:
    raise TypeError(
        f'{name} does not take {hyperparameters}: {error}.') from error

"""Methods by name."""

import dataclasses

from experiments.methods import base
from experiments.methods import ce
from experiments.methods import forward
from experiments.methods import gce
from experiments.methods import het
from experiments.methods import het_tau
from experiments.methods import het_tau_sigma
from experiments.methods import ln
from experiments.methods import ls
from experiments.methods import nan

# In the order of the paper's tables.
_CLASSES = {
    method.name: method
    for method in (
        ce.CE, gce.GCE, nan.NAN, forward.Forward, ls.LS, het.Het,
        het_tau.HetTau, het_tau_sigma.HetTauSigma, ln.LN)
}
NAMES = tuple(_CLASSES)


def get(name: str, **hyperparameters) -> base.Method:
  """Returns the method `name`, one of `NAMES`, with these hyperparameters."""
  if name not in _CLASSES:
    raise ValueError(
        f'Argument `name` must be one of {", ".join(NAMES)}. '
        f'Received: name={name!r}.')
  known = tuple(field.name for field in dataclasses.fields(_CLASSES[name]))
  for key in hyperparameters:
    if key not in known:
      raise ValueError(
          f'{name} has no hyperparameter `{key}`; it has '
          f'{", ".join(known) or "none"}.')
  try:
    return _CLASSES[name](**hyperparameters)
  except TypeError as error:
    raise TypeError(
        f'{name} does not take {hyperparameters}: {error}.') from error

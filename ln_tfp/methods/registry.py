"""Methods by name."""

import dataclasses

from ln_tfp.methods import base
from ln_tfp.methods import ce
from ln_tfp.methods import forward
from ln_tfp.methods import gce
from ln_tfp.methods import het
from ln_tfp.methods import het_tau
from ln_tfp.methods import het_tau_sigma
from ln_tfp.methods import ln
from ln_tfp.methods import ls
from ln_tfp.methods import nan

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

"""Methods by name."""

from __future__ import annotations

import dataclasses

from experiments.methods import base
from experiments.methods import ce
from experiments.methods import discovery
from experiments.methods import forward
from experiments.methods import gce
from experiments.methods import het
from experiments.methods import ln
from experiments.methods import ls
from experiments.methods import nan

# In the order of the paper's tables.
_CLASSES = {
    method.name: method
    for method in (
        ce.CE, gce.GCE, nan.NAN, forward.Forward, ls.LS, het.Het, het.HetTau,
        het.HetTauSigma, ln.LN)
}
# A method of one's own is a file in this folder (docs/extending.md).
_CLASSES |= discovery.others(_CLASSES.values())
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
  return _CLASSES[name](**hyperparameters)


def asks(method: base.Method) -> type[base.Method] | None:
  """Returns the method, if any, that needs a finished run of this one."""
  for asking in _CLASSES.values():
    if asking().requires() == method:
      return asking
  return None

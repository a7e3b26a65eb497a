"""Methods by name."""

from __future__ import annotations

import dataclasses
import functools

from experiments.methods import base
from experiments.methods import ce
from experiments.methods import coteaching
from experiments.methods import discovery
from experiments.methods import elr
from experiments.methods import forward
from experiments.methods import gce
from experiments.methods import gjs
from experiments.methods import het
from experiments.methods import ln
from experiments.methods import ls
from experiments.methods import mixup
from experiments.methods import nan
from experiments.methods import robust
from experiments.methods import sgn
from experiments.methods import sop

# Those of the paper are in the order of its tables.
_GROUPS = {
    'paper': (
        ce.CE, gce.GCE, nan.NAN, forward.Forward, ls.LS, het.Het, het.HetTau,
        het.HetTauSigma, ln.LN),
    'losses': (
        robust.SCE, robust.NCERCE, robust.ANLCE, robust.AGCE, robust.TaylorCE,
        robust.EpsSoftmax, robust.Bootstrapping),
    'state': (
        elr.ELR, sop.SOP, mixup.Mixup, coteaching.CoTeaching, gjs.GJS),
    'successors': (sgn.SGN, sgn.SGNEMA),
}
_CLASSES = {
    method.name: method for group in _GROUPS.values() for method in group}
# A method of one's own is a file in this folder (docs/extending.md).
_CLASSES |= discovery.others(_CLASSES.values())
NAMES = tuple(_CLASSES)
# Names for several methods: the paper's, other losses of one example, methods
# that need more of the trainer, LN's successors, and all of them.
GROUPS = {
    group: tuple(method.name for method in members)
    for group, members in _GROUPS.items()} | {'all': NAMES}


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
  """Returns the method, if any, that needs an estimate from this one's run."""
  return next((asking for asking, needed in _required() if needed == method),
              None)


@functools.cache
def _required() -> list[tuple[type[base.Method], base.Method]]:
  """The methods that ask for an estimate, each with the one it asks."""
  return [(asking, needed) for asking in _CLASSES.values()
          if not asking.reads and (needed := asking().requires()) is not None]

"""Cross entropy, the baseline."""

import dataclasses
from typing import ClassVar

from experiments.methods import base


@dataclasses.dataclass(frozen=True)
class CE(base.LogitsMethod):
  """Cross entropy with the given labels."""

  name: ClassVar[str] = 'CE'

  def loss(self, labels, outputs, *, num_classes, seed, step, ids):
    del num_classes, seed, step, ids  # nothing random
    return base.cross_entropy(labels, outputs)

  @classmethod
  def grid(cls, dataset):
    del dataset  # nothing to search
    yield cls()

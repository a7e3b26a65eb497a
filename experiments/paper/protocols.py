"""What the paper's text and the authors' code do differently, by name.

The text is the default, `protocol='paper'`. `protocol='authors'` sets all
options of a data set to what the authors' public code does. A `Run` can also
set single options on top of its protocol.
"""

from collections.abc import Mapping
import dataclasses

from experiments import data

NAMES = ('paper', 'authors')


@dataclasses.dataclass(frozen=True)
class Options:
  """The options of one run; the defaults are the paper's text.

  Attributes:
    noise_mode: 'coin' flips each label with the given probability, 'exact'
      flips an exact share of them (per class where the noise is asymmetric).
    truck: asymmetric noise on CIFAR-10 moves truck to automobile, too.
    split: 'ids' holds out 10 % for validation by example id, 'authors' uses
      the sizes of the authors' code.
    pad: pixels of padding on each side before the random crop of CIFAR.
    drop_remainder: leave out the last, short batch of validation and test.
    dummy_class: accuracy counts a prediction of LN's dummy class, as an error;
      otherwise the dummy class is never predicted.
    label_smoothing: replaces LN's label smoothing; None leaves it alone.
    weight_decay: replaces the run's weight decay; None leaves it alone.
    decay: what weight decay is on: 'all' that is trainable, or
      'kernels_and_biases', which leaves batch normalisation out.
    drop_epoch: the learning rate is divided by ten after this many epochs;
      None keeps it constant.
  """
  noise_mode: str = 'coin'
  truck: bool = False
  split: str = 'ids'
  pad: int = 2
  drop_remainder: bool = False
  dummy_class: bool = False
  label_smoothing: float | None = None
  weight_decay: float | None = None
  decay: str = 'all'
  drop_epoch: int | None = None

  def __post_init__(self):
    for field in dataclasses.fields(self):
      value = getattr(self, field.name)
      if isinstance(value, int) and isinstance(0., field.type):
        value = float(value)
        object.__setattr__(self, field.name, value)  # the dataclass is frozen
      if not isinstance(value, field.type):
        kind = getattr(field.type, '__name__', field.type)
        raise ValueError(
            f'Option `{field.name}` must be {kind}. '
            f'Received: {field.name}={value!r}.')
    for name, allowed in (
        ('noise_mode', ('coin', 'exact')), ('split', ('ids', 'authors')),
        ('decay', ('all', 'kernels_and_biases'))):
      if getattr(self, name) not in allowed:
        raise ValueError(
            f'Option `{name}` must be one of {allowed}. '
            f'Received: {name}={getattr(self, name)!r}.')
    if self.pad < 0:
      raise ValueError(
          f'Option `pad` must not be negative. Received: pad={self.pad}.')


# Of the authors' code on every data set; for the rest see `data.Traits`.
_EVALUATION = dict(drop_remainder=True, dummy_class=True)


def options(
    protocol: str, dataset: str, changes: Mapping[str, object]) -> Options:
  """The options of a protocol on a data set, with single ones changed.

  Args:
    protocol: 'paper' or 'authors'.
    dataset: name of the data set. Data sets the authors did not use have only
      their way of evaluating.
    changes: options by name, stronger than the protocol.

  Returns:
    The `Options`.
  """
  if protocol not in NAMES:
    raise ValueError(
        f'Argument `protocol` must be one of {NAMES}. '
        f'Received: protocol={protocol!r}.')
  known = [field.name for field in dataclasses.fields(Options)]
  for name in changes:
    if name not in known:
      raise ValueError(
          f'Argument `options` knows only {known}. Received: {name!r}.')
  traits = data.traits(dataset)
  base = {} if protocol == 'paper' else {**_EVALUATION, **traits.authors}
  chosen = Options(**{**base, **changes})
  if chosen.truck and not traits.mapping_of_code:
    raise ValueError(
        f'Option `truck` is one of CIFAR-10. Received: dataset={dataset!r}.')
  return chosen

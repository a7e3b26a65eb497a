"""The look of the figures, and how they are saved.

A figure is three files in `OUTPUT_DIR/figures`: NAME.png, NAME.pdf, and
NAME.json with its caption and the runs behind it, from which the report is
made. Each file is written atomically.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import io
import json
import logging
import os
import pathlib
import shlex
import sys

import matplotlib
from matplotlib import figure as mpl_figure
import numpy as np

from experiments import recipes
from ln_tfp import page
from ln_tfp import training

# Okabe and Ito's colours, which the colour blind can tell apart.
COLOURS = ('#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9')
CLEAN, MISLABELLED = COLOURS[:2]

_STYLE = {
    'axes.grid': True,
    'axes.prop_cycle': matplotlib.cycler(color=COLOURS),
    'axes.spines.right': False,
    'axes.spines.top': False,
    'axes.titlesize': 10,
    'axes.labelsize': 9,
    'figure.constrained_layout.use': True,
    'font.size': 9,
    'grid.alpha': .3,
    'grid.linewidth': .6,
    'legend.fontsize': 8,
    'legend.frameon': False,
    'lines.linewidth': 1.4,
    'pdf.fonttype': 42,  # text stays text
    'savefig.dpi': 160,
    'svg.hashsalt': 'ln_tfp',
    'xtick.labelsize': 8,
    'ytick.labelsize': 8,
}
# Saving a PDF tells the log of every glyph, and absl shows the log.
logging.getLogger('fontTools').setLevel(logging.WARNING)
# Neither the time nor the version: equal figures are equal files.
_METADATA = {'png': {'Software': None},
             'pdf': {'CreationDate': None, 'Producer': None, 'Creator': None}}


@dataclasses.dataclass(frozen=True)
class Record:
  """What the report needs to know of a figure, NAME.json.

  Attributes:
    name: of the files.
    title: one line.
    caption: what is to be seen, as measured; a few sentences.
    runs: the keys of the results behind it; none where nothing is trained.
    numbers: what it shows, by name, as far as a few numbers can say it.
    command: that made it.
  """
  name: str
  title: str
  caption: str
  runs: tuple[str, ...] = ()
  numbers: Mapping[str, float] = dataclasses.field(default_factory=dict)
  command: str = dataclasses.field(default_factory=lambda: _command())


def style() -> matplotlib.rc_context:
  """A context in which everything that is drawn has the house style."""
  return matplotlib.rc_context(_STYLE)


def panels(
    rows: int, columns: int, *, width: float = 2.6, height: float = 2.4,
    **arguments) -> tuple[mpl_figure.Figure, np.ndarray]:
  """A new figure and its axes `[rows, columns]`.

  Args:
    rows: number of rows.
    columns: number of columns.
    width: of one panel, in inches.
    height: of one panel, in inches.
    **arguments: passed on to `Figure.subplots`.
  """
  figure = mpl_figure.Figure(figsize=(width * columns, height * rows))
  return figure, figure.subplots(rows, columns, squeeze=False, **arguments)


def save(
    figure: mpl_figure.Figure, output_dir: str | os.PathLike,
    record: Record) -> pathlib.Path:
  """Saves a figure and its record; returns the path of the PNG file."""
  directory = pathlib.Path(output_dir) / 'figures'
  directory.mkdir(parents=True, exist_ok=True)
  for suffix, metadata in _METADATA.items():
    content = io.BytesIO()
    figure.savefig(content, format=suffix, metadata=metadata)
    page.write_atomically(
        directory / f'{record.name}.{suffix}', content.getvalue())
  document = json.dumps(dataclasses.asdict(record), indent=1) + '\n'
  page.write_atomically(
      directory / f'{record.name}.json', document.encode())
  return directory / f'{record.name}.png'


def publish(
    draw: Callable[[], mpl_figure.Figure], output_dir: str | os.PathLike,
    record: Record) -> None:
  """Draws a figure in the house style, saves it and prints its path."""
  with style():
    print(save(draw(), output_dir, record))


def read_records(output_dir: str | os.PathLike) -> list[Record]:
  """The records of the figures in a directory, sorted by name.

  Raises:
    ValueError: if a file is not a record, naming it.
  """
  records = []
  for path in sorted((pathlib.Path(output_dir) / 'figures').glob('*.json')):
    try:
      document = json.loads(path.read_text(encoding='utf-8'))
      records.append(Record(**{**document, 'runs': tuple(document['runs'])}))
    except (KeyError, TypeError, ValueError) as error:
      raise ValueError(f'{path} is not the record of a figure.') from error
  return records


def _command() -> str:
  """The command line, as one would type it."""
  program = pathlib.Path(sys.argv[0]).stem
  return shlex.join(['python', '-m', f'experiments.{program}', *sys.argv[1:]])


Measure = Callable[..., dict[str, np.ndarray]]


def measured(
    measure: Measure, result: training.Result, *arguments,
    output_dir: str | os.PathLike) -> dict[str, np.ndarray]:
  """What a function measures on the network of a run, measured once.

  The arrays are kept in OUTPUT_DIR/MEASURE/KEY.npz, so that the figure can be
  drawn again when the weights are gone.

  Args:
    measure: called with the result, the arguments and the output directory.
    result: of the run.
    *arguments: of `measure`.
    output_dir: where the results, the weights and the measurements are.
  """
  file = _measurement(measure, result.key, output_dir)
  if not file.exists():
    arrays = measure(result, *arguments, output_dir=output_dir)
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    file.parent.mkdir(parents=True, exist_ok=True)
    page.write_atomically(file, content.getvalue())
  with np.load(file) as arrays:
    return dict(arrays)


def unmeasured(
    measure: Measure,
    output_dir: str | os.PathLike) -> Callable[[training.Run], bool]:
  """The predicate whether a run's weights are still needed by `measured`."""
  return lambda run: not _measurement(measure, run.key, output_dir).exists()


def _measurement(
    measure: Measure, key: str, output_dir: str | os.PathLike) -> pathlib.Path:
  return pathlib.Path(output_dir) / measure.__name__ / f'{key}.npz'


def finished(
    results: Iterable[training.Result | None]) -> list[training.Result]:
  """The results with metrics: runs may have failed (None) or diverged."""
  results = [result for result in results
             if result is not None and result.status == 'finished']
  if not results:
    raise recipes.BadFlagError('No run has finished, there is no figure.')
  return results


def single(flag: str, values: Sequence[str]) -> str:
  """The only value of a flag of which this figure shows one."""
  if len(values) != 1:
    raise recipes.BadFlagError(
        f'--{flag}: this figure shows one. Received: {",".join(values)}')
  return values[0]


def mean_and_deviation(values: Iterable[float]) -> tuple[float, float]:
  """Mean and standard deviation (n - 1); NaN where there are too few."""
  values = np.array(list(values), float)
  if not len(values):
    return float('nan'), float('nan')
  deviation = values.std(ddof=1) if len(values) > 1 else float('nan')
  return float(values.mean()), float(deviation)

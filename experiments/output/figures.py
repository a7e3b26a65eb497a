"""The look of the figures, and how they are saved.

A figure is three files in `OUTPUT_DIR/figures`: NAME.png, NAME.pdf, and
NAME.json with its caption and the runs behind it, from which the report is
made. Each file is written atomically.
"""

from __future__ import annotations

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
import pkgutil
import shlex
import sys

from absl import flags
from etils import epy
import numpy as np

from experiments import data
from experiments import training
from experiments.cli import recipes
from experiments.output import measurements
from experiments.sweep import launch
from experiments.sweep import store
from experiments.training import results as results_lib

with epy.lazy_imports():
  import matplotlib
  from matplotlib import figure as mpl_figure

  from ln_tfp import files

# Of the two figures with a line for each lambda.
flags.DEFINE_list('min_scales', ['0.316', '0.5', '1'], 'Values of lambda.')

# Okabe and Ito's colours, which the colour blind can tell apart.
COLOURS = ('#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9')
CLEAN, MISLABELLED = COLOURS[:2]

_STYLE = {
    'axes.grid': True,
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
    'savefig.dpi': 150,
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
  return matplotlib.rc_context({
      **_STYLE, 'axes.prop_cycle': matplotlib.cycler(color=COLOURS)})


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
    files.write_atomically(
        directory / f'{record.name}.{suffix}', content.getvalue())
  document = json.dumps(dataclasses.asdict(record), indent=1) + '\n'
  files.write_atomically(
      directory / f'{record.name}.json', document.encode())
  return directory / f'{record.name}.png'


def publish(
    draw: Callable[[], mpl_figure.Figure], output_dir: str | os.PathLike,
    record: Record) -> None:
  """Draws a figure in the house style, saves it and prints its path."""
  with style():
    print(save(draw(), output_dir, record))


def read_record(path: pathlib.Path) -> Record:
  """The record of a figure; raises KeyError, OSError, TypeError
  or ValueError.
  """
  document = results_lib.read_json(path)
  return Record(**{**document, 'runs': tuple(document['runs'])})


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
  drawn again when the weights are gone, until other code makes the result anew.

  Args:
    measure: called with the result, the arguments and the output directory.
    result: of the run.
    *arguments: of `measure`.
    output_dir: where the results, the weights and the measurements are.
  """
  file = _measurement(measure.__name__, result.key, output_dir)
  if not file.exists() or not measurements.stands(
      measurements.code_in_npz(file), result):
    arrays = measure(result, *arguments, output_dir=output_dir)
    content = io.BytesIO()
    np.savez_compressed(
        content, **arrays, **{measurements.CODE: json.dumps(result.code)})
    file.parent.mkdir(parents=True, exist_ok=True)
    files.write_atomically(file, content.getvalue())
  try:
    content = results_lib.read_bounded(file, results_lib.MAX_BYTES)
    with np.load(io.BytesIO(content)) as arrays:
      return {name: array for name, array in arrays.items()
              if name != measurements.CODE}
  except Exception as error:  # NumPy's reader raises almost anything
    raise data.BadDataError(
        f'{file} is not what was measured, move it away: {error}') from error


def measure_in_workers(
    measure: str, found: Iterable[training.Result], *, splits: bool,
    output_dir: str, data_dir: str | None) -> None:
  """Measures, in worker processes, what `measured` then finds.

  Args:
    measure: MODULE:NAME of a function for `measured`, of one more argument: the
      data of the run.
    found: the results; those of which there is a measurement are left out.
    splits: whether the data are the run's splits, with its noise, or the plain
      source.
    output_dir: where results and measurements are.
    data_dir: where the data sets are.
  """
  is_missing = _missing(measure.partition(':')[2], output_dir)
  launch.measure('experiments.output.figures:measure_one', [
      dict(measure=measure, key=result.key, splits=splits,
           output_dir=str(output_dir), data_dir=data_dir)
      for result in found
      if is_missing(training.Run.from_dict(result.run))])


def measure_one(
    measure: str, key: str, splits: bool, output_dir: str,
    data_dir: str | None) -> None:
  """What a worker does for `measure_in_workers`."""
  result = store.Store(output_dir).find(key)
  run = training.Run.from_dict(result.run)
  source = data.load(run.dataset, data_dir)
  if splits:
    source = training.load_splits(run, source=source)
  measured(
      pkgutil.resolve_name(measure), result, source, output_dir=output_dir)


def unmeasured(
    measure: Measure,
    output_dir: str | os.PathLike) -> Callable[[training.Run], bool]:
  """The predicate whether a run's weights are still needed by `measured`."""
  return _missing(measure.__name__, output_dir)


def _missing(
    measure: str, output_dir: str | os.PathLike) -> measurements.Missing:
  return measurements.Missing(
      output_dir, lambda key: _measurement(measure, key, output_dir),
      measurements.code_in_npz)


def _measurement(
    measure: str, key: str, output_dir: str | os.PathLike) -> pathlib.Path:
  return pathlib.Path(output_dir) / measure / f'{key}.npz'


def finished(
    results: Iterable[training.Result | None]) -> list[training.Result]:
  """The results with metrics: runs may have failed (None) or diverged."""
  results = [result for result in results
             if result is not None and result.status == 'finished']
  if not results:
    raise recipes.BadFlagError('No run has finished, there is no figure.')
  return results


def numbers(flag: str, texts: Sequence[str]) -> list[float]:
  """The values of a flag that is a list of positive numbers."""
  try:
    values = [float(text) for text in texts]
  except ValueError as error:
    raise recipes.BadFlagError(f'--{flag}: {error}') from error
  if not values or not all(0. < value < float('inf') for value in values):
    raise recipes.BadFlagError(
        f'--{flag}: must be positive numbers. Received: {",".join(texts)}')
  return sorted(set(values))


# The runs of each point (lambda, x) of a figure, one a seed.
Cells = dict[tuple[float, float], list['training.Run']]


def draw_accuracy(
    cells: Cells, results: Mapping[str, training.Result],
    label: str) -> mpl_figure.Figure:
  """Test accuracy against x, a line for each lambda.

  Points are means over the finished runs, with their standard deviation where
  there are several; points where a run diverged are marked below the axis.

  Args:
    cells: the runs by (lambda, x).
    results: by key.
    label: of x.
  """
  figure, axes = panels(1, 1, width=4., height=2.9)
  ax = axes[0, 0]
  diverged = []
  for min_scale in dict.fromkeys(row for row, _ in cells):
    points = []
    for (row, x), runs in cells.items():
      found = [results[run.key] for run in runs if run.key in results]
      values = [100. * result.metrics['test_accuracy'] for result in found
                if result.status == 'finished']
      if row == min_scale and values:
        points.append((x, np.mean(values), _deviation(values)))
      if row == min_scale and len(values) < len(found):
        diverged.append(x)
    if points:
      ax.errorbar(*zip(*points), marker='o', ms=4, capsize=2,
                  label=rf'$\lambda = {min_scale:g}$')
  if diverged:
    ax.plot(diverged, [0.02] * len(diverged), 'x', color='k', label='diverged',
            transform=ax.get_xaxis_transform())
  ticks = sorted({x for _, x in cells})
  ax.set(xscale='log', xlabel=label, ylabel='test accuracy (%)')
  ax.set_xticks(ticks, [f'{tick:g}' for tick in ticks])
  ax.minorticks_off()
  ax.legend()
  return figure


def _deviation(values: Sequence[float]) -> float:
  """The standard deviation (n - 1); no bar for a single value."""
  return float(np.std(values, ddof=1)) if len(values) > 1 else 0.

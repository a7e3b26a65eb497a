"""The tables of the paper, assembled in its own layout.

    OUTPUT_DIR/tables/paper-synthetic_noise.tex            as it prints them
    OUTPUT_DIR/tables/paper-synthetic_noise-compared.tex   with its numbers

and `natural_noise`, `ablation` and both tables of hyperparameters. Each is a
`tabular` for the paper's `table*`, and needs no package beyond the paper's.
What is not of the paper's data stands in tables of the same layout whose names
begin with `embedded` and `features`.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import pathlib

from etils import epy

from experiments.output import evidence
from experiments.output import tables
from experiments.paper import grids
from experiments.paper import published
from experiments.paper import tuned

with epy.lazy_imports():
  from ln_tfp import files

# Group -> blocks of the synthetic, columns of the natural-noise table.
_SYNTHETIC = {
    'paper': ('mnist', 'cifar10', 'cifar100'),
    'embedded': ('digits',),
    'features': ('cifar10_features', 'cifar100_features'),
}
_NATURAL = {
    'paper': ('cifar10n', 'cifar100n', 'clothing1m'),
    'embedded': ('digits_n',),
    'features': ('cifar10n_features', 'cifar100n_features'),
}
_NAMES = {
    'mnist': 'MNIST', 'cifar10': 'CIFAR-10', 'cifar100': 'CIFAR-100',
    'cifar10n': 'CIFAR-10N', 'cifar100n': 'CIFAR-100N',
    'clothing1m': 'Clothing1M', 'digits_n': 'digits', 'digits': 'digits'}
_METHODS = {
    'Het-tau': r'$\text{Het}^{\tau}$',
    'Het-tau-Sigma': r'$\text{Het}^{\tau}_{\bm{\Sigma}_{\textbf{full}}}$'}
_SEARCHED = {
    'Het-tau': r'Het-$\tau$',
    'Het-tau-Sigma': r'Het-$\tau$-$\bm{\Sigma}_{\textbf{full}}$'}
_COVARIANCES = {
    'LN-identity': r'Identity & \cmark', 'LN-isotropic': r'Isotropic & \cmark',
    'LN-diagonal': r'Diagonal & \cmark', 'LN': r'Full & \cmark',
    'LN-no-dummy': r'Full & \xmark'}
_MISSING = '--'
_RATES = (
    r'No Noise & \multicolumn{3}{c}{Symmetric Noise Rate} & '
    r'\multicolumn{3}{c}{Asymmetric Noise Rate} \\ '
    r'\cmidrule(lr){3-3}\cmidrule(lr){4-6} \cmidrule(lr){7-9}')


@dataclasses.dataclass(frozen=True)
class Entry:
  """A cell: ours, the paper's, and the difference, ready to print."""
  ours: str = _MISSING
  paper: str = ''
  change: str = ''


# (data set, row, column) -> the cell.
Look = Callable[[str, str, str], Entry]


def write(directory: pathlib.Path) -> Iterator[pathlib.Path]:
  """Writes all tables that a directory has numbers for; yields the files."""
  facts = evidence.Facts(directory)
  winners = tuned.read(directory / 'tuned')
  for name, text in assemble(facts.tables, winners):
    file = directory / 'tables' / f'{name}.tex'
    files.write_atomically(file, text.encode())
    yield file


def assemble(
    found: dict[str, tables.Table],
    winners: tuned.Values) -> Iterator[tuple[str, str]]:
  """The name and the content of each table.

  Args:
    found: the tables by name, such as 'synthetic_noise-mnist'.
    winners: of the searches.
  """
  searched = {dataset for dataset, _, _ in winners}
  has = lambda kind: {name.partition('-')[2] for name in found
                      if name.startswith(f'{kind}-')}
  values = lambda *place: _values(winners, *place)
  for group, datasets in _SYNTHETIC.items():
    if has('synthetic_noise') & set(datasets):
      yield from _both(
          f'{group}-synthetic_noise', _blocks, datasets, grids.METHODS,
          _METHODS, _numbers(found, 'synthetic_noise'), rotated=True)
    if searched & set(datasets):
      yield from _both(
          f'{group}-hyperparameters_synthetic_noise', _blocks, datasets,
          grids.SEARCHED, _SEARCHED, values, rotated=False)
  for group, datasets in _NATURAL.items():
    if has('natural_noise') & set(datasets):
      yield from _both(
          f'{group}-natural_noise', _columns, datasets, grids.METHODS,
          _METHODS, _numbers(found, 'natural_noise'))
    if has('ablation') & set(datasets):
      yield from _both(
          f'{group}-ablation', _ablation, datasets, _COVARIANCES, _COVARIANCES,
          _numbers(found, 'ablation'))
    if searched & set(datasets):
      yield from _both(
          f'{group}-hyperparameters_natural_noise', _columns, datasets,
          grids.SEARCHED, _SEARCHED, values)


def _both(name, layout, datasets, rows, labels, look, **options):
  """A table as the paper has it, and the one with the paper's numbers."""
  for suffix, compared in (('', False), ('-compared', True)):
    lines = layout(datasets, rows, labels, look, compared, **options)
    head = f'% {name}{suffix}: made by experiments.all from stored results.'
    yield name + suffix, '\n'.join([head, *lines, ''])


def _numbers(found: dict[str, tables.Table], kind: str) -> Look:
  """Looks cells up in the tables of a kind."""
  def look(dataset, row, column):
    table = found.get(f'{kind}-{dataset}')
    paper = published.cells(kind, dataset).get((row, column))
    cell = tables.Cell(published=paper)
    if table is not None:
      cell = table.cells.get((row, column), cell)
    if not cell.values:
      return Entry(paper=cell.paper(2, r'$\pm$'))
    parts = cell.numbers(2, r'$\pm$').split(r' $\pm$ ')
    if (row, column) in table.bold():
      parts = [rf'\textbf{{{part}}}' for part in parts]
    change = f'${cell.change(2)}$' if cell.change(2) else ''
    return Entry(r' $\pm$ '.join(parts), cell.paper(2, r'$\pm$'), change)
  return look


def _values(winners: tuned.Values, *place: str) -> Entry:
  paper = tuned.printed().get(place, {})
  ours = winners.get(place, {})
  return Entry(_bracket(ours.values()) or _MISSING, _bracket(paper.values()),
               'differs' if ours and paper and ours != paper else '')


def _bracket(values: Iterable[float]) -> str:
  """Values as the paper prints them: 0.5, or [0.5, 1]."""
  texts = [f'{value:g}' for value in values]
  # Braces: a bracket after a line's end would be taken for its argument.
  return f'{{[{", ".join(texts)}]}}' if len(texts) > 1 else ''.join(texts)


def _lines(label: str, entries: Sequence[Entry], compared: bool,
           before: str = '') -> list[str]:
  """A row, and where they are asked for the paper's and the differences."""
  rows = [(label, [entry.ours for entry in entries])]
  if compared:
    # The labels of some tables are of two columns.
    indent = lambda word: rf'\quad {word}' + ' & ' * label.count('&')
    paper = [entry.paper for entry in entries]
    change = [entry.change for entry in entries]
    rows += [(indent(word), texts) for word, texts in (
        ('paper', paper), ('difference', change)) if any(texts)]
  return [before + ' & '.join([name, *texts]) + r' \\' for name, texts in rows]


def _blocks(datasets, rows, labels, look, compared, rotated):
  """A block for each data set, one below the other."""
  lines = [
      (r'\begin{tabular}{ m{1em} l c c c c c c c@{}}' if rotated else
       r'\begin{tabular}{ @{}l l c c c c c c c @{}}'), r'\toprule',
      (r'\multirow{2}{0em}{}' if rotated else r'\multirow{2}{4em}{Dataset}')
      + r' & \multirow{2}{4em}{Method} & ' + _RATES,
      r' & & 0\% & 20\% & 40\% & 60\% & 20\% & 30\% & 40\% \\']
  for dataset in datasets:
    body = []
    for row in rows:
      entries = [look(dataset, row, noise) for noise in grids.SYNTHETIC_NOISES]
      body += _lines(labels.get(row, row), entries, compared, '& ')
    name = _NAMES.get(dataset, dataset.replace('_', r'\_'))
    if rotated:
      name = rf'\rotatebox[origin=c]{{90}}{{{name}}}'
    lines += [r'\midrule',
              rf'\multirow{{{len(body)}}}{{{2 if rotated else 5}em}}{{{name}}}',
              *body]
  return [*lines, r'\bottomrule', r'\end{tabular}']


def _columns(datasets, rows, labels, look, compared):
  """All data sets side by side, a column for each set of labels."""
  places = [(dataset, noise) for dataset in datasets
            for noise in grids.NATURAL_NOISES[dataset]]
  groups, rules, start = [], [], 2
  for dataset in datasets:
    count = len(grids.NATURAL_NOISES[dataset])
    name = _NAMES.get(dataset, dataset.replace('_', r'\_'))
    groups.append(
        name if count == 1 else rf'\multicolumn{{{count}}}{{c}}{{{name}}}')
    rules.append(rf'\cmidrule(lr){{{start}-{start + count - 1}}}')
    start += count
  heads = [tables.noise_column(noise, dataset).label
           if len(grids.NATURAL_NOISES[dataset]) > 1 else ''
           for dataset, noise in places]
  lines = [rf'\begin{{tabular}}{{ @{{}}l{" c" * len(places)}@{{}}}}',
           r'\toprule',
           ' & '.join([r'\multirow{2}{4em}{Method}', *groups]) + r' \\ '
           + ' '.join(rules),
           ' & '.join(['', *heads]) + r' \\', r'\midrule']
  for row in rows:
    lines += _lines(labels.get(row, row), [
        look(dataset, row, noise) for dataset, noise in places], compared)
  return [*lines, r'\bottomrule', r'\end{tabular}']


def _ablation(datasets, rows, labels, look, compared):
  """The covariances and the dummy class."""
  datasets = [name for name in datasets if name in grids.ABLATION_NOISES]
  names = [_NAMES.get(name, name.replace('_', r'\_')) for name in datasets]
  lines = [rf'\begin{{tabular}}{{ @{{}}l c{" c" * len(datasets)}}}',
           r'\toprule',
           ' & '.join([r'$\bm{\Sigma}$', 'Dummy Class', *names]) + r' \\',
           r'\midrule']
  for row in rows:
    lines += _lines(labels[row], [
        look(name, row, grids.ABLATION_NOISES[name]) for name in datasets],
                    compared)
  return [*lines, r'\bottomrule', r'\end{tabular}']

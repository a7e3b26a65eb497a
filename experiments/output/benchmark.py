"""The page `docs/benchmark.md`: tables of a directory with ranks and cost.

All between the two marks of the page is generated; what stands above them, the
words about what the numbers say, is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import pathlib
import statistics

from experiments import data
from experiments import methods
from experiments.output import evidence
from experiments.output import ranks
from experiments.output import tables
from experiments.paper import grids

BEGIN, END = '<!-- generated: begin -->', '<!-- generated: end -->'
_TITLES = {
    'synthetic_noise': 'synthetic noise', 'natural_noise': 'natural noise',
    'ablation': 'covariance and dummy class of LN',
    'calibration': 'NLL of three annotators on the training set'}
_EMBEDDED = ('synthetic_noise-digits', 'natural_noise-digits_n')


def update(page: pathlib.Path, facts: evidence.Facts, output_dir: str) -> str:
  """The text of the page with its generated part made anew.

  Args:
    page: the page; it need not exist.
    facts: of the directory.
    output_dir: for the commands.
  """
  before, after = '# The benchmark\n\n', '\n'
  if page.exists():
    text = page.read_text(encoding='utf-8')
    if text.count(BEGIN) != 1 or text.count(END) != 1:
      raise ValueError(f'{page} must have the lines {BEGIN} and {END} once.')
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
  return f'{before}{BEGIN}\n{"".join(sections(facts, output_dir))}{END}{after}'


def sections(facts: evidence.Facts, output_dir: str) -> Iterator[str]:
  """A section for each table of real data, and the extended ones of digits."""
  names = [name for kind in _TITLES for name in facts.tables
           if name.startswith(f'{kind}-')]
  real = [name for name in names if not _is_embedded(name)]
  for name in (*real, *(name for name in _EMBEDDED if name in names)):
    yield from _section(name, facts, output_dir)
  if not names:
    yield 'Nothing was run.\n'


def _is_embedded(name: str) -> bool:
  dataset = name.partition('-')[2]
  return data.traits(dataset).module in ('', 'embedded') and (
      data.traits(dataset).clean in ('', 'digits'))


def _section(name, facts, output_dir) -> Iterator[str]:
  kind, _, dataset = name.partition('-')
  for protocol, table in _by_protocol(facts.tables[name], facts):
    keys = [key for cell in table.cells.values() for key in cell.keys]
    whose = tables.PROTOCOLS[protocol]
    lines = [f'## {dataset}: {_TITLES[kind]} ({whose})', '']
    lines += _table(table, kind)
    lines += ['', _counts(table)]
    lines += _comparisons(table)
    settings = facts.settings(keys, tuned_ones=kind != 'ablation')
    lines.append('Settings: ' + '; '.join(sorted(settings)) + '.')
    lines.append(_time(keys, facts))
    lines += ['', f'    {_command(kind, dataset, table, protocol, output_dir)}',
              '']
    yield '\n'.join(lines) + '\n'


def _by_protocol(
    table: tables.Table,
    facts: evidence.Facts) -> Iterator[tuple[str, tables.Table]]:
  """The table of each protocol that there are numbers of."""
  def whose(cell):
    found = {facts.results[key].run['protocol'] for key in cell.keys
             if key in facts.results}
    return found.pop() if len(found) == 1 else None

  protocols = {whose(cell) for cell in table.cells.values()} - {None}
  order = (*methods.NAMES, *grids.ABLATION_ROWS, *table.rows)
  for protocol in sorted(protocols):
    cells = {place: cell for place, cell in table.cells.items()
             if whose(cell) == protocol and cell.values}
    rows = sorted({row for row, _ in cells}, key=order.index)
    columns = [column for column in table.columns
               if any(key == column.key for _, key in cells)]
    yield protocol, dataclasses.replace(
        table, rows=rows, columns=columns, cells={
            (row, column.key): cells.get((row, column.key), tables.Cell())
            for row in rows for column in columns})


def _time(keys, facts) -> str:
  """How long the training of those runs took."""
  walls = [facts.results[key].seconds['wall'] for key in keys
           if key in facts.results]
  return (f'Time: {len(walls)} runs, {statistics.median(walls):.0f} s each by '
          f'the median, {sum(walls) / 3600:.1f} h together.')


def _table(table, kind) -> list[str]:
  ranked, bold = ranks.rank(table), table.bold()
  usual = _usual(table)
  heads = [' '.join(filter(None, (column.group, column.label)))
           for column in table.columns]
  heads += ['mean rank'] if ranked else []
  lines = [f'| {"covariance" if kind == "ablation" else "method"} | '
           f'{" | ".join(heads)} |', '|---' * (len(heads) + 1) + '|']
  for row in table.rows:
    texts = []
    for column in table.columns:
      cell = table.cells[row, column.key]
      text = cell.numbers(table.digits)
      text = f'**{text}**' if (row, column.key) in bold else text
      if cell.values and len(cell.values) != usual:
        text += f' (n = {len(cell.values)})'
      if cell.remark():
        text += f' ({cell.remark()})'
      if cell.published and cell.values:
        text += f'<br>paper {cell.paper(table.digits)}'
      texts.append(text)
    if ranked:
      mean = ranked.means.get(row)
      texts.append('' if mean is None else f'{mean:.2f}')
    lines.append(f'| {row} | {" | ".join(texts)} |')
  return lines


def _usual(table) -> int:
  """The commonest number of runs of a cell."""
  counts = [len(cell.values) for cell in table.cells.values() if cell.values]
  return max(set(counts), key=counts.count)


def _counts(table) -> str:
  filled = sum(bool(cell.values) for cell in table.cells.values())
  text = f'n = {_usual(table)} where nothing else is said'
  if filled < len(table.cells):
    text += f'; {len(table.cells) - filled} cells were not run'
  return (f'{text}. Bold: not significantly worse than the best of the column '
          "(Welch's t-test, p < 0.05; the best alone where n = 1).")


def _comparisons(table) -> list[str]:
  lines = []
  ranked = ranks.rank(table)
  if ranked and ranked.critical is not None:
    lines.append(
        f'Ranks over {ranked.columns} columns and {len(ranked.means)} rows: '
        f'critical difference {ranked.critical:.2f} (Nemenyi, p < 0.05)'
        + ('' if ranked.p_value is None else
           f', Friedman p = {ranked.p_value:.2g}')
        + f'; within it of the best: {", ".join(ranked.not_worse())}.')
  if 'LN' in table.rows:
    tallies = [_tally(table, row) for row in table.rows if row != 'LN']
    tallies = [text for text in tallies if text]
    if tallies:
      lines.append('LN significantly better / no difference / worse, by column '
                   f"(Welch): {', '.join(tallies)}.")
  return lines


def _tally(table, other) -> str:
  """In how many columns LN is better than another row, equal, worse."""
  sign = -1. if table.lower_is_better else 1.
  counts = [0, 0, 0]
  for column in table.columns:
    ours, theirs = (table.cells[row, column.key] for row in ('LN', other))
    if min(len(ours.values), len(theirs.values)) < 2:
      continue
    p = tables.p_value(*((cell.mean, cell.std, len(cell.values))
                         for cell in (ours, theirs)))
    lead = sign * (ours.mean - theirs.mean)
    counts[1 if p >= tables.SIGNIFICANCE else 0 if lead > 0. else 2] += 1
  return f'{other} {"/".join(map(str, counts))}' if any(counts) else ''


def _command(
    kind: str, dataset: str, table: tables.Table, protocol: str,
    output_dir: str) -> str:
  """What makes the table."""
  parts = [f'python -m experiments.{kind} --dataset={dataset}']
  rows: Sequence[str] = table.rows
  if kind in ('synthetic_noise', 'natural_noise') and set(rows) != set(
      grids.METHODS):
    is_all = set(rows) == set(methods.NAMES)
    parts.append(f'--methods={"all" if is_all else ",".join(rows)}')
  columns = [column.key for column in table.columns]
  full = grids.NATURAL_NOISES.get(dataset, grids.SYNTHETIC_NOISES)
  if kind in ('synthetic_noise', 'natural_noise') and set(columns) != set(full):
    parts.append(f'--noise={",".join(columns)}')
  if protocol != 'paper':
    parts.append(f'--protocol={protocol}')
  seeds = max(len(cell.values) for cell in table.cells.values())
  return ' '.join([*parts, f'--seeds={seeds}', f'--output_dir={output_dir}'])

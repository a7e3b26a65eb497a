"""Tables as text for a terminal, Markdown, LaTeX and CSV."""

from collections.abc import Callable
import csv
import io
import itertools

from experiments.output import tables

_LATEX = {
    'Het-tau': r'$\text{Het}^{\tau}$',
    'Het-tau-Sigma': r'$\text{Het}^{\tau}_{\bm{\Sigma}_{\textbf{full}}}$',
}


def to_text(table: tables.Table) -> str:
  """For a terminal; bold is a star, the paper's numbers are rows below."""
  bold = table.bold()

  def ours(row, column):
    cell = table.cells[row, column.key]
    star = '*' if (row, column.key) in bold else ''
    remark = f' ({cell.remark()})' if cell.remark() else ''
    return cell.numbers(table.digits) + star + remark

  lines = _with_paper(table, ours, '±')
  heads = [['', *(group if first else '' for group, first in _groups(table))],
           [table.corner, *(column.label for column in table.columns)]]
  if not any(heads[0]):
    del heads[0]
  cells = heads + lines
  widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
  text = ['  '.join(map(str.ljust, line, widths)).rstrip() for line in cells]
  text.insert(len(heads), '-' * max(map(len, text)))
  return '\n'.join([table.title, '', *text, '', *_notes(table, '*')])


def to_markdown(table: tables.Table) -> str:
  """The paper's number stands in the cell, below ours."""
  bold = table.bold()
  heads = [' '.join(filter(None, (column.group, column.label)))
           for column in table.columns]
  lines = [f'| {table.corner} | {" | ".join(heads)} |',
           '|---' * (len(heads) + 1) + '|']
  for row in table.rows:
    texts = []
    for column in table.columns:
      cell = table.cells[row, column.key]
      text = cell.numbers(table.digits)
      text = f'**{text}**' if (row, column.key) in bold else text
      if cell.remark():
        text += f' ({cell.remark()})'
      if cell.paper(table.digits):
        text += f'<br>paper {cell.paper(table.digits)}'
      if cell.change(table.digits):
        text += f' ({cell.change(table.digits)})'
      texts.append(text)
    lines.append(f'| {row} | {" | ".join(texts)} |')
  return '\n'.join(
      [f'**{table.title}**', '', *lines, '', *_notes(table, 'bold'), ''])


def to_latex(table: tables.Table) -> str:
  """In the paper's layout; needs booktabs, amsmath and bm."""
  bold = table.bold()

  def ours(row, column):
    cell = table.cells[row, column.key]
    parts = cell.numbers(table.digits, r'$\pm$').split(r' $\pm$ ')
    if (row, column.key) in bold:
      parts = [rf'\textbf{{{part}}}' for part in parts]
    remark = rf' \tiny({cell.remark()})' if cell.remark() else ''
    return r' $\pm$ '.join(parts) + remark

  rows = [
      ' & '.join(_escape(cell) for cell in line) + r' \\'
      for line in _with_paper(table, ours, r'$\pm$')]
  heads = [' & '.join(
      [_escape(table.corner), *(_escape(c.label) for c in table.columns)])]
  if any(column.group for column in table.columns):
    spans = [(group, len(list(members))) for group, members
             in itertools.groupby(column.group for column in table.columns)]
    heads.insert(0, ' & '.join(['', *(
        rf'\multicolumn{{{count}}}{{c}}{{{_escape(group)}}}'
        for group, count in spans)]))
  notes = [f'% {note}' for note in (table.title, *_notes(table, 'bold'))]
  return '\n'.join([
      *notes, rf'\begin{{tabular}}{{@{{}}l{" c" * len(table.columns)}@{{}}}}',
      r'\toprule', *(head + r' \\' for head in heads), r'\midrule', *rows,
      r'\bottomrule', r'\end{tabular}', ''])


def to_csv(table: tables.Table) -> str:
  """One line for each cell, with the runs behind it."""
  stream = io.StringIO()
  writer = csv.writer(stream, lineterminator='\n')
  writer.writerow([
      'row', 'column', 'mean', 'std', 'n', 'diverged', 'missing', 'bold',
      'paper_mean', 'paper_std', 'paper_bold', 'difference', 'runs'])
  bold = table.bold()
  for row in table.rows:
    for column in table.columns:
      cell = table.cells[row, column.key]
      paper = cell.published
      writer.writerow([
          row, column.key, _csv(cell.mean), _csv(cell.std), len(cell.values),
          cell.diverged, cell.missing, int((row, column.key) in bold),
          *((paper.mean, paper.std, int(paper.bold)) if paper else
            ('', '', '')), _csv(cell.difference), ' '.join(cell.keys)])
  return stream.getvalue()


def _with_paper(
    table: tables.Table, ours: Callable[[str, tables.Column], str],
    sign: str) -> list[list[str]]:
  """A line for each row, and two for the paper's numbers where it has any."""
  lines = []
  for row in table.rows:
    cells = [table.cells[row, column.key] for column in table.columns]
    lines.append([row, *(ours(row, column) for column in table.columns)])
    paper = [cell.paper(table.digits, sign) for cell in cells]
    change = [cell.change(table.digits) for cell in cells]
    lines += [[name, *texts] for name, texts in (
        ('  paper', paper), ('  difference', change)) if any(texts)]
  return lines


def _groups(table: tables.Table) -> list[tuple[str, bool]]:
  """The group of each column, and whether the column is its first."""
  groups = [column.group for column in table.columns]
  return [(group, i == 0 or groups[i - 1] != group)
          for i, group in enumerate(groups)]


def _notes(table: tables.Table, bold: str) -> list[str]:
  if not table.bold():
    return list(table.notes)
  rule = (f'{bold}: not significantly worse than the best mean of the column '
          "(Welch's t-test, p < 0.05)")
  if all(len(cell.values) < 2 for cell in table.cells.values()):
    rule = f'{bold}: the best of the column (one seed: no test)'
  return [f'{rule}.', *table.notes]


def _escape(text: str) -> str:
  """Escapes what is not LaTeX yet."""
  if text in _LATEX:
    return _LATEX[text]
  return text.replace(' %', r'\%').replace('_', r'\_') if (
      '$' not in text and '\\' not in text) else text


def _csv(value: float | None) -> str:
  return '' if value is None else f'{value:.6g}'

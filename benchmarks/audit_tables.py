"""The tables of docs/audit.md, from the results of the audit's benchmarks."""

from collections.abc import Mapping
from collections.abc import Sequence
import json
import pathlib

import numpy as np

from benchmarks import audit_cells

_HERE = pathlib.Path(__file__).parent
_DOCS = _HERE.parent / 'docs' / 'audit.md'
OURS = 'closed form'
_RIVAL = 'cleanlab'
_MAIN_RIVAL = 'cleanlab, logistic regression'
_COLUMNS = (
    ('auroc', 'AUROC', 3), ('average_precision', 'average precision', 3),
    ('f1', 'F1', 3), ('false_alarms', 'false alarms', 0),
    ('missed', 'missed', 3), ('cpu_seconds', 's', 0), ('megabytes', 'MB', 0))

# Of each cell and contestant, the figures of each part.
Figures = Mapping[str, Mapping[str, Mapping[str, dict]]]


def group(results: Mapping[str, dict]) -> Figures:
  """Returns the figures by cell, contestant and part, in the set order."""
  grouped = {}
  for name, figures in results.items():
    cell, part, contestant = name.split(' | ')
    grouped.setdefault(cell, {}).setdefault(contestant, {})[part] = figures
  order = (*audit_cells.CELLS, *audit_cells.LARGE_CELLS)
  return {cell: dict(sorted(grouped[cell].items(), key=_ours_first))
          for cell in sorted(grouped, key=order.index)}


def _ours_first(item):
  return (item[0] != OURS, item[0])


def mean(parts: Mapping[str, dict], key: str) -> float | None:
  """Returns the mean over parts, None where there is no such figure."""
  values = [part[key] for part in parts.values() if key in part]
  return float(np.mean(values)) if values else None


def lead(contestants: Mapping[str, Mapping[str, dict]], other: str,
         key: str) -> float | None:
  """Returns by how much ours is better, on the parts that both have."""
  ours, parts = contestants[OURS], contestants[other]
  both = [part for part in parts if part in ours]
  values = [ours[part][key] - parts[part][key] for part in both
            if key in parts[part]]
  return float(np.mean(values)) if values else None


def table(grouped: Figures) -> str:
  """Returns all cells as a Markdown table; the best figure is bold."""
  header = ('data', 'n', 'wrong', 'parts', 'contestant',
            *(title for _, title, _ in _COLUMNS))
  lines = [f'| {" | ".join(header)} |', '|---' * len(header) + '|']
  for cell, contestants in grouped.items():
    for name, parts in contestants.items():
      size = next(iter(parts.values()))['n']
      row = [cell, f'{size:,}', f'{mean(parts, "noise"):.3f}',
             str(len(parts)), f'**{name}**' if name == OURS else name]
      for key, _, digits in _COLUMNS:
        row.append(_cell(parts, key, digits, contestants))
      lines.append(f'| {" | ".join(row)} |')
  return '\n'.join([*lines, ''])


def _cell(parts, key, digits, contestants):
  value = mean(parts, key)
  if value is None:
    return '-'
  text = f'{value:,.{digits}f}'
  if len(parts) > 1 and key == 'average_precision':
    spread = np.std([part[key] for part in parts.values()], ddof=1)
    text += f' ± {spread:.{digits}f}'
  if key in ('auroc', 'average_precision', 'f1') and value == max(
      mean(other, key) or 0. for other in contestants.values()):
    return f'**{text}**'
  return text


def goals(grouped: Figures) -> str:
  """Returns each goal, what was reached, and where it was not."""
  compared = {
      cell: contestants for cell, contestants in grouped.items()
      if OURS in contestants and any(
          name.startswith(_RIVAL) for name in contestants)}
  noisy = {cell: contestants for cell, contestants in compared.items()
           if mean(contestants[OURS], 'auroc') is not None}
  rows = [
      _share_best(noisy, 'average_precision', .8),
      _never_behind(noisy),
      _share_best(noisy, 'f1', .75),
      _time(noisy),
      *_clean({cell: contestants for cell, contestants in grouped.items()
               if OURS in contestants}),
  ]
  lines = ['| goal | reached | met |', '|---|---|---|']
  lines += [f'| {goal} | {reached} | {"yes" if met else "**no**"} |'
            for goal, reached, met in rows]
  return '\n'.join([*lines, ''])


def _share_best(cells, key, wanted):
  titles = {'average_precision': 'average precision', 'f1': 'F1'}
  lost = []
  for cell, contestants in cells.items():
    leads = (lead(contestants, name, key) for name in contestants)
    worst = min(value for value in leads if value is not None)
    if worst < 0.:
      lost.append(f'{cell} ({worst:.3f})')
  share = 1. - len(lost) / len(cells)
  return (f'best {titles[key]} in {100 * wanted:.0f} % of the cells',
          f'{len(cells) - len(lost)} of {len(cells)}'
          + (f'; not in {", ".join(lost)}' if lost else ''), share >= wanted)


def _never_behind(cells):
  leads = {
      f'{cell} ({name})': lead(contestants, name, 'average_precision')
      for cell, contestants in cells.items() for name in contestants
      if name.startswith(_RIVAL)}
  behind = {name: value for name, value in leads.items() if value < -.01}
  worst = min(leads, key=leads.get)
  reached = ('; '.join(f'{-value:.3f} in {name}'
                       for name, value in sorted(behind.items()))
             or f'at worst {max(0., -leads[worst]):.3f} behind, in {worst}')
  return ("never behind cleanlab's average precision by more than .01",
          reached, not behind)


def _time(cells):
  """Processor time beside cleanlab's logistic regression, on CIFAR's features.

  Where both were measured on one machine.
  """
  ratios = []
  for cell, contestants in cells.items():
    if _MAIN_RIVAL in contestants and cell.startswith('cifar'):
      for part, other in contestants[_MAIN_RIVAL].items():
        ours = contestants[OURS].get(part, {})
        if 'cpu_seconds' in ours and 'cpu_seconds' in other:
          ratios.append(ours['cpu_seconds'] / other['cpu_seconds'])
  if not ratios:
    return "a fifth of cleanlab's time", 'not measured', False
  value = float(np.median(ratios))
  return ("at most a fifth of the time of cleanlab's logistic regression",
          f'{value:.2f} of it (median of {len(ratios)} CIFAR parts, '
          f'{min(ratios):.2f} to {max(ratios):.2f})', value <= .2)


def _clean(cells):
  for cell, limit in (('cifar10/none', .02), ('digits/none', .003)):
    if cell in cells:
      parts = cells[cell][OURS]
      share = mean(parts, 'false_alarms') / next(iter(parts.values()))['n']
      yield (f'clean {cell.split("/")[0]}: at most {100 * limit:g} % flagged',
             f'{100 * share:.2f} %', share <= limit)


def consensus_table(results: Mapping[str, dict]) -> str:
  """Returns the figures of `benchmarks.consensus`."""
  grouped = {}
  for name, contestants in results.items():
    for contestant, figures in contestants.items():
      cell, part = name.split(' | ')
      grouped.setdefault(cell, {}).setdefault(contestant, {})[part] = figures
  lines = ['| data | parts | contestant | accuracy | of ties | error of '
           "annotators' accuracy |", '|---|---|---|---|---|---|']
  for cell, contestants in grouped.items():
    for name, parts in contestants.items():
      error = mean(parts, 'annotator_error')
      lines.append(
          f'| {cell} | {len(parts)} | {name} | {mean(parts, "accuracy"):.4f} | '
          f'{mean(parts, "ties"):.3f} | '
          f'{"-" if error is None else f"{error:.3f}"} |')
  return '\n'.join([*lines, ''])


def review_table(results: Mapping[str, Sequence[float]]) -> str:
  """Returns the figures of `benchmarks.review`."""
  from benchmarks import review  # imports cleanlab
  titles = ' | '.join(f'{effort:g}' for effort in review.EFFORTS)
  lines = [f'| data | order | {titles} |',
           '|---|---' + '|---' * len(review.EFFORTS) + '|']
  for name, shares in results.items():
    cell, order = name.split(' | ')
    values = ' | '.join(f'{share:.3f}' for share in shares)
    lines.append(f'| {cell} | {order} | {values} |')
  return '\n'.join([*lines, ''])


def evidence_table(results: Mapping[str, dict]) -> str:
  """Returns the figures of `benchmarks.audit_evidence`."""
  kinds = list(dict.fromkeys(name.split(' | ')[2] for name in results))
  lines = [f'| average precision (F1) | {" | ".join(kinds)} |',
           '|---' * (len(kinds) + 1) + '|']
  cells = {}
  for name, figures in results.items():
    cell, part, kind = name.split(' | ')
    cells.setdefault(cell, {}).setdefault(kind, {})[part] = figures
  for cell, contestants in cells.items():
    row = [cell]
    for kind in kinds:
      value = mean(contestants[kind], 'average_precision')
      f1 = mean(contestants[kind], 'f1')
      if value is None:  # clean labels
        alarms = mean(contestants[kind], 'false_alarms')
        row.append('-' if alarms is None else f'{alarms:.0f} false alarms')
      else:
        row.append(f'{value:.3f}' + (f' ({f1:.3f})' if f1 is not None else ''))
    lines.append(f'| {" | ".join(row)} |')
  return '\n'.join([*lines, ''])


def scale_table(results: Mapping[str, dict]) -> str:
  """Returns the figures of `benchmarks.audit_scale`."""
  lines = ['| rows | features | classes | MB over an idle process | s | of '
           'the processor | precision | recall |', '|---' * 8 + '|']
  for figures in sorted(results.values(), key=lambda found: found['rows']):
    lines.append(
        f'| {figures["rows"]:,} | {figures["features"]:,} | '
        f'{figures["classes"]:,} | {figures["megabytes"]:,} | '
        f'{figures["seconds"]:,.0f} | {figures["cpu_seconds"]:,.0f} | '
        f'{figures["precision"]:.3f} | {figures["recall"]:.3f} |')
  return '\n'.join([*lines, ''])


def write_docs(results: Mapping[str, dict]) -> None:
  """Puts all tables into docs/audit.md."""
  grouped = group(results)
  text = _DOCS.read_text(encoding='utf-8')
  text = _replace(text, 'goals', goals(grouped))
  text = _replace(text, 'cells', table(grouped))
  for name, file, make in (
      ('consensus', 'consensus', consensus_table),
      ('review', 'review', review_table),
      ('evidence', 'audit_evidence', evidence_table),
      ('scale', 'audit_scale', scale_table)):
    path = _HERE / f'{file}.json'
    if path.exists():
      text = _replace(
          text, name, make(json.loads(path.read_text(encoding='utf-8'))))
  _DOCS.write_text(text, encoding='utf-8')


def _replace(text, name, content):
  begin, end = f'<!-- {name}: begin -->\n', f'<!-- {name}: end -->\n'
  before, rest = text.split(begin)
  return before + begin + content + end + rest.split(end)[1]

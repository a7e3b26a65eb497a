"""The page of a directory: claims, tables, figures, searches and runs."""

from __future__ import annotations

import collections
from collections.abc import Iterable
from collections.abc import Sequence
import itertools
import pathlib

from etils import epy

from experiments import training
from experiments.cli import pairs
from experiments.output import evidence
from experiments.output import tables
from experiments.paper import claims
from experiments.paper import figure_claims
from experiments.paper import table_claims
from experiments.training import fingerprint

with epy.lazy_imports():
  from ln_tfp import page

# What there could be, and the program that makes it.
TABLES = ('synthetic_noise', 'natural_noise', 'ablation', 'calibration')
FIGURES = ('logit_simplex', 'attenuation', 'toy_datasets',
           'accuracy_evolution', 'sensitivity', 'label_smoothing', 'residuals')

_STYLE = """
.wrap { white-space: normal; min-width: 16rem; max-width: 34rem; }
.wide { min-width: 26rem; }
.narrow { min-width: 8rem; }
.holds, .fails, .missing {
  display: inline-block; padding: 0 .5rem; border-radius: .75rem;
  font-size: .8125rem; border: 1px solid currentColor;
}
.holds { color: var(--accent); font-weight: 600; }
.fails { color: var(--warn); font-weight: 600; }
.missing { color: var(--muted); border-style: dashed; }
details { margin: 0 0 1.5rem; }
summary { cursor: pointer; color: var(--muted); font-size: .875rem; }
details p { font-size: .8125rem; margin: .375rem 0; max-width: none; }
small { color: var(--muted); display: block; }
tr:target, p:target { background: var(--surface); }
figure img { background: #fff; }
"""
_CLASSES = {claims.HOLDS: 'holds', claims.FAILS: 'fails',
            claims.NOT_RUN: 'missing'}


def verdicts(facts: evidence.Facts) -> list[claims.Verdict]:
  """What became of all claims of the paper."""
  return list(claims.judge(
      facts, (*table_claims.CLAIMS, *figure_claims.CLAIMS)))


def counts(facts: evidence.Facts) -> str:
  """How many claims hold, fail and were not run, in a line."""
  found = collections.Counter(verdict.status for verdict in verdicts(facts))
  return ', '.join(f'{found[status]} {status}' for status in _CLASSES)


def build(
    output_dir: pathlib.Path, facts: evidence.Facts | None = None) -> page.Page:
  """The page of a directory, whose facts may be known already."""
  facts = facts or evidence.Facts(output_dir)
  report = page.Page('Logistic-Normal likelihoods: the report')
  report.style(_STYLE)
  report.lead(
      f'Runs: {len(facts.results)}; tables: {len(facts.tables)}; figures: '
      f'{len(facts.records)}. Every number is computed from stored results; '
      'what was not run says so.')
  _add_claims(report, verdicts(facts))
  _add_tables(report, facts)
  _add_figures(report, facts)
  _add_searches(report, facts)
  _add_runs(report, facts.results)
  if facts.problems:
    report.section('Files left alone', 'These files could not be read.')
    report.table(('problem',), [(_wrap(text),) for text in facts.problems],
                 'Damaged or foreign files')
  return report


def _add_claims(report: page.Page, verdicts: list[claims.Verdict]) -> None:
  report.section(
      'The claims of the paper',
      'Each claim of the results section as a predicate over our results, and '
      "over the paper's own numbers where it prints them.")
  counts = collections.Counter(verdict.status for verdict in verdicts)
  report.figures({status: counts[status] for status in _CLASSES})
  report.table(
      ('ours', 'data set', 'claim', 'numbers compared', 'basis',
       "the paper's numbers", 'in the paper'),
      [row for _, group in itertools.groupby(verdicts, lambda v: v.claim)
       for row in _claim_rows(list(group))], 'Claims')


def _claim_rows(verdicts: list[claims.Verdict]) -> list[tuple]:
  """A row for each data set that was run, and one for all others."""
  claim = verdicts[0].claim
  missing = [v for v in verdicts if v.status == claims.NOT_RUN]
  rows = [
      (_badge(v.status), v.dataset, _wrap(claim.text), _wrap(v.detail),
       _narrow(v.basis), v.paper or 'none', claim.source)
      for v in verdicts if v not in missing]
  if missing:
    reasons = collections.defaultdict(list)
    for verdict in missing:
      reasons[verdict.detail].append(verdict.dataset)
    why = [reason if len(reasons) == 1 else f'{", ".join(names)}: {reason}'
           for reason, names in reasons.items()]
    paper = [f'{v.dataset} {v.paper}' for v in missing if v.paper]
    rows.append((
        _badge(claims.NOT_RUN), _narrow(', '.join(v.dataset for v in missing)),
        _wrap(claim.text), _wrap('; '.join(why)), '',
        _narrow(', '.join(paper) or 'none'), claim.source))
  return rows


def _add_tables(report: page.Page, facts: evidence.Facts) -> None:
  report.section('Tables', (
      "Our mean and standard deviation over n seeds; below it the paper's, "
      'and the difference. Bold: not significantly worse than the best of the '
      "column (Welch's t-test, p < 0.05)."))
  for name in _in_order(TABLES, facts.tables):
    table = facts.tables[name]
    report.subsection(table.title)
    report.table(
        (table.corner, *(f'{column.group} {column.label}'.strip()
                         for column in table.columns)),
        [(row, *(_cell(table, row, column.key) for column in table.columns))
         for row in table.rows],
        'NLL' if table.lower_is_better else 'Test accuracy (%)')
    report.note(f'{_settings(facts, name)}.')
    for line in _other_code(facts, table):
      report.note(line)
    report.raw(_details('The runs behind each number', (
        f'{row}, {column.label}: {_links(table.cells[row, column.key].keys)}'
        for row in table.rows for column in table.columns)))
    differences = _bold_differences(table)
    if differences:
      report.note(f'Bold here and in the paper differ: {differences}.')
  _add_missing(report, TABLES, facts.tables)


def _cell(table: tables.Table, row: str, column: str) -> page.Html:
  cell = table.cells[row, column]
  if not cell.values:
    return _badge(cell.numbers(table.digits))
  text = page.escape(cell.numbers(table.digits))
  if (row, column) in table.bold():
    text = f'<b>{text}</b>'
  remark = f', {cell.remark()}' if cell.remark() else ''
  text += f'<small>n = {len(cell.values)}{page.escape(remark)}</small>'
  if cell.published:
    text += (f'<small>paper {page.escape(cell.paper(table.digits))} '
             f'({cell.change(table.digits)})</small>')
  return page.Html(text)


def _bold_differences(table: tables.Table) -> str:
  bold = table.bold()
  return ', '.join(
      f'{row} {column.label}' for row in table.rows for column in table.columns
      if table.cells[row, column.key].published
      and table.cells[row, column.key].values
      and table.cells[row, column.key].published.bold != (
          (row, column.key) in bold))


def _add_figures(report: page.Page, facts: evidence.Facts) -> None:
  report.section('Figures')
  for name in _in_order(FIGURES, facts.records):
    record = facts.records[name]
    report.subsection(record.title)
    if name in facts.pictures:
      report.image(facts.pictures[name], record.title, record.caption)
    else:
      report.paragraph(f'{claims.NOT_RUN}: the picture is missing.')
    if record.numbers:
      report.table(('number', 'value'), [
          (name, f'{value:.4g}') for name, value in record.numbers.items()],
                   'Numbers of the figure')
    report.raw(_details('Command and runs', [
        f'<code>{page.escape(record.command)}</code>',
        _links(record.runs) or 'Nothing is trained for this figure.']))
    missing = [key for key in record.runs if key not in facts.results]
    if missing:
      report.note(f'Not in this directory: {", ".join(missing)}.')
  _add_missing(report, FIGURES, facts.records)


def _in_order(programs: Sequence[str], names: Iterable[str]) -> list[str]:
  """Names in the order of the programs that made them, as in the paper."""
  def place(name):
    starts = [i for i, each in enumerate(programs) if name.startswith(each)]
    return (*starts, len(programs)), name
  return sorted(names, key=place)


def _settings(facts: evidence.Facts, name: str) -> str:
  keys = {key for cell in facts.tables[name].cells.values()
          for key in cell.keys}
  found = facts.settings(keys, tuned_ones=not name.startswith('ablation'))
  return '; '.join(sorted(found)) or claims.NOT_RUN


def _other_code(facts: evidence.Facts, table: tables.Table) -> list[str]:
  keys = {key for cell in table.cells.values() for key in cell.keys}
  return fingerprint.notes(
      facts.results[key] for key in sorted(keys) if key in facts.results)


def _add_missing(
    report: page.Page, programs: Iterable[str], names: Iterable[str]) -> None:
  """Says which programs have left nothing."""
  there = {name.split('-')[0] for name in names}
  for program in programs:
    if program not in there:
      report.raw(f'<p>{_badge(claims.NOT_RUN)} {program}: <code>python -m '
                 f'experiments.{program}</code></p>')


def _add_searches(report: page.Page, facts: evidence.Facts) -> None:
  report.section('Searches for hyperparameters')
  for name, lines in facts.searches.items():
    rows = [list(line.values()) for line in lines]
    report.raw(f'<details><summary>{page.escape(name)}: {len(rows)} '
               'points</summary>')
    report.table([*lines[0]] if lines else [], [
        (*row[:-1], page.Html(_links(row[-1:]))) for row in rows], name)
    report.raw('</details>')
  if not facts.searches:
    _add_missing(report, ['hyperparameters'], [])


def _add_runs(
    report: page.Page, results: dict[str, training.Result]) -> None:
  report.section(
      'Runs', 'Every stored run: its settings (what is not at its default), '
      'seed, metrics and time, and the environment it was computed in.')
  if not results:
    report.paragraph(f'{claims.NOT_RUN}: there are no results.')
    return
  environments = {}
  for result in results.values():
    environments.setdefault(_environment(result), len(environments) + 1)
  report.table(('environment', 'device and versions'), [
      (str(number), _wrap(text)) for text, number in environments.items()],
               'Environments')
  report.table(
      ('run', 'settings', 'seed', 'epochs', 'status', 'test accuracy (%)',
       'seconds', 'environment'),
      [_run_row(result, environments[_environment(result)])
       for result in results.values()], 'Runs')


def _run_row(result: training.Result, environment: int) -> tuple:
  run = training.Run.from_dict(result.run)
  default = training.Run()
  shown = ('dataset', 'noise', 'method', 'seed', 'epochs', 'hyperparameters')
  settings = {
      name: value for name, value in run.to_dict().items()
      if name not in shown and value != default.to_dict()[name]}
  settings |= result.hyperparameters
  accuracy = result.metrics.get('test_accuracy')
  return (
      page.Html(f'<span id="{page.escape(result.key)}">'
                f'{page.escape(result.key)}</span>'),
      _wrap(f'{run.dataset}, {run.noise}, {run.method}; '
            f'{pairs.write(settings)}', 'wide'),
      run.seed, run.epochs, result.status,
      '–' if accuracy is None else f'{100 * accuracy:.2f}',
      f"{result.seconds['wall']:.1f}", environment)


def _environment(result: training.Result) -> str:
  device = ', '.join(f'{k} {v}' for k, v in sorted(result.device.items()))
  versions = ', '.join(f'{k} {v}' for k, v in sorted(result.versions.items()))
  return f'{device}; {versions}'


def _badge(status: str) -> page.Html:
  name = _CLASSES.get(status, 'missing')
  return page.Html(f'<span class="{name}">{page.escape(status)}</span>')


def _wrap(text: str, width: str = '') -> page.Html:
  return page.Html(f'<div class="wrap {width}">{page.escape(text)}</div>')


def _narrow(text: str) -> page.Html:
  return _wrap(text, 'narrow')


def _links(keys: Iterable[str]) -> str:
  return ', '.join(f'<a href="#{page.escape(key)}">{page.escape(key)}</a>'
                   for key in keys)


def _details(summary: str, paragraphs: Iterable[str]) -> str:
  body = ''.join(f'<p>{text}</p>' for text in paragraphs)
  return f'<details><summary>{summary}</summary>{body}</details>'

"""Tests of the tables in the paper's own layout."""

import re
import shutil
import subprocess

import pytest

from experiments.output import assembled
from experiments.output import tables
from experiments.paper import grids
from experiments.paper import published
from experiments.paper import tuned

# The packages of the paper, as far as a table can need them.
_DOCUMENT = r"""\documentclass[10pt]{article}
\usepackage{amsmath,amsfonts,bm}
\usepackage{hyperref}
\usepackage{multirow}
\usepackage{array}
\usepackage{pifont}
\usepackage{graphicx}
\usepackage{booktabs}
\newcommand{\cmark}{\ding{51}}
\newcommand{\xmark}{\ding{55}}
\begin{document}
\tiny
%s
\end{document}
"""


@pytest.fixture(name='made', scope='module')
def _made():
  """All tables, of the paper's own numbers taken for ours."""
  found = {}
  for kind in ('synthetic_noise', 'natural_noise', 'ablation'):
    for dataset in {key[0] for key in published.table(kind)}:
      cells = published.cells(kind, dataset)
      found[f'{kind}-{dataset}'] = tables.Table(
          '', list(dict.fromkeys(row for row, _ in cells)),
          [tables.noise_column(noise, dataset)
           for noise in dict.fromkeys(noise for _, noise in cells)],
          {place: tables.Cell(
              values=(number.mean, number.mean), published=number)
           for place, number in cells.items()})
  del found['synthetic_noise-cifar100']  # not run
  return dict(assembled.assemble(found, tuned.printed()))


def _rows(text):
  body = text.partition(r'\midrule')[2]
  return [line for line in body.splitlines() if line.endswith(r'\\')]


def test_all_tables_of_the_paper_are_there(made):
  names = ('synthetic_noise', 'natural_noise', 'ablation',
           'hyperparameters_synthetic_noise', 'hyperparameters_natural_noise')
  assert set(made) == {
      f'paper-{name}{suffix}' for name in names
      for suffix in ('', '-compared')}


def test_the_synthetic_table_has_three_blocks(made):
  text = made['paper-synthetic_noise']
  assert re.findall(r'\\rotatebox\[origin=c\]\{90\}\{(.*?)\}', text) == [
      'MNIST', 'CIFAR-10', 'CIFAR-100']
  rows = _rows(text)
  assert len(rows) == 3 * len(grids.METHODS)
  assert {row.count('&') for row in rows} == {8}
  assert '& 99.27 $\\pm$ 0.00' in rows[0] or 'textbf{99.27}' in rows[0]
  assert rows[-1].count('--') == 7  # CIFAR-100 was not run
  assert 'paper' not in ''.join(rows)


def test_the_other_version_has_the_papers_numbers_and_the_differences(made):
  rows = _rows(made['paper-synthetic_noise-compared'])
  # CIFAR-100 has no differences.
  assert len(rows) == 9 * (3 + 3 + 2)
  assert rows[1].startswith(r'& \quad paper & 99.27 $\pm$ 0.07')
  assert rows[2].startswith(r'& \quad difference & $+0.00$')
  rows = _rows(made['paper-ablation-compared'])
  assert {row.count('&') for row in rows} == {3}


def test_the_natural_table_has_all_data_sets_side_by_side(made):
  text = made['paper-natural_noise']
  assert r'\multicolumn{5}{c}{CIFAR-10N} & CIFAR-100N & Clothing1M' in text
  assert {row.count('&') for row in _rows(text)} == {7}


def test_hyperparameters_are_printed_as_the_paper_prints_them(made):
  rows = _rows(made['paper-hyperparameters_natural_noise'])
  assert rows[-1] == (
      'LN & {[0.5, 0.5]} & {[1, 0.5]} & {[0.5, 0.5]} & {[1, 1]} & '
      r'{[0.5, 0.5]} & {[0.5, 0.5]} & {[1, 1]} \\')


@pytest.mark.skipif(
    shutil.which('pdflatex') is None, reason='there is no pdflatex')
def test_the_tables_compile_with_the_papers_packages(made, tmp_path):
  (tmp_path / 'all.tex').write_text(_DOCUMENT % '\n\n'.join(made.values()))
  done = subprocess.run(
      ['pdflatex', '-draftmode', '-halt-on-error',
       '-interaction=nonstopmode', 'all.tex'],  # without fonts, without a PDF
      cwd=tmp_path, capture_output=True, text=True, check=False)
  assert done.returncode == 0, done.stdout[-2000:]

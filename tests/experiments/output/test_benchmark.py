"""Tests of ranks and of the page of the benchmark."""

import pathlib

from absl.testing import flagsaver
import pytest

from experiments import report
from experiments.output import benchmark
from experiments.output import evidence
from experiments.output import ranks
from experiments.output import tables
from tests.experiments.programs import calling

_ROOT = pathlib.Path(__file__).resolve().parents[3]
_EVIDENCE = _ROOT / 'results' / 'evidence'


def _table(rows, lower_is_better=False):
  """Rows of means, None for a cell that was not run."""
  columns = [tables.Column(str(i), str(i)) for i in range(len(rows['LN']))]
  cells = {
      (row, str(i)): tables.Cell(
          values=() if mean is None else (mean - 1., mean + 1.))
      for row, means in rows.items() for i, mean in enumerate(means)}
  return tables.Table(
      'Title', list(rows), columns, cells, lower_is_better=lower_is_better)


@pytest.mark.parametrize('rows, columns, quantile', [
    (2, 10, 1.960), (5, 14, 2.728), (9, 7, 3.102)])
def test_the_critical_difference_is_that_of_demsars_table(
    rows, columns, quantile):
  expected = quantile * (rows * (rows + 1) / (6 * columns))**.5
  assert ranks.critical_difference(rows, columns) == pytest.approx(
      expected, rel=1e-3)


def test_ranks_are_means_over_the_columns_and_ties_share():
  found = ranks.rank(_table({'CE': [1., 1., 3.], 'GCE': [2., 1., 2.],
                             'LN': [3., 3., 1.]}))
  assert found.means == {
      'CE': pytest.approx((3 + 2.5 + 1) / 3),
      'GCE': pytest.approx((2 + 2.5 + 2) / 3),
      'LN': pytest.approx((1 + 1 + 3) / 3)}
  assert found.columns == 3
  assert found.not_worse() == ['CE', 'GCE', 'LN']
  low = ranks.rank(_table({'CE': [1., 1.], 'LN': [3., 3.]}, True))
  assert low.means == {'CE': 1., 'LN': 2.}


def test_a_row_with_a_gap_has_no_rank():
  found = ranks.rank(_table({'CE': [1., 2.], 'GCE': [5., None],
                             'LN': [3., 3.]}))
  assert found.means == {'CE': 2., 'LN': 1.}
  assert ranks.rank(_table({'LN': [3., 3.]})) is None
  assert ranks.rank(_table({'LN': [None], 'CE': [None]})) is None


def test_the_page_of_an_empty_directory_says_so(tmp_path):
  page = tmp_path / 'page.md'
  text = benchmark.update(page, evidence.Facts(tmp_path), 'results')
  assert 'Nothing was run.' in text
  page.write_text('# Mine\n\nMy words.\n\n' + text[text.index('<!--'):] + 'End')
  assert benchmark.update(
      page, evidence.Facts(tmp_path), 'results') == page.read_text()
  page.write_text('no marks')
  with pytest.raises(ValueError, match='generated: begin'):
    benchmark.update(page, evidence.Facts(tmp_path), 'results')


@pytest.mark.slow
def test_the_committed_page_is_the_one_of_the_committed_results():
  page = _ROOT / 'docs' / 'benchmark.md'
  assert benchmark.update(
      page, evidence.Facts(_EVIDENCE), 'results/evidence') == page.read_text(
          encoding='utf-8')


def test_the_report_writes_the_page(tmp_path):
  page = tmp_path / 'page.md'
  with flagsaver.flagsaver():
    status, output, _ = calling.call(
        report, f'--output_dir={tmp_path}', f'--benchmark={page}')
  assert not status
  assert str(page) in output
  assert 'Nothing was run.' in page.read_text()

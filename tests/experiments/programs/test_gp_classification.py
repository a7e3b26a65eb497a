"""The comparison of classifiers, as a user calls it."""

import csv

from absl import flags
from absl.testing import flagsaver
import pytest

from experiments import gp_classification
from tests.experiments.programs import calling

FLAGS = flags.FLAGS


@pytest.fixture(autouse=True)
def _restore_flags():
  with flagsaver.flagsaver():
    yield


@pytest.mark.slow
def test_tables_and_a_figure_come_from_measurements_made_once(
    tmp_path, monkeypatch):
  arguments = ('--problems=iris', '--noise=none,sym:0.4', '--seeds=1',
               f'--output_dir={tmp_path}')
  status, output, errors = calling.call(gp_classification, *arguments)
  assert not status, errors
  assert 'Test accuracy (%), iris' in output
  folder = tmp_path / 'gp_classification'
  with (folder / 'measurements.csv').open(newline='') as stream:
    lines = list(csv.DictReader(stream))
  assert len(lines) == 2 * 4
  for metric in gp_classification.METRICS:
    for suffix in ('md', 'tex'):
      assert 'LN process' in (folder / f'{metric}.{suffix}').read_text()
  assert (tmp_path / 'figures/gp_classification.png').stat().st_size
  before = (folder / 'measurements.csv').read_bytes()
  monkeypatch.setattr(
      gp_classification, 'measure', lambda *_: pytest.fail('measured again'))
  calling.call(gp_classification, *arguments)
  assert (folder / 'measurements.csv').read_bytes() == before


def test_unknown_problems_and_foreign_flags_are_refused():
  status, _, _ = calling.call(gp_classification, '--problems=nonesuch')
  assert '--problems: must be of iris' in status
  status, _, _ = calling.call(gp_classification, '--methods=LN')
  assert '--methods: this program has no use for it' in status

"""The programs of the figures, from the command line to the files."""

import json

import pytest

from experiments import accuracy_evolution
from experiments import attenuation
from experiments import label_smoothing
from experiments import logit_simplex
from experiments import residuals
from experiments import sensitivity
from experiments import toy_datasets
from tests.experiments.programs import calling

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures('one_worker')]


@pytest.fixture(name='output_dir', scope='module')
def _output_dir(tmp_path_factory):
  return tmp_path_factory.mktemp('results')


@pytest.mark.parametrize('program, arguments, trained', [
    (logit_simplex, [], 0),
    (attenuation, [], 0),
    (toy_datasets, ['--dataset=two_moons'], 4),
    (accuracy_evolution, ['--noise=sym:0.2'], 2),
    (accuracy_evolution,
     ['--by_class', '--noise=asym:0.4', '--stop=label_wave'], 2),
    (sensitivity, ['--temperatures=0.5,1', '--min_scales=0.5'], 2),
    (label_smoothing, ['--smoothings=0.01,0.1', '--min_scales=0.5'], 2),
    pytest.param(residuals, [], 11, marks=pytest.mark.thorough),
], ids=[
    'logit_simplex', 'attenuation', 'toy_datasets', 'accuracy_evolution',
    'class_evolution', 'sensitivity', 'label_smoothing', 'residuals'])
def test_a_figure_is_drawn_from_runs_that_it_names(
    output_dir, program, arguments, trained):
  before = set(output_dir.glob('figures/*.json'))
  status, output, errors = calling.call(
      program, f'--output_dir={output_dir}', '--epochs=1', *arguments)
  assert status in (0, None), errors
  drawn = set(output_dir.glob('figures/*.json')) - before
  assert drawn
  named = set()
  for file in drawn:
    named |= set(json.loads(file.read_text(encoding='utf-8'))['runs'])
    for suffix in ('.png', '.pdf'):
      assert file.with_suffix(suffix).stat().st_size > 5_000
    assert str(file.with_suffix('.png')) in output
  assert len(named) >= trained
  for key in named:
    assert (output_dir / f'{key}.json').exists()

"""Tests of what the figures share."""

import dataclasses
import os

from absl.testing import flagsaver
import numpy as np
import pytest

from experiments import data
from experiments import label_smoothing
from experiments import training
from experiments.cli import recipes
from experiments.output import figures
from experiments.paper import grids
from experiments.sweep import launch
from experiments.training import fingerprint
from tests.experiments.sweep import fake_worker

RECORD = figures.Record(
    name='line', title='A line', caption='It rises.', runs=('a', 'b'),
    numbers={'slope': 1.})


def _line():
  with figures.style():
    figure, axes = figures.panels(1, 1)
    axes[0, 0].plot([0, 1], [0, 1])
    return figure


@pytest.mark.slow
def test_a_figure_is_saved_as_png_and_pdf_with_its_record(tmp_path):
  path = figures.save(_line(), tmp_path, RECORD)
  assert path == tmp_path / 'figures' / 'line.png'
  assert path.read_bytes().startswith(b'\x89PNG')
  assert path.with_suffix('.pdf').read_bytes().startswith(b'%PDF')
  assert figures.read_record(path.with_suffix('.json')) == RECORD
  assert sorted(file.name for file in path.parent.iterdir()) == [
      'line.json', 'line.pdf', 'line.png']


@pytest.mark.slow
def test_the_same_figure_gives_the_same_files(tmp_path):
  first = figures.save(_line(), tmp_path / '1', RECORD)
  second = figures.save(_line(), tmp_path / '2', RECORD)
  for suffix in ('.png', '.pdf', '.json'):
    assert (first.with_suffix(suffix).read_bytes()
            == second.with_suffix(suffix).read_bytes())


def test_a_network_is_measured_once(tmp_path):
  calls = []

  def weigh(result, factor, *, output_dir):
    calls.append(output_dir)
    return {'weight': np.full(3, factor * len(result.key))}

  result = _result(training.Run(epochs=1), .5)
  needs_weights = figures.unmeasured(weigh, tmp_path)
  assert needs_weights(training.Run(epochs=1))
  first = figures.measured(weigh, result, 2, output_dir=tmp_path)
  second = figures.measured(weigh, result, 2, output_dir=tmp_path)
  np.testing.assert_array_equal(first['weight'], second['weight'])
  assert len(calls) == 1
  assert not needs_weights(training.Run(epochs=1))


def test_a_network_that_other_code_made_is_measured_anew(tmp_path):
  calls = []

  def weigh(result, *, output_dir):
    calls.append((output_dir, result.code))
    return {'weight': np.ones(3)}

  run = training.Run(epochs=1)
  old, new = (
      training.Result(**fake_worker.document(run.to_dict(), run.key), code=code)
      for code in ({'loss': 'before'}, fingerprint.of(run)))
  is_missing = figures.unmeasured(weigh, tmp_path)
  with flagsaver.flagsaver():
    launch.FLAGS(['program'])
    training.write_result(old, tmp_path)
    assert is_missing(run)
    measured = figures.measured(weigh, old, output_dir=tmp_path)
    assert list(measured) == ['weight']
    assert not is_missing(run)
    launch.FLAGS.retrain = True
    assert is_missing(run)  # the weights that will be trained
    training.write_result(new, tmp_path)
    assert is_missing(run)
    figures.measured(weigh, new, output_dir=tmp_path)
    assert not is_missing(run)
  assert calls == [(tmp_path, old.code), (tmp_path, new.code)]


@pytest.mark.parametrize('make', [
    os.mkfifo, lambda file: file.write_bytes(b'PK'),
    lambda file: file.write_bytes(b'')])
def test_a_measurement_that_is_none_is_named_and_left_alone(tmp_path, make):
  result = _result(training.Run(epochs=1), .5)
  file = tmp_path / 'weigh' / f'{result.key}.npz'
  file.parent.mkdir()
  make(file)

  def weigh(*unused_arguments, output_dir):
    pytest.fail(f'measured again in {output_dir}')

  with pytest.raises(data.BadDataError, match=f'{file.name}.*move it away'):
    figures.measured(weigh, result, output_dir=tmp_path)
  assert file.exists()


def test_accuracy_is_drawn_as_mean_with_deviation_for_each_lambda():
  base = training.Run(hyperparameters={'temperature': 1.})
  cells = label_smoothing.cells(base, [.01, .1], [.5, 1.], range(2))
  assert len({run.key for run in grids.flat(cells)}) == 8
  accuracies = iter([.5, .7, .6, .6, .2, .2, .1, .1])
  results = {run.key: _result(run, next(accuracies))
             for run in grids.flat(cells)}
  with figures.style():
    ax = figures.draw_accuracy(cells, results, 't').axes[0]
  first, second = ax.containers
  np.testing.assert_allclose(first.lines[0].get_ydata(orig=False), [60., 60.])
  np.testing.assert_allclose(second.lines[0].get_ydata(orig=False), [20., 10.])
  lengths = [np.ptp(bar[:, 1]) for bar in first.lines[2][0].get_segments()]
  np.testing.assert_allclose(lengths, [2. * np.sqrt(200.), 0.], atol=1e-6)


def test_a_diverged_run_is_marked_and_not_drawn_as_a_number():
  base = training.Run(hyperparameters={'temperature': 1.})
  cells = label_smoothing.cells(base, [.01, .1], [.5], range(1))
  one, other = grids.flat(cells)
  results = {one.key: _result(one, .5), other.key: dataclasses.replace(
      _result(other, .5), status='diverged', metrics={})}
  with figures.style():
    ax = figures.draw_accuracy(cells, results, 't').axes[0]
  assert len(ax.containers[0].lines[0].get_ydata(orig=False)) == 1
  labels = [text.get_text() for text in ax.get_legend().get_texts()]
  assert 'diverged' in labels


def test_a_figure_of_nothing_is_refused():
  with pytest.raises(recipes.BadFlagError, match='No run has finished'):
    figures.finished([None])


@pytest.mark.parametrize('texts', [['a'], ['-1'], ['nan'], []])
def test_values_of_a_list_must_be_positive_numbers(texts):
  with pytest.raises(recipes.BadFlagError, match='--smoothings'):
    figures.numbers('smoothings', texts)


def _result(run, accuracy):
  method = run.resolve_method()
  return training.Result(
      key=run.key, run=run.to_dict(),
      hyperparameters=method.hyperparameters(), options={}, status='finished',
      divergence=None, metrics={'test_accuracy': accuracy}, history={},
      noise={}, examples={}, num_classes=10, input_shape=[8, 8, 1],
      parameters=1, transition=None, transition_estimates={},
      seconds={'wall': 1.}, steps_per_second=1., versions={}, device={},
      weights=None)

"""Runs the scripts of examples/, all in this process."""

import importlib
import pathlib
import sys

import numpy as np
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.thorough]
_FOLDER = pathlib.Path(__file__).resolve().parents[1] / 'examples'


@pytest.fixture
def example(monkeypatch):
  """Imports an example by its name."""
  monkeypatch.syspath_prepend(_FOLDER)

  def load(name):
    sys.modules.pop(name, None)
    return importlib.import_module(name)

  return load


def test_the_files_of_a_folder_are_audited(example):
  # What is found means nothing: the weights of the backbone are random.
  report = example('image_folder').main()
  assert report.class_names == ('blue', 'red')
  names = [pathlib.Path(each).name for each in report.ids]
  assert sorted(names) == sorted(f'{i}.png' for i in range(40))
  assert [pathlib.Path(each).parent.name for each in report.ids] == [
      report.class_names[k] for k in report.given]


def test_texts_are_classified_through_the_noise(example):
  assert example('text').main() > .95


def test_wrong_labels_of_a_table_are_found(example):
  module = example('tabular')
  classifier, report = module.main()
  columns, given = module.make_table()
  true = module.datasets.load_wine().target
  wrong = report.given != true
  assert np.mean(wrong[report.is_issue]) > .9
  assert np.mean(report.is_issue[wrong]) > .5
  named = classifier(columns)['class_name'].numpy().astype(str)
  assert np.mean(named == given) > .7


def test_pixels_are_classified_through_the_noise(example):
  assert example('segmentation').main() > .95


# keras-tuner has not followed Python's threads.
@pytest.mark.filterwarnings('ignore:.*is deprecated, :DeprecationWarning')
def test_settings_are_searched(example):
  pytest.importorskip('keras_tuner', reason='keras-tuner is not installed')
  model = example('tuning').main(max_trials=2, epochs=2)
  assert model.history.history['accuracy'][-1] > .2


def test_probabilities_come_out_of_fold(example):
  assert example('scikit_learn').main(cv=2, epochs=10) > .8


# Keras asks NumPy for a name that tf2onnx misses.
@pytest.mark.filterwarnings('ignore:In the future `np:FutureWarning')
def test_exported_models_agree_with_keras(example, tmp_path):
  for package in ('ai_edge_litert', 'onnxruntime', 'tf2onnx'):
    pytest.importorskip(package, reason=f'{package} is not installed')
  folder = tmp_path / 'models' / 'exported'  # the example makes it
  worst = example('export').main(str(folder))
  assert sorted(path.name for path in folder.iterdir()) == [
      'classifier.onnx', 'classifier.tflite']
  assert set(worst) == {'tflite', 'onnx'}
  assert max(worst.values()) < 1e-5

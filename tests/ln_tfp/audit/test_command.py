"""Tests of `python -m ln_tfp.audit`."""

import csv
import os
import re
import subprocess
import sys

import keras
import numpy as np
from PIL import Image
import pytest

from ln_tfp.audit import __main__ as command
from ln_tfp.audit import files
from ln_tfp.audit import fitting

OUTPUTS = {'labels.csv', 'audit.html', 'classifier.keras'}


def _write_csv(path, header, rows):
  with open(path, 'w', newline='', encoding='utf-8') as file:
    writer = csv.writer(file)
    writer.writerow(header)
    writer.writerows(rows)
  return str(path)


def _blobs(num=120, seed=0):
  """Features of two classes, far from each other; three labels are wrong."""
  rng = np.random.default_rng(seed)
  true = np.arange(num) % 2
  x = rng.normal(size=(num, 3)) + 6. * true[:, np.newaxis]
  given = true.copy()
  given[[3, 10, 57]] ^= 1
  return x, given, true


def test_arrays_with_named_labels_give_a_table_a_page_and_a_classifier(
    tmp_path, capsys):
  x, given, true = _blobs()
  np.save(tmp_path / 'x.npy', x)
  labels = _write_csv(tmp_path / 'y.csv', ['label'],
                      [['cat' if label else 'ant'] for label in given])
  output = tmp_path / 'out'
  status = command.main([
      '--images', str(tmp_path / 'x.npy'), '--labels', labels, '--output',
      str(output), '--epochs', '40'])
  assert status == 0
  assert set(os.listdir(output)) == OUTPUTS
  with open(output / 'labels.csv', newline='') as file:
    rows = list(csv.DictReader(file))
  issues = [int(row['id']) for row in rows if row['is_issue'] == 'True']
  assert issues == [3, 10, 57]
  assert rows[3]['given'] == 'ant' and rows[3]['suggested'] == 'cat'
  assert '3 look wrong' in capsys.readouterr().out
  # The classifier takes the examples as they are in the file.
  classifier = keras.models.load_model(output / 'classifier.keras')
  predicted = classifier.predict(x, verbose=0).argmax(axis=-1)
  np.testing.assert_array_equal(predicted, true)


def test_a_folder_of_images_is_read_in_the_order_of_the_labels(tmp_path):
  rng = np.random.default_rng(0)
  names = []
  for i in range(6):
    pixels = rng.integers(0, 256, (20 + i, 30, 3), dtype=np.uint8)
    names.append(f'{5 - i}.png')
    Image.fromarray(pixels).save(tmp_path / names[-1])
  labels = _write_csv(tmp_path / 'labels.csv', ['file', 'label'],
                      [(name, i % 2) for i, name in enumerate(names)])
  dataset = files.load(tmp_path, labels, size=16)
  assert dataset.inputs.shape == (6, 16, 16, 3)
  assert dataset.ids.tolist() == names
  assert dataset.labels.tolist() == [0, 1] * 3
  with Image.open(tmp_path / names[2]) as image:
    expected = np.asarray(image.resize((16, 16)))
  np.testing.assert_array_equal(dataset.inputs[2], expected)


def test_an_npz_file_may_bring_its_labels(tmp_path):
  x, given, _ = _blobs()
  np.savez(tmp_path / 'd.npz', images=x, labels=given)
  dataset = files.load(tmp_path / 'd.npz')
  np.testing.assert_array_equal(dataset.inputs, x)
  np.testing.assert_array_equal(dataset.labels, given)


@pytest.mark.parametrize('labels, classes, expected', [
    ([3, 7, 3], None, ([0, 1, 0], ('3', '7'))),
    (['3', '10', '3'], None, ([0, 1, 0], ('3', '10'))),
    (['b', 'a', 'b'], None, ([1, 0, 1], ('a', 'b'))),
    ([0, 1, 1], ('x', 'y'), ([0, 1, 1], ('x', 'y'))),
    (['y', 'x', 'x'], ('x', 'y'), ([1, 0, 0], ('x', 'y'))),
    (np.array([[2.], [4.]]), None, ([0, 1], ('2', '4'))),
])
def test_labels_are_numbers_or_names(labels, classes, expected):
  codes, names = files.encode(labels, classes)
  assert (codes.tolist(), names) == expected


@pytest.mark.parametrize('labels, classes, message', [
    ([1, 1, 1], None, 'All labels are the same'),
    (['a', 'b', 'c'], ('a', 'b'), "Label 2 is 'c', which is no class"),
    ([0, 1, 5], ('a', 'b'), "Label 2 is '5', which is no class"),
    ([0, -1], None, 'Label 1 is -1, which is no class'),
    ([0., 1.5], None, 'Label 1 is 1.5, which is no class'),
    ([0., np.nan], None, 'Label 1 is nan, which is no class'),
    (['a', ''], None, 'Label 1 is empty'),
    (np.zeros((2, 3)), None, 'single column'),
    ([0, 1], ('a', 'a', 'b'), 'must be different'),
])
def test_labels_that_are_no_classes_are_refused(labels, classes, message):
  with pytest.raises(files.InputError, match=message):
    files.encode(labels, classes)


def _refuse(arguments, capsys, message, output):
  assert command.main([*arguments, '--output', str(output)]) == 2
  error = capsys.readouterr().err
  assert re.search(message, error)
  assert len(error.splitlines()) == 1
  assert not output.exists()


@pytest.mark.parametrize('x, message', [
    (np.zeros((119, 3)), 'There are 119 examples and 120 labels'),
    (np.full((120, 3), np.nan), 'example 0 has values that are NaN'),
    (np.zeros(120), r'must be features \[N, F\] or images'),
    (np.full((120, 3), 'a'), 'must be numbers'),
])
def test_bad_arrays_are_refused_in_one_line(x, message, tmp_path, capsys):
  np.save(tmp_path / 'x.npy', x)
  np.save(tmp_path / 'y.npy', np.arange(120) % 2)
  _refuse(['--images', str(tmp_path / 'x.npy'), '--labels',
           str(tmp_path / 'y.npy')], capsys, message, tmp_path / 'out')


def test_bad_files_are_refused_in_one_line(tmp_path, capsys):
  np.save(tmp_path / 'x.npy', np.zeros((4, 3)))
  (tmp_path / 'broken.npy').write_bytes(b'not an array')
  (tmp_path / 'broken.png').write_bytes(b'not an image')
  header = _write_csv(tmp_path / 'header.csv', ['name'], [['a']])
  broken = _write_csv(tmp_path / 'broken.csv', ['file', 'label'],
                      [['broken.png', 'a']])
  missing = _write_csv(tmp_path / 'missing.csv', ['file', 'label'],
                       [['missing.png', 'a']])
  images, folder = str(tmp_path / 'x.npy'), str(tmp_path)
  for arguments, message in (
      (['--images', str(tmp_path / 'none.npy')], 'no such file'),
      (['--images', str(tmp_path / 'broken.npy')], 'no NumPy file'),
      (['--images', images], 'say --labels FILE'),
      (['--images', images, '--labels', header], 'must name the column label'),
      (['--images', images, '--labels', folder], 'not readable'),
      (['--images', folder, '--labels', header], 'must name the column file'),
      (['--images', folder, '--labels', broken], 'broken.png: not a readable'),
      (['--images', folder, '--labels', missing],
       'missing.png: not a readable'),
      (['--labels', header], 'need --images'),
      (['--images', images, '--noise', 'sym:0.2'], '--noise needs --dataset'),
      (['--dataset', 'nothing', '--data_dir', folder], 'nothing is missing in'),
      (['--dataset', 'digits', '--noise', 'loud'], 'noise'),
      (['--dataset', 'mnist', '--data_dir', folder], 'is missing'),
  ):
    _refuse(arguments, capsys, message, tmp_path / 'out')


def test_an_interrupt_leaves_nothing_behind(tmp_path, capsys, monkeypatch):
  x, given, _ = _blobs()
  np.savez(tmp_path / 'd.npz', x=x, y=given)

  def interrupt(*_):
    raise KeyboardInterrupt

  arguments = ['--images', str(tmp_path / 'd.npz'), '--epochs', '1',
               '--output', str(tmp_path / 'out')]
  monkeypatch.setattr(keras.Model, 'save', interrupt)
  assert command.main(arguments) == 130
  assert 'Nothing was written' in capsys.readouterr().err
  assert os.listdir(tmp_path) == ['d.npz']


def test_the_users_own_labels_are_not_overwritten(tmp_path, capsys):
  np.save(tmp_path / 'x.npy', np.zeros((4, 3)))
  labels = _write_csv(tmp_path / 'labels.csv', ['label'], [['a'], ['b']] * 2)
  before = (tmp_path / 'labels.csv').read_text()
  assert command.main(['--images', str(tmp_path / 'x.npy'), '--labels', labels,
                       '--output', str(tmp_path)]) == 2
  assert 'labels.csv would be lost' in capsys.readouterr().err
  assert (tmp_path / 'labels.csv').read_text() == before


def test_a_folder_that_cannot_be_written_is_refused_before_training(
    tmp_path, capsys):
  (tmp_path / 'file').write_text('x')
  assert command.main(['--output', str(tmp_path / 'file')]) == 2
  assert 'file: not a folder.' in capsys.readouterr().err


@pytest.mark.parametrize('shape, name', [
    ((7,), 'mlp'), ((8, 8, 1), 'mlp'), ((28, 28, 1), 'convolutional'),
    ((28, 28, 3), 'convolutional'), ((32, 32, 3), 'residual'),
    ((64, 64, 1), 'convolutional'), ((64, 48, 3), 'residual')])
def test_the_network_follows_from_the_shape(shape, name):
  assert fitting.choose_network(shape) == name


def test_few_examples_are_trained_on_for_more_epochs():
  assert fitting.default_epochs(1_300) > fitting.default_epochs(60_000) >= 15


@pytest.mark.slow
def test_the_demonstration_finds_the_changed_labels_on_a_clean_terminal(
    tmp_path):
  environment = {key: value for key, value in os.environ.items()
                 if key != 'TF_CPP_MIN_LOG_LEVEL'}
  result = subprocess.run(
      [sys.executable, '-m', 'ln_tfp.audit', '--output', str(tmp_path / 'o')],
      capture_output=True, text=True, env=environment, check=True)
  wrong, found, false_alarms = map(int, re.search(
      r'(\d+) labels are known to be wrong: (\d+) of them were found, with '
      r'(\d+) false', result.stdout).groups())
  assert found > .93 * wrong
  assert false_alarms < .1 * wrong
  assert set(os.listdir(tmp_path / 'o')) == OUTPUTS
  for line in result.stderr.splitlines():
    assert line.startswith('training ')

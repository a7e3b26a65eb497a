"""Tests of `python -m ln_tfp.audit`."""

import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import zipfile

import keras
import numpy as np
from PIL import Image
import pytest

import ln_tfp
from ln_tfp import backbones
from ln_tfp.audit import __main__ as command
from ln_tfp.audit.command import estimating
from ln_tfp.audit.command import fitting
from ln_tfp.audit.command import output
from ln_tfp.audit.command import pretrained

OUTPUTS = {*output.NAMES, output.MARK}


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


@pytest.mark.slow
def test_arrays_with_named_labels_give_a_table_a_page_and_a_classifier(
    tmp_path, capsys):
  x, given, true = _blobs()
  np.save(tmp_path / 'x.npy', x)
  labels = _write_csv(tmp_path / 'y.csv', ['label'],
                      [['cat' if label else 'ant'] for label in given])
  out = tmp_path / 'out'
  status = command.main([
      '--images', str(tmp_path / 'x.npy'), '--labels', labels, '--output',
      str(out), '--epochs', '40'])
  assert status == 0
  assert set(os.listdir(out)) == OUTPUTS
  with open(out / 'labels.csv', newline='') as file:
    rows = list(csv.DictReader(file))
  issues = [int(row['id']) for row in rows if row['is_issue'] == 'True']
  assert issues == [3, 10, 57]
  assert rows[3]['given'] == 'ant' and rows[3]['suggested'] == 'cat'
  printed = capsys.readouterr().out
  assert '3 look wrong' in printed
  assert 'about 1 s and 0.1 GB of memory' in printed.splitlines()[0]
  # The classifier takes the examples as they are in the file.
  classifier = keras.models.load_model(out / 'classifier.keras')
  predicted = classifier.predict(x, verbose=0).argmax(axis=-1)
  np.testing.assert_array_equal(predicted, true)


def _refuse(arguments, capsys, message, out):
  assert command.main([*arguments, '--output', str(out)]) == 2
  error = capsys.readouterr().err
  assert re.search(message, error)
  assert len(error.splitlines()) == 1
  assert not out.exists()


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
  for name in ('broken.png', 'broken2.png'):
    (tmp_path / name).write_bytes(b'not an image')
  header = _write_csv(tmp_path / 'header.csv', ['name'], [['a']])
  broken = _write_csv(tmp_path / 'broken.csv', ['file', 'label'],
                      [['broken.png', 'a'], ['broken2.png', 'b']])
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
      (['--labels', header], 'needs DATA'),
      (['--images', images, '--noise', 'sym:0.2'], '--noise needs --dataset'),
      (['--dataset', 'nothing', '--data_dir', folder], 'nothing is missing in'),
      (['--dataset', 'digits', '--noise', 'loud'], 'noise'),
      (['--dataset', 'mnist', '--data_dir', folder], 'is missing'),
  ):
    _refuse(arguments, capsys, message, tmp_path / 'out')


@pytest.mark.slow
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


def test_the_estimate_of_time_follows_the_work(monkeypatch):
  monkeypatch.setattr(estimating, '_speed', lambda: 5e10)
  # The closed form on 10,000 x 1280 takes two seconds on such a core.
  assert 1. < estimating.closed_form(10_000, 1280, 10) < 4.
  assert estimating.closed_form(50_000, 1280, 100) > 4.
  small = estimating.training(1_000, (28, 28, 1), epochs=1)
  assert estimating.training(3_000, (28, 28, 1), epochs=2) == pytest.approx(
      6. * small)
  assert estimating.training(1_000, (32, 32, 3), epochs=1) > small
  assert estimating.describe(80., 3 * 2**30) == (
      'about 1 min 20 s and 3.0 GB of memory beside TensorFlow')


def test_of_many_classes_only_what_is_held_and_fitted_to_is_counted(
    monkeypatch):
  monkeypatch.setattr(estimating, '_speed', lambda: 5e10)
  million = estimating.predictions(1_000_000, 1_000, trained=False)
  assert million < 2**30
  assert estimating.predictions(1_000_000, 1_000, trained=True) > 10 * million
  # The EM sees a sample; all else is linear in the rows.
  seconds = [estimating.closed_form(num, 1280, 1_000)
             for num in (1_000_000, 2_000_000)]
  assert seconds[1] - seconds[0] < 1_000.


def test_auto_finds_weights_by_the_names_that_keras_gives_them(
    tmp_path, monkeypatch):
  (tmp_path / 'models').mkdir()
  monkeypatch.setenv('KERAS_HOME', str(tmp_path))
  monkeypatch.setattr(pretrained, 'load', lambda name, size: name)
  for name, file in (
      ('ResNet50', 'resnet50_weights_tf_dim_ordering_tf_kernels_notop.h5'),
      ('MobileNetV2', 'mobilenet_v2_weights_tf_dim_ordering_tf_kernels_1.0_224_'
       'no_top.h5'),
      ('EfficientNetB0', 'efficientnetb0_notop.h5'),
      ('EfficientNetV2B0', 'efficientnetv2-b0_notop.h5')):
    (tmp_path / 'models' / file).touch()
    assert pretrained._load_auto(None) == name


def test_an_interrupt_while_tensorflow_is_imported_is_one_line(tmp_path):
  (tmp_path / 'keras.py').write_text(
      'import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\n'
      'time.sleep(60)\n')
  root = pathlib.Path(ln_tfp.__file__).parents[1]
  result = subprocess.run(
      [sys.executable, '-m', 'ln_tfp.audit'], capture_output=True, text=True,
      cwd=tmp_path, env={**os.environ, 'PYTHONPATH': f'{tmp_path}:{root}'})
  assert result.returncode == 130
  assert result.stderr == '\nInterrupted. Nothing was written.\n'
  assert result.stdout == ''


def test_the_audits_own_network_has_no_warm_up():
  x = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
  model = fitting.fit(x, np.arange(8) % 2, 2, epochs=1)
  assert model.layers[-1].warm_up == 0


def test_few_examples_are_trained_on_for_more_epochs():
  assert fitting.default_epochs(1_300) > fitting.default_epochs(60_000) >= 15


@pytest.mark.slow
@pytest.mark.thorough
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


@pytest.fixture
def blobs(tmp_path):
  """A file of features with labels."""
  x, given, _ = _blobs()
  np.savez(tmp_path / 'd.npz', x=x, y=given)
  return str(tmp_path / 'd.npz')


def _snapshot(folder):
  return {path.name: path.read_bytes() for path in folder.iterdir()
          if path.is_file()}


def test_an_audit_may_replace_what_an_audit_has_written(blobs, tmp_path):
  arguments = [blobs, '--epochs', '1', '--output', str(tmp_path / 'out')]
  assert command.main(arguments) == 0
  (tmp_path / 'out' / 'decisions.csv').write_text('mine')
  before = _snapshot(tmp_path / 'out')
  assert command.main([*arguments, '--budget', '5']) == 0
  after = _snapshot(tmp_path / 'out')
  assert after['labels.csv'] != before['labels.csv']
  assert after['decisions.csv'] == b'mine'
  assert set(after) == OUTPUTS | {'decisions.csv'}


@pytest.mark.parametrize('name', ['labels.csv', 'notes.txt'])
def test_a_folder_with_files_of_the_user_is_refused(
    name, blobs, tmp_path, capsys):
  out = tmp_path / 'out'
  out.mkdir()
  (out / name).write_text('mine')
  arguments = [blobs, '--epochs', '1', '--output', str(out)]
  assert command.main(arguments) == 2
  assert f'is not empty ({name}); name a new' in capsys.readouterr().err
  assert _snapshot(out) == {name: b'mine'}
  assert command.main([*arguments, '--overwrite']) == 0
  assert set(os.listdir(out)) == OUTPUTS | {name}
  assert (name == 'notes.txt') == ((out / name).read_text() == 'mine')


def test_a_file_that_was_changed_after_the_audit_belongs_to_the_user(
    blobs, tmp_path, capsys):
  out = tmp_path / 'out'
  arguments = [blobs, '--epochs', '1', '--output', str(out)]
  assert command.main(arguments) == 0
  (out / 'labels.csv').write_text('corrected by hand')
  assert command.main(arguments) == 2
  assert 'labels.csv was changed since an audit' in capsys.readouterr().err
  assert (out / 'labels.csv').read_text() == 'corrected by hand'


def test_outputs_that_cannot_be_replaced_are_told_before_the_work(
    blobs, tmp_path, capsys):
  out = tmp_path / 'out'
  (out / 'classifier.keras').mkdir(parents=True)
  assert command.main([blobs, '--output', str(out), '--overwrite']) == 2
  assert 'classifier.keras is a folder' in capsys.readouterr().err
  assert os.listdir(out) == ['classifier.keras']


def test_files_that_are_read_are_never_replaced(blobs, tmp_path, capsys):
  out = tmp_path / 'out'
  out.mkdir()
  labels = _write_csv(out / 'labels.csv', ['label'],
                      [['a'], ['b']] * 60)
  x, _, _ = _blobs()
  np.save(tmp_path / 'x.npy', x)
  before = (out / 'labels.csv').read_text()
  assert command.main([str(tmp_path / 'x.npy'), '--labels', labels, '--output',
                       str(out), '--overwrite']) == 2
  assert 'labels.csv would be lost' in capsys.readouterr().err
  assert (out / 'labels.csv').read_text() == before


@pytest.mark.slow
def test_if_a_file_cannot_be_moved_the_old_ones_stay(
    blobs, tmp_path, monkeypatch):
  out = tmp_path / 'out'
  arguments = [blobs, '--epochs', '1', '--output', str(out)]
  assert command.main(arguments) == 0
  before = _snapshot(out)
  real, calls = os.replace, []

  def fail_late(source, target):
    calls.append(target)
    if len(calls) == 6:  # four old ones out, one new one in
      raise OSError('the disk is full')
    real(source, target)

  monkeypatch.setattr(os, 'replace', fail_late)
  assert command.main([*arguments, '--budget', '2']) == 2
  assert _snapshot(out) == before
  assert sorted(os.listdir(tmp_path)) == ['d.npz', 'out']


def test_the_classifier_knows_its_classes(blobs, tmp_path, capsys):
  assert command.main([blobs, '--epochs', '1', '--classes', 'ant,bee',
                       '--output', str(tmp_path / 'out')]) == 0
  assert 'Its outputs, in order: ant, bee' in capsys.readouterr().out
  path = tmp_path / 'out' / 'classifier.keras'
  with zipfile.ZipFile(path) as archive:
    assert json.loads(archive.read('class_names.json')) == ['ant', 'bee']
  assert keras.models.load_model(path).output_shape == (None, 2)


def test_a_budget_and_the_number_shown_are_kept(blobs, tmp_path):
  assert command.main([blobs, '--epochs', '30', '--budget', '7', '--shown', '2',
                       '--output', str(tmp_path / 'out')]) == 0
  with open(tmp_path / 'out' / 'labels.csv', newline='') as file:
    rows = list(csv.DictReader(file))
  assert sum(row['is_issue'] == 'True' for row in rows) == 7
  assert 'worst 2 of 7' in (tmp_path / 'out' / 'audit.html').read_text()


@pytest.mark.parametrize('arguments', [
    ['--budget', '0'], ['--precision', '2'], ['--shown', '-1'],
    ['--budget', '3', '--precision', '.9']])
def test_flags_that_make_no_sense_are_refused_at_once(arguments):
  with pytest.raises(SystemExit):
    command.main(arguments)


def test_a_table_of_texts_is_audited_by_its_columns(tmp_path, capsys):
  rng = np.random.default_rng(0)
  words = {'pos': ['good', 'great', 'fine', 'lovely', 'superb'],
           'neg': ['bad', 'awful', 'poor', 'nasty', 'dreadful']}
  rows = []
  for i in range(200):
    label = ('pos', 'neg')[i % 2]
    text = ' '.join(rng.choice([*words[label], 'the', 'a'], 8))
    rows.append([text, rng.integers(5), label])
  rows[11][2], rows[40][2] = 'pos', 'neg'
  path = _write_csv(tmp_path / 't.csv', ['text', 'n', 'mood'], rows)
  assert command.main([path, '--label', 'mood', '--epochs', '40', '--output',
                       str(tmp_path / 'out')]) == 0
  printed = capsys.readouterr().out
  assert 'Read as text: text' in printed and 'Read as numbers: n' in printed
  with open(tmp_path / 'out' / 'labels.csv', newline='') as file:
    found = [int(row['id']) for row in csv.DictReader(file)
             if row['is_issue'] == 'True']
  assert {11, 40} <= set(found) and len(found) <= 4
  # A classifier would need the columns' transformers, too.
  assert set(os.listdir(tmp_path / 'out')) == OUTPUTS - {'classifier.keras'}


@pytest.mark.slow
def test_images_are_embedded_by_a_backbone(tmp_path, capsys):
  colours = {'red': (200, 30, 30), 'blue': (30, 30, 200)}
  rng = np.random.default_rng(0)
  wrong = {8, 31, 52, 77, 96}
  for i in range(120):
    name = ('red', 'blue')[i % 2]
    folder = ('red', 'blue')[(i + (i in wrong)) % 2]
    pixels = np.clip(rng.normal(colours[name], 20, (12, 12, 3)), 0, 255)
    (tmp_path / 'images' / folder).mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels.astype(np.uint8)).save(
        tmp_path / 'images' / folder / f'{i}.png')
  inputs = keras.Input((8, 8, 3))
  keras.Model(inputs, keras.layers.GlobalAveragePooling2D()(inputs)).save(
      tmp_path / 'backbone.keras')
  assert command.main([
      str(tmp_path / 'images'), '--backbone', str(tmp_path / 'backbone.keras'),
      '--output', str(tmp_path / 'out')]) == 0
  assert 'embedded by' in capsys.readouterr().out
  with open(tmp_path / 'out' / 'labels.csv', newline='') as file:
    found = {int(row['id'].split('/')[1][:-4]) for row in csv.DictReader(file)
             if row['is_issue'] == 'True'}
  assert found == wrong
  classifier = keras.models.load_model(tmp_path / 'out' / 'classifier.keras')
  image = np.full((1, 8, 8, 3), colours['red'], np.float32)
  assert classifier.predict(image, verbose=0).argmax() == 1  # blue, red


@pytest.mark.parametrize('name, message', [
    ('nothing.keras', 'There is no backbone'),
    ('broken.keras', '--backbone=.*broken.keras: '),
    ('flat.keras', 'must turn images'),
    ('NoSuchNet', 'must be a .keras file or one of'),
])
def test_backbones_that_cannot_be_used_are_refused(
    name, message, tmp_path, capsys):
  np.savez(tmp_path / 'd.npz', x=np.zeros((4, 8, 8, 3)), y=[0, 1, 0, 1])
  (tmp_path / 'broken.keras').write_bytes(b'no model')
  keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)]).save(
      tmp_path / 'flat.keras')
  backbone = str(tmp_path / name) if name.endswith('.keras') else name
  _refuse([str(tmp_path / 'd.npz'), '--backbone', backbone], capsys, message,
          tmp_path / 'out')


@pytest.mark.slow
def test_without_pretrained_weights_auto_says_so_and_trains(
    tmp_path, capsys, monkeypatch):
  def offline(*_):
    raise OSError('no network')

  monkeypatch.setenv('KERAS_HOME', str(tmp_path / 'keras'))
  monkeypatch.setattr(backbones, 'load', offline)
  images = np.zeros((30, 4, 4, 3), np.uint8)
  images[15:] = 255
  np.savez(tmp_path / 'x.npz', images=images, labels=np.repeat([0, 1], 15))
  assert command.main([
      str(tmp_path / 'x.npz'), '--backbone=auto', '--epochs=1', '--output',
      str(tmp_path / 'out')]) == 0
  printed = capsys.readouterr().out
  assert 'a small one is trained instead' in printed
  assert 'network: mlp' in printed


def test_features_need_no_backbone(blobs, tmp_path, capsys):
  _refuse([blobs, '--backbone', 'auto'], capsys, '--backbone needs images',
          tmp_path / 'out')


@pytest.mark.slow
def test_a_second_audit_takes_decided_labels_as_certain(blobs, tmp_path):
  decisions = _write_csv(
      tmp_path / 'decisions.csv', ['id', 'given', 'decision', 'label'],
      [['3', '0', 'accept', '1'], ['10', '1', 'keep', '1'],
       ['57', '0', 'remove', '']])
  assert command.main([blobs, '--decisions', decisions, '--epochs', '40',
                       '--budget', '50', '--output', str(tmp_path / 'o')]) == 0
  with open(tmp_path / 'o' / 'labels.csv', newline='') as file:
    rows = {row['id']: row for row in csv.DictReader(file)}
  assert len(rows) == 119 and '57' not in rows
  assert rows['3']['given'] == '1'
  assert not any(rows[name]['is_issue'] == 'True' for name in ('3', '10'))


def test_decisions_about_other_data_are_refused(blobs, tmp_path, capsys):
  decisions = _write_csv(
      tmp_path / 'decisions.csv', ['id', 'given', 'decision', 'label'],
      [['3', '1', 'accept', 'x']])
  _refuse([blobs, '--decisions', decisions], capsys,
          "about the label '1', but its label is '0'", tmp_path / 'out')

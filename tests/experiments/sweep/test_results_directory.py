"""A directory of results with strangers, losses and several programs in it."""

import dataclasses
import errno
import json
import multiprocessing
import os
import re
import zipfile

from absl.testing import flagsaver
import pytest

from experiments import calibration
from experiments import synthetic_noise
from experiments import training
from experiments.cli import app
from experiments.output import evidence
from experiments.paper import tuned
from experiments.sweep import csv_files
from experiments.sweep import index
from experiments.sweep import launch
from experiments.sweep import plan as plan_lib
from experiments.sweep import store
from experiments.training import results
from experiments.training import runner
from experiments.training import store as training_store
from ln_tfp import files
from tests.experiments.programs import calling
from tests.experiments.sweep import fake_worker
from tests.experiments.training import tiny

_RUN = training.Run(method='CE', noise='sym:0.4', epochs=2)


def _document(run=_RUN, **changes):
  return {**fake_worker.document(run.to_dict(), run.key), **changes}


@pytest.fixture(name='directory')
def _directory(tmp_path):
  """A directory with one good result."""
  training.write_result(training.Result(**_document()), tmp_path)
  return tmp_path


def _fifo(file):
  os.mkfifo(file)


def _zip_bomb(file):
  with zipfile.ZipFile(file, 'w', zipfile.ZIP_DEFLATED) as archive:
    archive.writestr('bomb.json', b'0' * (store._MAX_BYTES + 1))


def _result(**changes):
  other = dataclasses.replace(_RUN, seed=7)
  return lambda file: file.with_name(f'{other.key}.json').write_text(
      json.dumps({**_document(other), **changes}))


_STRANGERS = {
    'fifo.json': (_fifo, 'regular file'),
    'fifo.zip': (_fifo, 'regular file'),
    'directory.json': (os.mkdir, 'regular file|directory'),
    'directory.zip': (os.mkdir, 'regular file'),
    'nowhere.json': (lambda file: file.symlink_to('gone'), 'link to nothing'),
    'loop.json': (lambda file: file.symlink_to(file.name), 'loop.json'),
    'endless.json': (
        lambda file: file.symlink_to('/dev/zero'), 'regular file'),
    'deep.json': (lambda file: file.write_text('[' * 200_000), 'deep'),
    'list.json': (lambda file: file.write_text('[1]'), 'list.json'),
    'binary.json': (lambda file: file.write_bytes(b'\xff\xfe'), 'text'),
    'bomb.zip': (_zip_bomb, 'bytes'),
    'other.zip': (lambda file: file.write_bytes(b'PK'), 'other.zip'),
    'newer': (_result(invention=1), 'invention, which this version'),
    'accuracy': (_result(metrics={'test_accuracy': 7.5}), 'is 7.5'),
    'nan': (_result(metrics={'test_accuracy': float('nan')}), 'NaN'),
    'type': (_result(metrics=[1]), 'its metrics is a list'),
    'history': (_result(history={'loss': ['x']}), 'history of loss'),
    'status': (_result(status='maybe'), 'maybe'),
    'key': (_result(run={**_RUN.to_dict(), 'seed': 7, 'epochs': 3}), 'key'),
    'seed': (_result(run=_RUN.to_dict()), 'key'),
    'outside': (_result(
        weights={'file': '../x.npz', 'sha256': ''}), 'not beside'),
}


@pytest.mark.parametrize('name', _STRANGERS)
def test_a_stranger_is_named_and_left_alone(directory, name):
  make, said = _STRANGERS[name]
  make(directory / name)
  before = sorted(os.listdir(directory))
  found, problems = store.Store(directory).everything
  assert list(found) == [_RUN.key]
  [problem] = problems
  assert '\n' not in problem
  assert re.search(said, problem)
  assert sorted(os.listdir(directory)) == before


def test_what_the_index_knows_is_not_read_again(directory, monkeypatch):
  monkeypatch.setattr(index, '_WORTH_IT', 1)
  (directory / 'other.json').write_text('[]')
  first = store.Store(directory).entries
  assert [bool(entry.problem) for entry in first] == [False, True]
  with monkeypatch.context() as patch:
    patch.setattr(training, 'read_result', lambda *unused: pytest.fail())
    assert store.Store(directory).entries == first
  assert store.Store(directory).everything[0][_RUN.key].key == _RUN.key
  # In doubt it is: a newer file, an index that is none.
  file = directory / f'{_RUN.key}.json'
  file.write_text(json.dumps(_document(metrics={'test_accuracy': 2.})))
  assert all(entry.problem for entry in store.Store(directory).entries)
  file.write_text(json.dumps(_document()))
  (directory / '.locks' / 'index.json').write_text('[' * 100_000)
  assert store.Store(directory).entries == first


@pytest.mark.parametrize('values', [
    ['', ['digits', 'mlp'], 1., 1.], ['', [], 1., 1.],
    ['', ['digits', 'mlp', 'CE'], 'long', 1.], [None, [], None, 0.],
    ['', ['digits', 'mlp', 'CE'], 1., float('nan')], ['', [], None, 10**400]])
def test_an_index_with_an_odd_entry_is_not_believed(directory, values):
  first = store.Store(directory).entries
  name = f'{_RUN.key}.json'
  file = directory / '.locks' / 'index.json'
  file.parent.mkdir()
  file.write_text(json.dumps({str(index._VERSION): {
      name: [index.signature(directory / name), *values]}}))
  assert store.Store(directory).entries == first


@pytest.mark.parametrize('old, kept', [
    ('row,column,runs\nCE,none,a b\nLN\n', 'CE,none,a b\n'),  # cut short
    ('row,column,mine\nCE,none,7\n', ''),
    ('zebra\n', ''),
])
def test_lines_of_another_form_are_kept_beside_a_table(
    tmp_path, capsys, old, kept):
  file, header = tmp_path / 'tables' / 'x.csv', 'row,column,runs\n'
  file.parent.mkdir()
  write = lambda: csv_files.write(
      tmp_path, 'tables/x.csv', header + 'LN,none,c\n', ('row', 'column'))
  for number in (1, 2):  # the second does not replace the first
    file.write_text(old)
    write()
    assert file.read_text() == header + kept + 'LN,none,c\n'
    assert (file.parent / f'x.csv.{number}').read_text() == old
    assert f'x.csv.{number}' in capsys.readouterr().err
  write()  # now all is of one form
  assert not capsys.readouterr().err
  assert len(list(file.parent.iterdir())) == 3


@pytest.mark.slow
def test_lost_weights_are_trained_into_a_file_of_their_own(tmp_path):
  run = tiny.run(method='LN', epochs=2)
  train = lambda **settings: training.train(
      run, source=tiny.source(), output_dir=tmp_path, strategy='one',
      **settings)
  result = train()
  stored = dataclasses.replace(result, metrics={
      **result.metrics, 'test_accuracy': .25}, weights=None)
  file = training.write_result(stored, tmp_path)
  content = file.read_bytes()
  always = lambda run: True
  assert plan_lib.Plan([run], tmp_path, need_weights=always).pending
  assert train(keep_weights=True) == stored
  assert file.read_bytes() == content
  assert (tmp_path / 'weights' / f'{run.key}.npz').exists()
  assert training.load_model(run, tmp_path).count_params() > 0
  plan = plan_lib.Plan([run], tmp_path, need_weights=always)
  assert not plan.pending and plan.results[run.key] == stored
  [remark] = plan.results.remarks
  assert 'has test_accuracy' in remark and 'has 0.25' in remark
  # It is not trained a third time, and goes with a result that is replaced.
  epochs = []
  train(keep_weights=True, progress=lambda *each: epochs.append(each))
  assert not epochs
  training.write_result(dataclasses.replace(stored, code={'x': ''}), tmp_path)
  train(retrain=True)
  assert training.read_result(file).metrics == result.metrics
  assert not (tmp_path / 'weights' / f'{run.key}.npz').exists()


@pytest.mark.slow
def test_weights_of_small_networks_are_kept_without_being_asked_for(tmp_path):
  run = tiny.run(epochs=1)
  result = training.train(
      run, source=tiny.source(), output_dir=tmp_path, strategy='one',
      keep_weights='small')
  assert training_store.read_weights(result, tmp_path)
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(runner, '_SMALL', 10)
    other = training.train(
        dataclasses.replace(run, seed=1), source=tiny.source(),
        output_dir=tmp_path, strategy='one', keep_weights='small')
  assert other.weights is None


@pytest.mark.parametrize('suffix, name', [
    ('.ckpt', 'epoch-00000'), ('.npz', '.npz')])
@pytest.mark.slow
def test_a_checkpoint_or_weights_that_cannot_be_written_are_a_warning(
    tmp_path, monkeypatch, suffix, name):
  def fail(path, content):
    if path.suffix == suffix:
      raise OSError(errno.ENOSPC, 'No space left on device', str(path))
    write(path, content)

  write = files.write_atomically
  monkeypatch.setattr(files, 'write_atomically', fail)
  said = []
  result = training.train(
      tiny.run(epochs=2), source=tiny.source(), output_dir=tmp_path,
      strategy='one', warn=said.append, keep_weights=True)
  assert result.status == 'finished'
  assert (result.weights is None) == (suffix == '.npz')
  assert training.read_result(tmp_path / f'{result.key}.json') == result
  assert said and all(
      'No space left' in line and name in line for line in said)


@pytest.mark.parametrize('folder', ['', 'tuned', 'tables', 'figures'])
def test_a_folder_that_may_not_be_read_is_not_taken_for_empty(
    directory, folder):
  closed = directory / folder
  closed.mkdir(exist_ok=True)
  closed.chmod(0)
  try:
    if os.access(closed, os.R_OK):
      pytest.skip('This user may read everything.')
    with pytest.raises(PermissionError):
      if folder == 'tuned':
        tuned.read(closed)
      else:
        evidence.Facts(directory)
  finally:
    closed.chmod(0o755)


def _merge(directory, name):
  app.FLAGS(['program', f'--output_dir={directory}'])
  for number in range(20):
    app.write('tables/x.csv', f'row,column,runs\n{name},{number},a\n',
              ('row', 'column'))


def test_programs_at_once_lose_no_line_of_a_table(tmp_path):
  context = multiprocessing.get_context('fork')
  processes = [context.Process(target=_merge, args=(tmp_path, name))
               for name in 'abc']
  for process in processes:
    process.start()
  for process in processes:
    process.join(60)
  lines = (tmp_path / 'tables' / 'x.csv').read_text().splitlines()
  assert len(lines) == 1 + 3 * 20


@pytest.fixture(name='own_flags')
def _own_flags(tmp_path):
  with flagsaver.flagsaver():
    yield


def _finished(directory, methods=('CE', 'LN'), seeds=1):
  """Results of digits' recipe, for tables that train nothing."""
  made = {}
  record = lambda runs, *unused, **more: made.update(
      {run.key: run for run in runs}) or launch.plan_lib.Results()
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(app, 'train', record)
    calling.call(synthetic_noise, f'--output_dir={directory}',
                 f'--methods={",".join(methods)}', '--noise=none,sym:0.4',
                 f'--seeds={seeds}')
  for number, run in enumerate(made.values()):
    training.write_result(training.Result(**fake_worker.document(
        run.to_dict(), run.key, accuracy=.5 + number / 100)), directory)
  for file in (directory / 'tables').glob('*'):
    file.unlink()


def _call(directory, *arguments):
  status, output, errors = calling.call(
      synthetic_noise, f'--output_dir={directory}', *arguments)
  assert status == 0, errors
  return output


def test_a_narrower_call_keeps_the_other_cells_of_all_files(
    tmp_path, own_flags):
  _finished(tmp_path)
  read = lambda: {
      file.name: file.read_text()
      for file in (tmp_path / 'tables').iterdir()}
  _call(tmp_path, '--methods=CE,LN', '--noise=none,sym:0.4')
  whole = read()
  output = _call(tmp_path, '--methods=LN', '--noise=sym:0.4')
  assert 'CE' not in output  # what was asked for is shown
  assert read() == whole
  for file in (tmp_path / 'tables').iterdir():
    file.unlink()
  _call(tmp_path, '--methods=LN', '--noise=none,sym:0.4')
  _call(tmp_path, '--methods=CE', '--noise=none,sym:0.4')
  text = (tmp_path / 'tables' / 'synthetic_noise-digits.md').read_text()
  assert '| CE |' in text and '| LN |' in text


def test_calibration_of_a_network_made_anew_is_measured_anew(
    tmp_path, own_flags, monkeypatch):
  measured = []

  def measure(function, calls):
    del function
    for each in calls:
      measured.append(each['key'])
      result = store.Store(tmp_path).find(each['key'])
      files.write_atomically(
          calibration.measurement(each['key'], tmp_path),
          json.dumps({'mean': len(measured), 'code': result.code}).encode())

  monkeypatch.setattr(launch, 'measure', measure)
  app.FLAGS(['program'])
  run = app.tuned_run(app.base_run('digits'), 'CE', 'none')
  (tmp_path / f'{run.key}.npz').touch()
  document = _document(
      run, weights={'file': f'{run.key}.npz', 'sha256': ''})
  arguments = ('--dataset=digits_n', f'--output_dir={tmp_path}', '--methods=CE')
  for number, code in ((1, 'before'), (1, 'before'), (2, 'after')):
    training.write_result(
        training.Result(**document, code={'loss': code}), tmp_path)
    stale = number > len(measured) > 0
    if stale:  # the report does not show the old number as the new network's
      cells = evidence.Facts(tmp_path).tables['calibration-digits_n'].cells
      assert not cells['CE', 'none'].values
    status, output, errors = calling.call(calibration, *arguments)
    assert status == 0, errors
    assert re.search(rf'^CE +{number}\.00', output, re.M)
  assert len(measured) == 2


def test_a_table_reads_each_result_once(tmp_path, own_flags, monkeypatch):
  _finished(tmp_path)
  stored = sorted(file.name for file in tmp_path.glob('*.json'))
  read = []

  def read_bounded(file, limit, whole=results.read_bounded):
    read.append(os.path.basename(file))
    return whole(file, limit)

  monkeypatch.setattr(results, 'read_bounded', read_bounded)
  _call(tmp_path, '--methods=CE,LN', '--noise=none,sym:0.4')
  assert sorted(name for name in read if name.startswith('digits')) == stored


def test_a_read_only_directory_is_shown(tmp_path, own_flags, monkeypatch):
  _finished(tmp_path)

  def refuse():
    raise OSError(errno.EROFS, 'Read-only file system', str(tmp_path))

  monkeypatch.setattr(launch, '_check_writable', refuse)
  output = _call(tmp_path, '--methods=CE,LN', '--noise=none,sym:0.4')
  assert '50.00' in output and 'only shown' in output
  assert not list((tmp_path / 'tables').glob('*'))
  status, _, errors = calling.call(
      synthetic_noise, f'--output_dir={tmp_path}', '--methods=GCE',
      '--noise=none')
  assert 'cannot be written' in f'{status}{errors}'

"""Strangers in a directory of results, and clusters that cannot be."""

import json
import shlex
import zipfile

from experiments import training
from tests.experiments.sweep import fake_worker
from tests.hostile import cases
from tests.hostile.cases import program
from tests.hostile.cases import raw

_LINE = ('synthetic_noise --methods=CE --noise=none --epochs=1 --output_dir=r '
         '--offline')
_SEARCHED = 'synthetic_noise --methods=GCE --noise=none --output_dir=r'
_RUN = training.Run(method='CE', noise='none', epochs=1)
_OTHER = training.Run(method='CE', noise='none', epochs=1, seed=7)
_WRITTEN = ('r/tables', 'r/tables/*', 'r/.locks', 'r/.locks/*')


def _document(of=_RUN, **changes):
  return json.dumps({
      **fake_worker.document(of.to_dict(), of.key), **changes})


_FINISHED = raw(f'r/{_RUN.key}.json', _document())


def _stranger(name, says, maker):
  """A finished sweep is shown, the stranger is named, and stays."""
  return program(name, _LINE, says, _FINISHED, maker, changes=_WRITTEN,
                 ends='shown')


def _odd_result(name, says, **changes):
  return _stranger(name, rf'{_OTHER.key}.*{says}', raw(
      f'r/{_OTHER.key}.json', _document(_OTHER, **changes)))


def _own_result(name, says, **changes):
  """The result of the run itself is odd: the program says what to do."""
  return program(name, _LINE, rf'Failed: .*{says}.*Move the file away', raw(
      f'r/{_RUN.key}.json', _document(**changes)), changes=_WRITTEN,
                 ends='failed')


def _lying_bomb():
  """An archive of 40 MB that says it has a hundred bytes."""
  _bomb('r/odd.zip', 40_000_000)()
  with open('r/odd.zip', 'rb') as file:
    content = file.read()
  size = (40_000_000).to_bytes(4, 'little')
  raw('r/odd.zip', content.replace(size, (100).to_bytes(4, 'little')))()


def _bomb(name, size=100_000_000):
  """A small archive of 100 MB."""
  def write():
    with zipfile.ZipFile(name, 'w', zipfile.ZIP_DEFLATED) as archive:
      archive.writestr('bomb.json', b'0' * size)
  return write


def _cluster(name, says, text):
  line = (f'{_LINE} --strategy=multi_worker --wait_seconds=1')
  return program(name, f'TF_CONFIG={shlex.quote(text)} {line}', says,
                 changes=('r',))


def _workers(*addresses, index=0):
  return json.dumps({'cluster': {'worker': addresses},
                     'task': {'type': 'worker', 'index': index}})


CASES = (
    program('A pipe among the figures', 'report --output_dir=r',
            r'figures/odd\.json', _FINISHED, cases.pipe('r/figures/odd.json'),
            changes=('r/report.html', *_WRITTEN), ends='shown'),
    program('A picture that is a pipe', 'report --output_dir=r',
            r'figures/odd\.png', _FINISHED, cases.pipe('r/figures/odd.png'),
            changes=('r/report.html', *_WRITTEN), ends='shown'),
    *(program(f'A calibration that is {kind}', 'calibration --dataset=digits_n '
              '--methods=CE --epochs=1 --output_dir=r --offline',
              r'calibration/.*\.json.*move it away', _FINISHED,
              raw(f'r/calibration/{_RUN.key}.json', text),
              changes=_WRITTEN[2:], ends='failed')
      for kind, text in (('half a file', '{"mean": 1'), ('no number', (
          '{"mean": "low"}')), ('NaN', '{"mean": NaN}'), ('a list', '[1]'))),
    program('Measurements of classifiers that are a pipe',
            'gp_classification --problems=iris --output_dir=r',
            r'gp_classification/measurements\.csv',
            cases.pipe('r/gp_classification/measurements.csv')),
    program('Measurements of many classes that are none',
            'many_classes --output_dir=r', r'many_classes/measurements\.csv',
            raw('r/many_classes/measurements.csv', 'mine,too\n1,2\n')),
    _stranger('A pipe among the results', r'odd\.json', cases.pipe(
        'r/odd.json')),
    _stranger('A pipe among the archives', r'odd\.zip', cases.pipe(
        'r/odd.zip')),
    _stranger('A folder among the results', r'odd\.json', cases.folder(
        'r/odd.json')),
    _stranger('A link to nothing among the results', r'odd\.json', cases.link(
        'r/odd.json', 'gone')),
    _stranger('A link to itself among the results', r'odd\.json', cases.link(
        'r/odd.json', 'odd.json')),
    _stranger('A link to an endless device among the results', r'odd\.json',
              cases.link('r/odd.json', '/dev/zero')),
    _stranger('A result of a terabyte', r'odd\.json', cases.sparse(
        'r/odd.json', 2**40)),
    _stranger('A result that is no text', r'odd\.json', raw(
        'r/odd.json', b'\xff\xfe')),
    _stranger('A result of nested brackets', r'odd\.json', raw(
        'r/odd.json', '[' * 100_000)),
    _stranger('A result that is a list', r'odd\.json', raw(
        'r/odd.json', '[1]')),
    _stranger('A result with a number of 5,000 digits', r'odd\.json', raw(
        'r/odd.json', f'{{"key": {"9" * 5000}}}')),
    _stranger('An archive of results that is none', r'odd\.zip', raw(
        'r/odd.zip', b'PK\3\4')),
    _stranger('An archive of results that is a bomb', r'odd\.zip', _bomb(
        'r/odd.zip')),
    _odd_result('An accuracy of 7.5', r'7\.5', metrics={'test_accuracy': 7.5}),
    _odd_result('An accuracy that is NaN', r'NaN',
                metrics={'test_accuracy': float('nan')}),
    _odd_result('An accuracy that is a word', r'high',
                metrics={'test_accuracy': 'high'}),
    _odd_result('An accuracy that is true', r'True',
                metrics={'test_accuracy': True}),
    _odd_result('No accuracy at all', r'test_accuracy is None',
                metrics={'test_accuracy': None}),
    _odd_result('An accuracy of a chosen epoch of 7.5', r'7\.5', chosen={
        'epoch': 1, 'metrics': {'test_accuracy': 7.5}}),
    _odd_result('A history that leaves its range', r'history', history={
        'validation_accuracy': [7.5]}),
    _odd_result('A negative number of classes', r'-3', num_classes=-3),
    _odd_result('A negative number of examples', r'-1',
                examples={'train': -1}),
    _odd_result('Steps that run backwards', r'-1', steps_per_second=-1),
    _odd_result('Seconds that are words', r'seconds',
                seconds={'wall': 'long', 'epochs': []}),
    _odd_result('No seconds', r"no 'wall'", seconds={}),
    _odd_result('Noise at a rate of a word', r'loud', noise={'rate': 'loud'}),
    _odd_result('A divergence at no epoch', r'diverged', status='diverged',
                divergence={'epoch': 'soon'}, metrics={}),
    _odd_result('Weights in another directory', r'passwd', weights={
        'file': '../../etc/passwd', 'sha256': ''}),
    _odd_result('A run of a version to come', r'invention', run={
        **_OTHER.to_dict(), 'invention': 1}),
    _own_result('A result without an accuracy', r'test_accuracy is None',
                metrics={'test_accuracy': None}),
    _own_result('A result of no device', r"no 'name'", device={}),
    _own_result('A result of no version', r"no 'tensorflow'", versions={}),
    _own_result('A result of code that is a number', r'3', code={'model': 3}),
    _stranger('An archive that lies about its size', r'odd\.zip', _lying_bomb),
    _odd_result('Metrics that are a list', r'metrics', metrics=[1]),
    _odd_result('A result of a version to come', r'invention', invention=1),
    _odd_result('A result of another run', r'', run=_RUN.to_dict()),
    _odd_result('A result without its run', r'', run=None),
    program('A damaged result of the run itself', _LINE, r'Move the file away',
            raw(f'r/{_RUN.key}.json', '{'), changes=_WRITTEN, ends='failed'),
    program('A table that is not ours', _LINE,
            r'tables/synthetic_noise-digits\.csv', _FINISHED, raw(
                'r/tables/synthetic_noise-digits.csv', b'\xff\xfe\x80'),
            changes=_WRITTEN[2:], ends='failed'),
    program('A table that is a pipe', _LINE,
            r'tables/synthetic_noise-digits\.csv', _FINISHED, cases.pipe(
                'r/tables/synthetic_noise-digits.csv'),
            changes=_WRITTEN[2:], ends='failed'),
    program('A table that is a folder', _LINE,
            r'tables/synthetic_noise-digits\.csv', _FINISHED, cases.folder(
                'r/tables/synthetic_noise-digits.csv'),
            changes=_WRITTEN[2:], ends='failed'),
    program('A table with a cell without end', _LINE,
            r'tables/synthetic_noise-digits\.csv', _FINISHED, raw(
                'r/tables/synthetic_noise-digits.csv', 'row\n' + 'x' * 200_000),
            changes=_WRITTEN[2:], ends='failed'),
    program('A table with other columns', _LINE,
            r'kept as .*synthetic_noise-digits\.csv\.1', _FINISHED, raw(
                'r/tables/synthetic_noise-digits.csv', 'mine,too\n1,2\n'),
            changes=_WRITTEN, ends='shown'),
    program('Winners of a search that are a pipe', _SEARCHED,
            r'tuned/odd\.csv', _FINISHED, cases.pipe('r/tuned/odd.csv'),
            changes=_WRITTEN[2:]),
    program('Winners of a search without their columns', _SEARCHED,
            r'tuned/odd\.csv.*dataset', _FINISHED, raw(
                'r/tuned/odd.csv', 'mine,too\n1,2\n'),
            changes=_WRITTEN[2:]),
    program('Winners of a search that are no text', _SEARCHED,
            r'tuned/odd\.csv', _FINISHED, raw('r/tuned/odd.csv', b'\xff'),
            changes=_WRITTEN[2:]),
    program('A table that is a pipe, in the report', 'report --output_dir=r',
            r'tables/synthetic_noise-digits\.csv', _FINISHED, cases.pipe(
                'r/tables/synthetic_noise-digits.csv'),
            changes=('r/report.html', *_WRITTEN), ends='shown'),
    program('A search that is a pipe, in the report', 'report --output_dir=r',
            r'tables/hyperparameters-digits\.csv', _FINISHED, cases.pipe(
                'r/tables/hyperparameters-digits.csv'),
            changes=('r/report.html', *_WRITTEN), ends='shown'),
    _cluster('A cluster that is no JSON', r'TF_CONFIG', 'zebra'),
    _cluster('A cluster of nested brackets', r'TF_CONFIG', '[' * 20_000),
    _cluster('A cluster of nobody', r'TF_CONFIG', _workers()),
    _cluster('A cluster without this worker', r'TF_CONFIG',
             _workers('127.0.0.1:9', index=5)),
    _cluster('A cluster on the internet', r'public address.*8\.8\.8\.8',
             _workers('8.8.8.8:9999', '127.0.0.1:9998')),
    _cluster('A cluster at all addresses', r'public address.*0\.0\.0\.0',
             _workers('0.0.0.0:9999', '127.0.0.1:9998')),
    _cluster('A worker without a port', r'TF_CONFIG', _workers('127.0.0.1')),
)

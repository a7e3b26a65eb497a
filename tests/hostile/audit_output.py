"""Folders that the audit writes to, decisions that it reads."""

import contextlib
import hashlib
import io
import itertools
import json
import os
import tempfile
from unittest import mock

from tests.hostile import cases
from tests.hostile.audit_files import X
from tests.hostile.audit_files import Y
from tests.hostile.cases import audit
from tests.hostile.cases import call
from tests.hostile.cases import csv
from tests.hostile.cases import raw

_XY = 'x.npy --labels y.npy'
_MARK = 'out/.ln_tfp_audit.json'
_OWN = raw(_MARK, json.dumps({'labels.csv': hashlib.sha256(b'x').hexdigest()}))
_DECISIONS = 'id,position,given,suggested,decision,label'
_WRITTEN = ('audit', 'audit/*')


def _bad_output(name, says, *makers, line=f'{_XY} --output=out'):
  return audit(name, line, says, X, Y, *makers)


def _bad_decisions(name, says, maker, file='decisions.csv'):
  return audit(name, f'{_XY} --decisions={file}', says, X, Y, maker)


def _apply(name, says, *makers, decisions='d.csv', output='new.csv', flags=''):
  return audit(
      name, f'apply --decisions={decisions} --labels=l.csv --output={output} '
      f'{flags}', says, *makers)


_LIST = csv('l.csv', 'id,label', 'a,cat', 'b,dog', 'c,cat')
_GOOD = csv('d.csv', _DECISIONS, 'a,0,cat,dog,accept,dog')


def _marked(name, *makers):
  """The folder of an audit, in which one of its names is the user's."""
  return _bad_output(name, r'out/classifier\.keras was not written by an audit',
                     raw('out/labels.csv', 'x'), _OWN, *makers)


def _fails(line, *faults):
  """The command ends with a line, whatever goes wrong meanwhile."""
  from ln_tfp.audit import __main__ as command
  with contextlib.ExitStack() as stack:
    for fault in faults:
      stack.enter_context(fault)
    if command.main(line.split()) != 2:
      raise AssertionError('It did not fail.')


def _full_disk():
  """The disk is full when the page is written, after the table."""
  from ln_tfp.audit import report
  full = OSError(28, 'No space left on device', 'page')
  _fails(f'{_XY} --output=out', mock.patch.object(
      report.LabelReport, 'save', side_effect=full))


def _moves_fail(how_many):
  """Files cannot be moved any more, in the middle of it."""
  def call():
    replace, moves = os.replace, itertools.count()
    def fail(here, there):
      if 'audit.html' in str(there) and next(moves) == how_many:
        raise OSError(5, 'Input/output error', str(there))
      replace(here, there)
    _fails(f'{_XY} --output=out', mock.patch.object(os, 'replace', fail))
  return call


def _elsewhere():
  """The folder is a link to another file system, if there is one."""
  from ln_tfp.audit import __main__ as command
  shared = '/dev/shm' if os.path.isdir('/dev/shm') else None
  with tempfile.TemporaryDirectory(dir=shared) as folder:
    os.symlink(folder, 'out')
    if command.main([*_XY.split(), '--output=out']):
      raise AssertionError('It failed.')
    found = {'.ln_tfp_audit.json', 'audit.html', 'classifier.keras',
             'labels.csv'} ^ set(os.listdir(folder))
    if found:
      raise AssertionError(f'Missing, or too many: {found}')
    os.unlink('out')


def _names_the_file():
  """An error names the file that the user will look for."""
  from ln_tfp.audit import report
  full = OSError(28, 'No space left on device')
  said = io.StringIO()
  with contextlib.redirect_stderr(said):
    _fails(f'{_XY} --output=out', mock.patch.object(
        report.LabelReport, 'save', side_effect=full))
  if said.getvalue() != 'error: out/audit.html: No space left on device.\n':
    raise AssertionError(said.getvalue())


_OUTPUT = [
    _bad_output('A folder with a file of the user',
                r'out is not empty \(thesis\.tex', raw('out/thesis.tex', '')),
    _bad_output('A folder with a labels.csv of the user',
                r'out is not empty \(labels\.csv', raw('out/labels.csv', '')),
    _bad_output('A page that the user has changed',
                r'out/audit\.html was changed', raw('out/audit.html', 'mine'),
                raw(_MARK, '{"audit.html": "abc"}')),
    _bad_output('A classifier that is a folder',
                r'out/classifier\.keras is a folder', cases.folder(
                    'out/classifier.keras'), raw(_MARK, '{}')),
    _bad_output('A classifier that is a folder, insisted',
                r'out/classifier\.keras is a folder', cases.folder(
                    'out/classifier.keras'),
                line=f'{_XY} --output=out --overwrite'),
    _bad_output('An output that is a file', r'out: not a folder', raw(
        'out', 'x')),
    _bad_output('An output that is a pipe', r'out: not a folder', cases.pipe(
        'out')),
    _bad_output('An output below a file', r'out', raw('out', 'x'),
                line=f'{_XY} --output=out/deep/er'),
    _bad_output('An output that cannot be written', r'/proc.*not writable',
                line=f'{_XY} --output=/proc/audit'),
    _bad_output('An output whose name is too long', r'zzz.*too long',
                line=f'{_XY} --output={"z" * 300}'),
    _bad_output('An output with a zero byte', r'null',
                line=f'{_XY} --output="a\0b"'),
    _bad_output('An output that is a link to nowhere', r'out',
                cases.link('out', 'gone/far')),
    _bad_output('The folder of the data', r'is not empty',
                line=f'{_XY} --output=.'),
    _bad_output('Labels that would be lost', r'out/labels\.csv would be lost',
                csv('out/labels.csv', 'label', *['a', 'b'] * 20),
                line='x.npy --labels out/labels.csv --output=out --overwrite'),
    _bad_output('Decisions that would be lost', r'out/labels\.csv would be',
                csv('out/labels.csv', _DECISIONS),
                line=f'{_XY} --decisions=out/labels.csv --output=out '
                '--overwrite'),
    _bad_output('A mark that is a pipe', r'out', cases.pipe(_MARK)),
    _bad_output('A mark that is a folder', r'out', cases.folder(_MARK)),
    _bad_output('A mark that is no JSON', r'out is not empty', raw(_MARK, '{')),
    _bad_output('A mark of nested brackets', r'out is not empty',
                raw(_MARK, '[' * 100_000)),
    _bad_output('A mark of another kind', r'out is not empty',
                raw(_MARK, '["audit.html"]')),
    _bad_output('A mark of an endless file', r'out is not empty',
                cases.sparse(_MARK, 2**40)),
    audit('A folder of an audit, with a file of the user beside',
          f'{_XY} --output=out', None, X, Y, raw('out/mine.txt', 'x'),
          raw('out/labels.csv', 'x'), _OWN,
          changes=('out/labels.csv', 'out/audit.html', 'out/classifier.keras',
                   _MARK)),
    _marked('A classifier of the user beside an audit',
            raw('out/classifier.keras', 'mine')),
    _marked('A classifier that is a link to nowhere',
            cases.link('out/classifier.keras', 'gone')),
    _marked('A classifier that is a link to a folder', cases.folder('mine'),
            cases.link('out/classifier.keras', '../mine')),
    _marked('A classifier that is a pipe', cases.pipe('out/classifier.keras')),
    _bad_output('A mark that says nothing of a link', r'was not written by an',
                raw('out/labels.csv', 'x'), cases.link(
                    'out/audit.html', 'gone'), raw(_MARK, json.dumps({
                        'labels.csv': hashlib.sha256(b'x').hexdigest(),
                        'audit.html': None}))),
    _bad_output('A backbone that would be lost',
                r'out/classifier\.keras would be lost',
                raw('out/classifier.keras', 'mine'),
                line=f'{_XY} --backbone=out/classifier.keras --output=out '
                '--overwrite'),
    call('A disk that is full leaves nothing', _full_disk, None, X, Y),
    call('A disk that is full leaves what was there', _full_disk, None, X, Y,
         raw('out/labels.csv', 'x'), _OWN),
    call('A disk that is full is said with the file', _names_the_file, None, X,
         Y),
    *(call(f'A move that fails leaves what was there ({i})', _moves_fail(i),
           None, X, Y, *(raw(f'out/{name}', 'x') for name in (
               'labels.csv', 'audit.html', 'classifier.keras')),
           raw(_MARK, json.dumps(dict.fromkeys(
               ('labels.csv', 'audit.html', 'classifier.keras'),
               hashlib.sha256(b'x').hexdigest()))))
      for i in (1, 2)),
    call('An output that is a link to another disk', _elsewhere, None, X, Y),
]

_DECIDED = [
    _bad_decisions('Decisions that are not there', r'decisions\.csv', X),
    _bad_decisions('Decisions in a pipe', r'decisions\.csv: .*regular',
                   cases.pipe('decisions.csv')),
    _bad_decisions('Decisions in an endless device', r'/dev/zero: .*regular',
                   X, '/dev/zero'),
    _bad_decisions('Decisions of a terabyte', r'decisions\.csv: .*large',
                   cases.sparse('decisions.csv', 2**40)),
    _bad_decisions('Decisions with a cell of a megabyte', r'decisions\.csv: ',
                   csv('decisions.csv', _DECISIONS, 'a' * 2**20)),
    _bad_decisions('Decisions that are no text', r'decisions\.csv: no file of',
                   raw('decisions.csv', bytes(range(128, 256)))),
    _bad_decisions('Decisions without columns', r'decisions\.csv: .*columns',
                   csv('decisions.csv', 'a,b', '1,2')),
    _bad_decisions('Decisions with a short line', r'decisions\.csv: .*line 2',
                   csv('decisions.csv', _DECISIONS, '1,2')),
    _bad_decisions('A decision about nobody', r"no example 'zebra'", csv(
        'decisions.csv', _DECISIONS, 'zebra,0,0,1,keep,0')),
    _bad_decisions('A decision of an unknown kind', r"not 'perhaps'", csv(
        'decisions.csv', _DECISIONS, '3,3,1,0,perhaps,0')),
    _bad_decisions('A decision about another label', r"label '7'.*is '1'", csv(
        'decisions.csv', _DECISIONS, '3,3,7,0,accept,0')),
    _bad_decisions('A decision for a class that is not there',
                   r"'zebra', which is no class", csv(
                       'decisions.csv', _DECISIONS, '3,3,1,0,class,zebra')),
    _bad_decisions('Two decisions about one example', r"'3' was decided twice",
                   csv('decisions.csv', _DECISIONS, '3,3,1,0,keep,1',
                       '3,3,1,0,remove,')),
    _bad_decisions('A decision that removes all of a class',
                   r'of the labels that are left all are the same', csv(
                       'decisions.csv', _DECISIONS, *[
                           f'{i},{i},0,1,remove,' for i in range(0, 40, 2)])),
    _bad_decisions('Tasks that are no list', r'd\.json: .*list of tasks',
                   raw('d.json', '{}'), 'd.json'),
    _bad_decisions('Tasks that are no tasks', r'd\.json: .*not understood',
                   raw('d.json', '[3, null]'), 'd.json'),
    _bad_decisions('Tasks of nested brackets', r'd\.json: no file of decisions',
                   raw('d.json', '[' * 100_000), 'd.json'),
    _bad_decisions('Tasks with a number of 5,000 digits', r'd\.json: no file',
                   raw('d.json', f'[{"9" * 5000}]'), 'd.json'),
]

_APPLIED = [
    _apply('Corrected labels over a file of the user', r'new\.csv exists',
           _LIST, _GOOD, raw('new.csv', 'mine')),
    _apply('Corrected labels over the labels', r'l\.csv exists', _LIST, _GOOD,
           output='l.csv'),
    _apply('A log over a file of the user', r'new\.changes\.csv exists',
           _LIST, _GOOD, raw('new.changes.csv', 'mine')),
    _apply('Corrected labels over a folder', r'new\.csv exists', _LIST, _GOOD,
           cases.folder('new.csv')),
    _apply('Corrected labels over a link', r'new\.csv exists', _LIST, _GOOD,
           cases.link('new.csv', 'gone')),
    _apply('Corrected labels below a file', r'l\.csv/new', _LIST, _GOOD,
           output='l.csv/new.csv'),
    _apply('Corrected labels in no folder of this world', r'/proc/', _LIST,
           _GOOD, output='/proc/deep/new.csv'),
    _apply('Labels to correct in a pipe', r'l\.csv: .*regular', _GOOD,
           cases.pipe('l.csv')),
    _apply('Labels to correct that are not there', r'l\.csv: there is no',
           _GOOD),
    _apply('Decisions to apply in a pipe', r'd\.csv: .*regular', _LIST,
           cases.pipe('d.csv')),
    _apply('Decisions to apply that are not there', r'd\.csv', _LIST),
    _apply('Decisions to apply from an endless device', r'/dev/zero', _LIST,
           decisions='/dev/zero'),
    _apply('A column of labels to correct that is not there',
           r"no column 'zebra'", _LIST, _GOOD, flags='--label=zebra'),
    _apply('A decision to apply about nobody', r"no example 'z'", _LIST, csv(
        'd.csv', _DECISIONS, 'z,0,cat,dog,accept,dog')),
    _apply('A decision to apply about another label', r"label 'cow'.*'cat'",
           _LIST, csv('d.csv', _DECISIONS, 'a,0,cow,dog,accept,dog')),
    _apply('A decision to apply without its label', r"about 'a' must have a",
           _LIST, csv('d.csv', _DECISIONS, 'a,0,cat,dog,accept,')),
    _apply('A position of 5,000 digits', r'd\.csv|no example', csv(
        'l.csv', 'file,label', 'a,cat', 'a,dog'), csv(
            'd.csv', _DECISIONS, f'a,{"1" * 5000},cat,dog,accept,dog')),
    audit('Applying without decisions', 'apply --labels=l.csv --output=n.csv',
          r'--decisions', _LIST),
]

CASES = (*_OUTPUT, *_DECIDED, *_APPLIED)

"""Tests of `python -m ln_tfp.audit apply`."""

import codecs
import os

import pytest

from ln_tfp.audit import __main__ as command
from ln_tfp.audit.review import spreadsheet

HEADER = ('id', 'position', 'given', 'suggested', 'decision', 'label')
DECIDED = [('a', 0, 'cat', 'dog', 'accept', 'dog'),
           ('b', 1, 'dog', 'cat', 'keep', 'dog'),
           ('c', 2, 'dog', 'cat', 'remove', '')]


@pytest.fixture
def decided(tmp_path):
  spreadsheet.write(tmp_path / 'decisions.csv', HEADER, DECIDED)
  return tmp_path / 'decisions.csv'


def _apply(decisions, labels, output, *more):
  return command.main(['apply', '--decisions', str(decisions), '--labels',
                       str(labels), '--output', str(output), *more])


@pytest.mark.parametrize('header', ['id;x;label', 'file;x;class'])
def test_only_labels_change_and_removed_rows_go(
    header, decided, tmp_path, capsys):
  labels = tmp_path / 'labels.csv'
  labels.write_text(f'{header}\na;"1;2";cat\nb;=3;dog\nc;4;dog\nd;5;cat\n')
  before = labels.read_bytes()
  assert _apply(decided, labels, tmp_path / 'corrected.csv') == 0
  assert (tmp_path / 'corrected.csv').read_text() == (
      f'{header}\na;"1;2";dog\nb;=3;dog\nd;5;cat\n')
  assert (tmp_path / 'corrected.changes.csv').read_text() == (
      'id,before,after,decision\na,cat,dog,accept\nc,dog,,remove\n')
  assert labels.read_bytes() == before
  assert '3 labels, of which 1 is changed; 1 example is removed' in (
      capsys.readouterr().out)


@pytest.mark.parametrize('encoding', ['utf-8', 'utf-8-sig', 'utf-16'])
def test_a_mark_of_unicode_stays_where_there_was_one(
    encoding, decided, tmp_path):
  labels = tmp_path / 'labels.csv'
  text = 'id,x,label\na,ä,cat\nb,2,dog\nc,4,dog\nd,5,cat\n'
  labels.write_text(text, encoding=encoding)
  assert _apply(decided, labels, tmp_path / 'corrected.csv') == 0
  after = (tmp_path / 'corrected.csv').read_bytes()
  assert after.startswith(codecs.BOM_UTF8) == (encoding != 'utf-8')
  assert after.decode('utf-8-sig').splitlines()[:2] == [
      'id,x,label', 'a,ä,dog']


def test_decisions_may_call_the_rows_of_a_list_by_file_though_it_has_ids(
    decided, tmp_path):
  labels = tmp_path / 'list.csv'
  labels.write_text('id,filename,class\n7,a,cat\n8,b,dog\n9,c,dog\n')
  assert _apply(decided, labels, tmp_path / 'new.csv') == 0
  assert (tmp_path / 'new.csv').read_text() == (
      'id,filename,class\n7,a,dog\n8,b,dog\n')
  # An audit of the list as a table calls them by their ids.
  spreadsheet.write(
      tmp_path / 'd.csv', HEADER, [(8, 1, 'dog', 'cat', 'accept', 'cat')])
  assert _apply(tmp_path / 'd.csv', labels, tmp_path / 'other.csv') == 0
  assert '8,b,cat' in (tmp_path / 'other.csv').read_text()


def test_numbers_of_parquet_are_the_classes_that_they_were_in_the_audit(
    tmp_path):
  pa = pytest.importorskip('pyarrow', reason='pyarrow is not installed')
  from pyarrow import parquet
  parquet.write_table(
      pa.table({'x': [5, 6, 7], 'label': [0., None, 1.]}),
      tmp_path / 't.parquet')
  spreadsheet.write(
      tmp_path / 'd.csv', HEADER, [(0, 0, '0', '1', 'accept', '1')])
  assert _apply(
      tmp_path / 'd.csv', tmp_path / 't.parquet', tmp_path / 'new.csv') == 0
  assert (tmp_path / 'new.csv').read_text() == 'x,label\n5,1\n6,\n7,1\n'


def test_numbers_that_the_audit_gave_names_to_become_names(tmp_path, capsys):
  labels, decisions = tmp_path / 'labels.csv', tmp_path / 'd.csv'
  labels.write_text('x,label\n5,0\n6,0\n7,1\n8,NA\n')
  spreadsheet.write(
      decisions, HEADER, [(1, 1, 'cat', 'dog', 'accept', 'dog')])
  assert _apply(decisions, labels, tmp_path / 'new.csv') == 2
  assert "its label is '0'" in capsys.readouterr().err
  assert _apply(
      decisions, labels, tmp_path / 'new.csv', '--classes', 'cat,dog') == 0
  assert (tmp_path / 'new.csv').read_text() == (
      'x,label\n5,cat\n6,dog\n7,dog\n8,NA\n')


def test_rows_without_names_are_called_by_their_positions(tmp_path):
  labels, decisions = tmp_path / 'labels.csv', tmp_path / 'd.csv'
  labels.write_text('x,label\n1,cat\n2,cat\n')
  spreadsheet.write(decisions, HEADER, [(1, 1, 'cat', 'dog', 'accept', 'dog')])
  assert _apply(decisions, labels, tmp_path / 'new.csv') == 0
  assert (tmp_path / 'new.csv').read_text() == 'x,label\n1,cat\n2,dog\n'


def test_the_audits_own_table_becomes_a_list_of_labels(tmp_path):
  labels, decisions = tmp_path / 'labels.csv', tmp_path / 'd.csv'
  spreadsheet.write(labels, ('id', 'quality', 'is_issue', 'given', 'suggested'),
                    [('=a.png', .1, True, 'cat', 'dog'),
                     ('b.png', .9, False, 'dog', 'dog')])
  spreadsheet.write(
      decisions, HEADER, [('=a.png', 0, 'cat', 'dog', 'accept', 'dog')])
  assert _apply(decisions, labels, tmp_path / 'new.csv') == 0
  assert (tmp_path / 'new.csv').read_text() == (
      'id,label\n=a.png,dog\nb.png,dog\n')


@pytest.mark.parametrize('name', ['corrected.csv', 'corrected.changes.csv'])
def test_nothing_is_overwritten(name, decided, tmp_path, capsys):
  labels = tmp_path / 'labels.csv'
  labels.write_text('id,label\na,cat\nb,dog\nc,dog\n')
  (tmp_path / name).write_text('mine')
  before = sorted(os.listdir(tmp_path))
  assert _apply(decided, labels, tmp_path / 'corrected.csv') == 2
  assert f'{name} exists already' in capsys.readouterr().err
  assert (tmp_path / name).read_text() == 'mine'
  assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize('text, more, message', [
    ('id,label\na,dog\nb,cat\nc,dog\n', (), "its label is 'cat'"),
    ('id,label\na,cat\n', (), "no example 'b'"),
    ('id,x\na,cat\n', (), 'must name the column label'),
    ('id,x\na,cat\n', ('--label', 'z'), "no column 'z'"),
    ('', (), 'is empty'),
])
def test_labels_that_do_not_fit_are_one_line_and_leave_nothing(
    text, more, message, decided, tmp_path, capsys):
  labels = tmp_path / 'labels.csv'
  labels.write_text(text)
  assert _apply(decided, labels, tmp_path / 'new.csv', *more) == 2
  error = capsys.readouterr().err
  assert message in error and len(error.splitlines()) == 1
  assert sorted(os.listdir(tmp_path)) == ['decisions.csv', 'labels.csv']


def test_a_disk_that_is_full_leaves_neither_file(
    decided, tmp_path, monkeypatch, capsys):
  labels = tmp_path / 'labels.csv'
  labels.write_text('id,label\na,cat\nb,dog\nc,dog\n')
  real = os.replace

  def fail(source, target):
    if str(target).endswith('new.csv'):
      raise OSError('no space left')
    real(source, target)

  monkeypatch.setattr(os, 'replace', fail)
  assert _apply(decided, labels, tmp_path / 'new.csv') == 2
  assert 'no space left' in capsys.readouterr().err
  assert sorted(os.listdir(tmp_path)) == ['decisions.csv', 'labels.csv']

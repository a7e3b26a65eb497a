"""Tests of tables: how they are read, and what becomes of their columns."""

import numpy as np
import pytest

from ln_tfp.audit import files
from ln_tfp.audit.files import columns
from ln_tfp.audit.files import tables
from ln_tfp.audit.review import spreadsheet

REVIEWS = """id,text,stars,shop,sentiment
a1,"good, really
good thing",5,north,pos
a2,not a good thing at all,1,south,neg
a3,bad bad bad thing,NA,north,neg
a4,,4,south,pos
"""


def _write(path, text, encoding='utf-8'):
  path.write_bytes(text.encode(encoding))
  return path


@pytest.mark.parametrize('separator', [',', ';', '\t', '|'])
@pytest.mark.parametrize('encoding', ['utf-8', 'utf-8-sig', 'utf-16'])
@pytest.mark.parametrize('newline', ['\n', '\r\n'])
def test_separators_marks_and_line_ends_of_all_kinds_are_read(
    separator, encoding, newline, tmp_path):
  text = f'a{separator}label\n"x, ; y"{separator}ü\nz{separator}v\n'
  path = _write(tmp_path / 't.csv', text.replace('\n', newline), encoding)
  table = tables.read(path)
  assert table.columns == {'a': ['x, ; y', 'z'], 'label': ['ü', 'v']}
  assert table.separator == separator


def test_the_audits_own_table_is_read_as_it_was_before_it_was_made_safe(
    tmp_path):
  rows = [('=a.png', '-x', .5), ("'=b.png", '@y', .25)]
  spreadsheet.write(tmp_path / 'labels.csv', ('id', 'given', 'quality'), rows)
  cells = tables.read(tmp_path / 'labels.csv').columns
  assert cells['id'] == ['=a.png', "'=b.png"]
  assert cells['given'] == ['-x', '@y']
  (tmp_path / 'other.csv').write_text("id,given\n'=a,b\n")
  assert tables.read(tmp_path / 'other.csv').columns['id'] == ["'=a"]


def test_rows_are_shown_with_all_columns_but_the_label(tmp_path):
  found = files.load(_write(tmp_path / 't.csv', REVIEWS), label='sentiment')
  assert found.ids.tolist() == ['a1', 'a2', 'a3', 'a4']
  assert found.class_names == ('neg', 'pos')
  assert found.labels.tolist() == [1, 0, 0, 1]
  assert found.rows[0] == {'id': 'a1', 'text': 'good, really\ngood thing',
                           'stars': '5', 'shop': 'north'}
  assert found.rows[2]['stars'] == ''  # missing
  assert {'Read as text: text', 'Read as numbers: stars'} <= set(found.notes)
  assert found.inputs.shape[0] == 4 and np.isfinite(found.inputs).all()


def test_rows_without_a_label_are_left_out_and_keep_their_numbers(tmp_path):
  text = 'x,y\n1,a\n2,\n3,b\n4,NA\n5,a\n'
  found = files.load(_write(tmp_path / 't.csv', text))
  assert found.ids.tolist() == [0, 2, 4]
  assert found.labels.tolist() == [0, 1, 0]
  assert '2 rows without a label are left out' in found.notes


def test_classes_may_be_called_none_and_null(tmp_path):
  text = 'x,y\n1,none\n2,\n3,null\n4,nan\n5,None\n'
  found = files.load(_write(tmp_path / 't.csv', text))
  assert found.ids.tolist() == [0, 2, 4]
  assert found.class_names == ('None', 'none', 'null')


@pytest.mark.parametrize('text, arguments, message', [
    ('', {}, 'the file is empty'),
    ('x,label\n', {}, 'there are no rows'),
    ('x,label\n1\n', {}, 'line 2 is too short; it has 1 cells instead of 2'),
    ('x,label\n1,a\n1,2,3\n', {}, 'line 3 is too long'),
    ('x,x\n1,2\n', {}, 'names of the columns must be different'),
    ('x,z\n1,2\n', {}, 'must name the column label; there are x, z. Say'),
    ('x,label\n1,a\n', {'label': 'nope'}, "no column 'nope'; there are x"),
    ('x,label\n1,a\n2,b\n', {'ignore': ('nope',)}, "no column 'nope'"),
    ('x,label\n1,a\n1,b\n', {'identifier': 'x'}, 'must be different'),
    ('label\na\nb\n', {}, 'no column to learn from'),
    ('x,label\n1,\n2,\n', {}, 'no row has a label'),
    ('x,label\n1,a\n1e40,b\n', {}, 'column x: row 1 has a number beyond'),
    ('x,label\n1,a\n2,b\n', {'labels': 'other.csv'}, 'is a table, which has'),
    ('x,label\n"1,a\n2,b\n', {}, 'too short|not readable'),
])
def test_tables_that_cannot_be_audited_are_refused(
    text, arguments, message, tmp_path):
  with pytest.raises(files.InputError, match=message):
    files.load(_write(tmp_path / 't.csv', text), **arguments)


def test_a_file_of_another_encoding_is_refused(tmp_path):
  (tmp_path / 't.csv').write_bytes('x,label\nü,a\n'.encode('latin-1'))
  with pytest.raises(files.InputError, match='not readable'):
    files.load(tmp_path / 't.csv')


def test_parquet_files_have_numbers_lists_and_texts(tmp_path):
  pa = pytest.importorskip('pyarrow', reason='pyarrow is not installed')
  from pyarrow import parquet
  embedding = np.arange(12.).reshape(4, 3)
  parquet.write_table(pa.table({
      'embedding': list(embedding), 'age': [1., None, 3., 4.],
      'label': ['a', 'b', None, 'a']}), tmp_path / 't.parquet')
  found = files.load(tmp_path / 't.parquet')
  assert found.ids.tolist() == [0, 1, 3]
  assert found.inputs.shape == (3, 5)  # three numbers, one, and its absence
  scaled = embedding[[0, 1, 3]]
  scaled = (scaled - scaled.mean(axis=0)) / scaled.std(axis=0)
  np.testing.assert_allclose(found.inputs[:, :3], scaled, rtol=1e-5)


def test_broken_parquet_files_are_one_line(tmp_path):
  pytest.importorskip('pyarrow', reason='pyarrow is not installed')
  (tmp_path / 't.parquet').write_bytes(b'PAR1 broken')
  with pytest.raises(files.InputError, match='not readable'):
    files.load(tmp_path / 't.parquet')


def test_numbers_are_standardised_and_missing_ones_marked():
  found, notes = columns.featurize({'a': ['1', '2', '', '3,5', '-1e1']})
  assert notes == ['Read as numbers: a']
  values = np.array([1, 2, 1.5, 3.5, -10])  # the median for the missing one
  np.testing.assert_allclose(
      found[:, 0], (values - values.mean()) / values.std(), rtol=1e-5)
  assert np.argmax(found[:, 1]) == 2


def test_categories_are_one_hot_or_hashed():
  colours = ['red', 'blue', '', 'red', 'green']
  found, notes = columns.featurize({'c': colours})
  assert notes == ['Read as categories: c']
  assert found.shape == (5, 4)  # the missing one is a category, too
  np.testing.assert_array_equal(found[0], found[3])
  assert found.sum() == 5
  many = [f'town{i % 70}' for i in range(300)]
  found, notes = columns.featurize({'c': many})
  assert notes == ['Read as categories (hashed): c']
  np.testing.assert_array_equal(found[0], found[70])


def test_columns_that_say_nothing_are_left_out_and_named():
  _, notes = columns.featurize({
      'key': [f'user-{i}' for i in range(100)], 'same': ['x'] * 100,
      'n': list(map(str, range(100)))})
  assert notes == [
      'Read as names, left out: key', 'Read as constant, left out: same',
      'Read as numbers: n']


def test_texts_about_the_same_are_near_each_other():
  topics = (['the cat and the dog sleep', 'a dog and a cat eat'] * 20 +
            ['stocks and bonds fell today', 'bonds rose, stocks fell'] * 20)
  found, notes = columns.featurize({'t': topics})
  assert notes == ['Read as text: t']
  norms = found / np.linalg.norm(found, axis=1, keepdims=True)
  similar = norms @ norms.T
  assert similar[:40, :40].min() > similar[:40, 40:].max()

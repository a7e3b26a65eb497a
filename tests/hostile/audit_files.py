"""Arrays, labels and tables that the audit is given."""

import numpy as np

from tests.hostile import cases
from tests.hostile.cases import audit
from tests.hostile.cases import csv
from tests.hostile.cases import npy
from tests.hostile.cases import npz
from tests.hostile.cases import raw

FEATURES = np.random.default_rng(0).normal(size=(40, 3)) + 5. * (
    np.arange(40)[:, np.newaxis] % 2)
LABELS = np.arange(40) % 2
X = npy('x.npy', FEATURES)
Y = npy('y.npy', LABELS)
_XY = 'x.npy --labels y.npy'
_TEN = [f'{i},{i % 2}' for i in range(10)]


def _with(position, value, dtype=np.float64):
  array = FEATURES.astype(dtype)
  array[position, 1] = value
  return array


def _bad_array(name, maker, says):
  return audit(name, _XY, says, maker, Y)


def _bad_labels(name, array, says, **settings):
  return audit(name, _XY, says, X, npy('y.npy', array, **settings))


def _bad_table(name, says, *lines, flags='--label=label'):
  return audit(name, f't.csv {flags}', says, csv('t.csv', *lines))


def _npy(text, content=b'\0' * 64):
  return cases.header('x.npy', text, content)


def _shape(shape, descr="'<f8'"):
  return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"


_ARRAYS = [
    audit('A file that is not there', 'no.npy', r'no\.npy: there is no such'),
    _bad_array('A pipe is no array', cases.pipe('x.npy'),
               r'x\.npy: .*no regular file'),
    audit('A pipe is no archive', 'x.npz --labels y.npy',
          r'x\.npz: .*no regular file', cases.pipe('x.npz'), Y),
    audit('A device is no array', '/dev/zero --labels y.npy',
          r'/dev/zero: .*no regular file', Y),
    _bad_array('A folder called .npy has no images', cases.folder('x.npy'),
               r'x\.npy|y\.npy'),
    _bad_array('A link that leads nowhere', cases.link('x.npy', 'gone'),
               r'x\.npy: there is no such'),
    _bad_array('A link that leads to itself', cases.link('x.npy', 'x.npy'),
               r'x\.npy: .*(link|loop)'),
    _bad_array('An empty file is no array', raw('x.npy', b''),
               r'x\.npy: no NumPy file'),
    _bad_array('Text is no array', raw('x.npy', 'hello'),
               r'x\.npy: no NumPy file'),
    _bad_array('An array without its header', raw('x.npy', b'\x93NUMPY\1\0'),
               r'x\.npy: no NumPy file'),
    _bad_array('An array of a version to come',
               raw('x.npy', b'\x93NUMPY\x09\x09v\0' + b' ' * 200),
               r'x\.npy: no NumPy file'),
    _bad_array('A header of four gigabytes',
               raw('x.npy', b'\x93NUMPY\2\0\xff\xff\xff\xff{'),
               r'x\.npy: no NumPy file'),
    _bad_array('A header that is a program', _npy(
        "__import__('os').mkdir('trap')"), r'x\.npy: no NumPy file'),
    _bad_array('A header of nested brackets', _npy('(' * 9000 + ')' * 9000),
               r'x\.npy: no NumPy file'),
    _bad_array('A header that claims terabytes',
               _npy(_shape('(1000000000000, 9)')), r'x\.npy: no NumPy file'),
    _bad_array('A header whose size overflows',
               _npy(_shape('(4294967296, 4294967296, 4294967296)')),
               r'x\.npy: no NumPy file'),
    _bad_array('A header of a negative shape', _npy(_shape('(-4, 2)')),
               r'x\.npy: no NumPy file'),
    _bad_array('A header whose shape is no shape', _npy(_shape("'many'")),
               r'x\.npy: no NumPy file'),
    _bad_array('A header whose numbers have 5,000 digits',
               _npy(_shape(f'({"9" * 5000}, 2)')), r'x\.npy: no NumPy file'),
    _bad_array('An array that ends early',
               raw('x.npy', cases.saved(FEATURES)[:-50]),
               r'x\.npy: no NumPy file'),
    _bad_array('An array of no dimension', npy('x.npy', np.float64(3)),
               r'x\.npy: .*shape \(\)'),
    _bad_array('An array of one dimension', npy('x.npy', np.arange(40.)),
               r'x\.npy: .*shape \(40,\)'),
    _bad_array('An array of five dimensions', npy('x.npy', np.ones([40] + [
        1] * 4)), r'x\.npy: .*shape \(40, 1, 1, 1, 1\)'),
    _bad_array('An array of no rows', npy('x.npy', np.ones([0, 3])),
               r'x\.npy: .*shape \(0, 3\)'),
    _bad_array('An array of no columns', npy('x.npy', np.ones([40, 0])),
               r'x\.npy: .*shape \(40, 0\)'),
    _bad_array('An array of records', npy('x.npy', np.zeros(40, [
        ('a', 'f8'), ('b', 'i4')])), r'x\.npy: .*numbers, not .*a'),
    _bad_array('An array of complex numbers',
               npy('x.npy', FEATURES.astype(complex)), r'x\.npy: .*complex'),
    _bad_array('An array of texts', npy('x.npy', FEATURES.astype(str)),
               r'x\.npy: .*numbers, not <U'),
    _bad_array('An array of dates', npy(
        'x.npy', np.zeros([40, 3], 'datetime64[s]')), r'x\.npy: .*datetime'),
    _bad_array('An array of pickled objects', npy(
        'x.npy', np.array([[1, 'a']] * 40, object)), r'x\.npy: no NumPy file'),
    _bad_array('A feature that is NaN', npy('x.npy', _with(7, np.nan)),
               r'x\.npy: example 7 .*NaN'),
    _bad_array('A feature that is infinite', npy('x.npy', _with(39, -np.inf)),
               r'x\.npy: example 39 .*infinite'),
    _bad_array('A feature whose square overflows', npy('x.npy', _with(
        3, 1e200)), r'x\.npy: example 3 .*beyond'),
    _bad_array('A feature that float16 cannot hold', npy('x.npy', _with(
        3, np.inf, np.float16)), r'x\.npy: example 3 '),
    _bad_array('An extended number that float64 cannot hold', npy(
        'x.npy', _with(3, np.longdouble('1e4000'), np.longdouble)),
               r'x\.npy: example 3 .*beyond'),
    audit('An archive that is none', 'x.npz', r'x\.npz: no NumPy file',
          raw('x.npz', b'PK\3\4 and nothing')),
    audit('An archive of no arrays', 'x.npz', r'x\.npz: .*no array called',
          cases.archive('x.npz')),
    audit('An archive of other arrays', 'x.npz', r'x\.npz: .*no array called',
          npz('x.npz', zebra=FEATURES)),
    audit('An archive that ends early', 'x.npz', r'x\.npz: no NumPy file',
          raw('x.npz', b'PK\3\4' + b'\0' * 300)),
    audit('An archive with a pickle in it', 'x.npz', r'x\.npz: no NumPy file',
          npz('x.npz', x=np.array([[1, 'a']] * 9, object), y=LABELS[:9])),
    audit('An archive whose array claims terabytes', 'x.npz',
          r'x\.npz: .*(GB|no NumPy file)', cases.archive(
              'x.npz', x=cases.npy_bytes(_shape('(1000000000000, 9)')),
              y=cases.saved(LABELS))),
    audit('An archive that unpacks to a hundred times its size', 'x.npz',
          r'x\.npz: .*(GB|no NumPy file)', cases.archive(
              'x.npz', x=cases.npy_bytes(
                  _shape('(1000, 1000)'), b'\0' * 1_000_000),
              y=cases.saved(LABELS))),
    audit('An archive without labels', 'x.npz', r'[Ll]abels are missing',
          npz('x.npz', x=FEATURES)),
    audit('Labels in an archive of their own', 'x.npy --labels y.npz', None, X,
          npz('y.npz', labels=LABELS), changes=('audit', 'audit/*', '.audit*')),
]

_LABELS = [
    audit('Labels that are not there', 'x.npy --labels no.csv',
          r'no\.csv: there is no such', X),
    audit('Labels in a pipe', 'x.npy --labels y.csv',
          r'y\.csv: .*no regular file', X, cases.pipe('y.csv')),
    audit('Labels in an endless device', 'x.npy --labels /dev/zero',
          r'/dev/zero: .*no regular file', X),
    _bad_labels('Fewer labels than examples', LABELS[:30],
                r'40 examples and 30 labels'),
    _bad_labels('More labels than examples', np.tile(LABELS, 2),
                r'40 examples and 80 labels'),
    _bad_labels('A label of no dimension', np.int64(1), r'single column.* 1'),
    _bad_labels('Labels of two columns', np.ones([40, 2], int), r'\(40, 2\)'),
    _bad_labels('Labels that are fractions', LABELS + .5, r'Label 0 is 0\.5'),
    _bad_labels('Labels that are NaN', np.where(LABELS, np.nan, 1.),
                r'Label 1 is nan'),
    _bad_labels('Labels that are infinite', np.where(LABELS, np.inf, 1.),
                r'Label 1 is inf'),
    _bad_labels('Labels that are negative', LABELS - 1, r'Label 0 is -1'),
    _bad_labels('Labels that int64 cannot hold',
                LABELS.astype(np.uint64) + np.uint64(2**63),
                r'Label 0 is 9223372036854775808'),
    _bad_labels('Infinite labels of half precision', np.where(
        LABELS, np.inf, 1.).astype(np.float16), r'Label 1 is inf'),
    _bad_labels('Labels that float64 cannot tell apart',
                LABELS * 2. + 2.**60, r'Label 0 is 1\.15'),
    _bad_labels('Labels that are complex', LABELS.astype(complex), r'complex'),
    _bad_labels('Labels that are bytes', np.array([b'a', b'b'] * 20),
                r'not \|S1|bytes'),
    _bad_labels('Labels that are dates', np.zeros(40, 'datetime64[D]'),
                r'datetime'),
    _bad_labels('Labels that are records', np.zeros(40, [('a', 'i4')]), r"'a'"),
    _bad_labels('Labels that are pickled', np.array(['a', None] * 20, object),
                r'y\.npy: no NumPy file'),
    _bad_labels('Labels that are all the same', np.zeros(40, int),
                r'All labels are the same'),
    _bad_labels('Labels that are all different', np.arange(40),
                r'40 different labels'),
    audit('Classes that take more memory than there is',
          'x.npy --labels y.npy', r'30,000 .*GB',
          npy('x.npy', np.ones([30_000, 1], np.float32)),
          npy('y.npy', np.arange(30_000))),
    audit('A label that is empty', 'x.npy --labels y.csv', r'Label 3 is empty',
          X, csv('y.csv', 'label', 'a', 'b', 'a', '" "', *['a', 'b'] * 18)),
    audit('Names of classes that are the same', f'{_XY} --classes=a,a',
          r'different', X, Y),
    audit('Labels that are none of the classes', f'{_XY} --classes=a',
          r"Label 1 is '1'", X, Y),
    audit('Names of classes that are empty', f'{_XY} --classes=a,,b',
          r"--classes: 'a,,b'", X, Y),
]

_TABLES = [
    audit('A table that is empty', 't.csv', r't\.csv: the file is empty',
          raw('t.csv', b'')),
    audit('A table in a pipe', 't.csv', r't\.csv: .*no regular file',
          cases.pipe('t.csv')),
    audit('A table of blank lines', 't.csv', r't\.csv: the file is empty',
          raw('t.csv', b'\n\n\n')),
    audit('A table of zeros', 't.csv', r't\.csv: ', raw('t.csv', b'\0' * 5000)),
    audit('A table that is no text', 't.csv', r't\.csv: not readable',
          raw('t.csv', bytes(range(128, 256)) * 20)),
    audit('A table of half a character', 't.csv', r't\.csv: not readable',
          raw('t.csv', b'\xff\xfea')),
    _bad_table('A table of a header alone', r't\.csv: there are no rows',
               'a,label'),
    _bad_table('A line that is too short', r't\.csv: line 3 is too short',
               'a,label', '1,x', '2'),
    _bad_table('A line that is too long', r't\.csv: line 2 is too long',
               'a,label', '1,x,5'),
    _bad_table('Two columns of one name', r't\.csv: .*different',
               'label,label', '1,2'),
    _bad_table('A column that is not there', r"no column 'label'.*a, b",
               'a,b', '1,2'),
    _bad_table('A table without a column of labels', r'column label', 'a,b',
               '1,2', flags=''),
    _bad_table('A table of labels alone', r'no column to learn from', 'label',
               *['a', 'b'] * 10),
    _bad_table('A table without any label', r'no row has a label', 'a,label',
               '1,', '2,na'),
    _bad_table('A column of ids that repeat', r'cells of a must be different',
               'a,label', '1,x', '1,y', flags='--label=label --id=a'),
    _bad_table('A column of ids that is not there', r"no column 'zebra'",
               'a,label', *_TEN, flags='--label=label --id=zebra'),
    _bad_table('An ignored column that is not there', r"no column 'zebra'",
               'a,label', *_TEN, flags='--label=label --ignore=zebra'),
    _bad_table('All columns ignored', r'no column to learn from', 'a,label',
               *_TEN, flags='--label=label --ignore=a'),
    _bad_table('A number of 400 digits', r't\.csv: .*column a.*row 1\b',
               'a,label', '1,x', f'{"7" * 400},y', '3,x'),
    _bad_table('A number that is too large for a float',
               r't\.csv: .*column a.*row 0\b', 'a,label', '1e999,x', '2,y'),
    _bad_table('A quote that never ends', r't\.csv', 'a,label', '"1,x', '2,y'),
    audit('A cell of 12 MB', 't.csv', r't\.csv: not readable', lambda: raw(
        't.csv', b'a,label\n1' + b'0' * 12_000_000 + b',x\n')()),
    audit('A table of a terabyte', 't.csv', r't\.csv: .*too large.* GB',
          cases.sparse('t.csv', 2**40)),
    audit('Labels of a terabyte', 'x.npy --labels y.csv', r'y\.csv: .* GB', X,
          cases.sparse('y.csv', 2**40)),
    audit('An archive of a terabyte', 'x.npz', r'x\.npz: ',
          cases.sparse('x.npz', 2**40)),
    audit('Labels beside a table', 't.csv --labels y.npy', r'--label=NAME', Y,
          csv('t.csv', 'a,label', *_TEN)),
    audit('A table in an unknown format', 't.xlsx', r't\.xlsx', raw(
        't.xlsx', b'PK\3\4\0\0\0\0\x80\x99')),
    audit('A Parquet file that is none', 't.parquet', r't\.parquet: ',
          raw('t.parquet', b'PAR1 nothing PAR1')),
    audit('An empty Parquet file', 't.parquet', r't\.parquet: ',
          raw('t.parquet', b'')),
]

CASES = (*_ARRAYS, *_LABELS, *_TABLES)

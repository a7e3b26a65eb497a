import dataclasses
import os
import pathlib
import pickle
import zipfile

import numpy as np
import pytest

from experiments import data
from experiments.data import cifar_n
from experiments.data import label_files

_KEYS = ['clean_label', 'noisy_label']
_CIFAR_N = pathlib.Path(__file__).parents[4] / 'shared' / 'data' / 'cifar_n'
needs_cifar_n = pytest.mark.skipif(
    not _CIFAR_N.is_dir(), reason='The CIFAR-N label files are not here.')


def _labels(num=20):
  return {
      'clean_label': np.arange(num) % 10, 'noisy_label': np.arange(num) % 7}


def _write_pt(path, content, protocol=2):
  """Writes a zip archive as PyTorch does."""
  if not isinstance(content, bytes):
    content = pickle.dumps(content, protocol)
  with zipfile.ZipFile(path, 'w') as archive:
    archive.writestr('archive/data.pkl', content)
    archive.writestr('archive/version', '3\n')
  return path


def _read(path):
  return label_files.read(path, _KEYS, 20, 10)


@pytest.mark.parametrize('protocol', [2, 3, 4])
def test_labels_are_read_from_a_pt_file(tmp_path, protocol):
  labels = _read(_write_pt(tmp_path / 'labels.pt', _labels(), protocol))
  for key, values in _labels().items():
    np.testing.assert_array_equal(labels[key], values)
    assert labels[key].dtype == np.int32


@pytest.mark.parametrize('convert', [
    lambda labels: labels,
    lambda labels: {key: list(values) for key, values in labels.items()},
    lambda labels: {key: values.tolist() for key, values in labels.items()}])
def test_labels_are_read_from_a_npy_file(tmp_path, convert):
  np.save(tmp_path / 'labels.npy', convert(_labels()))
  labels = _read(tmp_path / 'labels.npy')
  for key, values in _labels().items():
    np.testing.assert_array_equal(labels[key], values)


class _Executes:
  """Unpickled without restrictions, it makes a directory."""

  def __init__(self, path):
    self.path = path

  def __reduce__(self):
    return os.mkdir, (str(self.path),)


@pytest.mark.parametrize('suffix', ['pt', 'npy'])
def test_nothing_in_a_file_is_executed(tmp_path, suffix):
  trap, path = tmp_path / 'trap', tmp_path / f'labels.{suffix}'
  content = {**_labels(), 'extra': _Executes(trap)}
  if suffix == 'pt':
    _write_pt(path, content)
  else:
    np.save(path, content)
  with pytest.raises(label_files.LabelFileError, match='mkdir'):
    _read(path)
  assert not trap.exists()
  # The trap works: this is what the restriction prevents.
  pickle.loads(pickle.dumps(_Executes(trap)))
  assert trap.exists()


@pytest.mark.parametrize('opcodes', [
    b'cbuiltins\neval\n(S"1"\ntR.',
    b'cnumpy\nload\n(S"x"\ntR.',
    b'cnumpy.core.multiarray\nfrombuffer\n.',
    b'cexperiments.data.label_files\n_Unpickler\n.',
    b'\x80\x04\x8c\x02os\x8c\x06system\x93.',
    b'cnumpy\nndarray\n(N}X\x01\x00\x00\x00aK\x01stb.',  # sets attributes
    b'cnumpy\ndtype\n(N}X\x01\x00\x00\x00aK\x01stb.',
    b'c_codecs\nencode\n(X\x01\x00\x00\x00aX\x03\x00\x00\x00zipt\x86R.',
])
def test_forged_pickles_are_refused(tmp_path, opcodes):
  path = _write_pt(tmp_path / 'labels.pt', b'\x80\x02' + opcodes)
  with pytest.raises(label_files.LabelFileError, match='labels.pt is'):
    _read(path)


def test_a_forged_dtype_reads_no_foreign_memory(tmp_path):
  # An array of pointers whose dtype says that they are plain bytes.
  forged = (
      b'\x80\x02}X\x0b\x00\x00\x00clean_labelcnumpy.core.multiarray\n'
      b'_reconstruct\ncnumpy\nndarray\nK\x00\x85X\x01\x00\x00\x00b\x87R'
      b'(K\x01K\x02\x85cnumpy\ndtype\nX\x02\x00\x00\x00O8\x89\x88\x87R'
      b'(K\x03X\x01\x00\x00\x00|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb'
      b'\x89X\x10\x00\x00\x00AAAAAAAAAAAAAAAAtbs.')
  path = _write_pt(tmp_path / 'labels.pt', forged)
  with pytest.raises(label_files.LabelFileError, match='20 integers'):
    _read(path)


@pytest.mark.parametrize('share', [0., 0.1, 0.5, 0.95])
@pytest.mark.parametrize('suffix', ['pt', 'npy'])
def test_a_truncated_file_is_refused(tmp_path, suffix, share):
  path = tmp_path / f'labels.{suffix}'
  if suffix == 'pt':
    _write_pt(path, _labels())
  else:
    np.save(path, _labels())
  content = path.read_bytes()
  path.write_bytes(content[:int(share * len(content))])
  with pytest.raises(label_files.LabelFileError, match='is damaged'):
    _read(path)


def test_a_truncated_pickle_in_a_sound_archive_is_refused(tmp_path):
  content = pickle.dumps(_labels(), 2)[:-30]
  with pytest.raises(label_files.LabelFileError, match='is damaged'):
    _read(_write_pt(tmp_path / 'labels.pt', content))


@pytest.mark.parametrize('change, message', [
    (dict(noisy_label=np.arange(19) % 7), r"'noisy_label' must be 20 integers"),
    (dict(noisy_label=np.zeros((20, 1), int)), r'shape \(20, 1\)'),
    (dict(noisy_label=np.zeros(20)), 'f8'),
    (dict(noisy_label=[0.5] * 20), '20 integers'),
    (dict(noisy_label='many'), '20 integers'),
    (dict(noisy_label=[[0], [0, 1]] * 10), 'no array'),
    (dict(noisy_label=np.full(20, 10)), r'in 0..9, it is in 10..10'),
    (dict(noisy_label=np.arange(20) - 1), r'it is in -1..18'),
    (dict(noisy_label=None), "no labels 'noisy_label'"),
])
def test_wrong_labels_are_refused(tmp_path, change, message):
  path = _write_pt(tmp_path / 'labels.pt', {**_labels(), **change})
  with pytest.raises(label_files.LabelFileError, match=message):
    _read(path)


@pytest.mark.parametrize('content', [[1, 2], 'text', None, 3])
def test_a_file_without_a_dict_is_refused(tmp_path, content):
  path = _write_pt(tmp_path / 'labels.pt', content)
  with pytest.raises(label_files.LabelFileError, match='no dict'):
    _read(path)


def test_a_npy_file_of_numbers_is_refused(tmp_path):
  np.save(tmp_path / 'labels.npy', np.arange(20))
  with pytest.raises(label_files.LabelFileError, match='not a dict'):
    _read(tmp_path / 'labels.npy')


def _cifar100(num=50_000):
  """Training examples that fit generated CIFAR-100N files, shuffled."""
  ids = np.random.default_rng(0).permutation(num)
  clean = np.random.default_rng(1).integers(0, 100, num)
  noisy = np.random.default_rng(2).integers(0, 100, num)
  examples = data.Examples(
      np.zeros((num, 1), np.uint8), clean[ids].astype(np.int32), ids)
  return examples, clean, noisy


@pytest.mark.parametrize('form', ['pt', 'npy', 'npy with its order'])
def test_human_labels_find_their_images(tmp_path, form):
  examples, clean, noisy = _cifar100(1000)
  if form == 'pt':
    _write_pt(
        tmp_path / 'CIFAR-100_human.pt',
        {'clean_label': clean, 'noisy_label': noisy})
  else:
    # TFDS's read order is that of the examples, unless the file says another.
    order = examples.ids
    if form == 'npy with its order':
      order = np.random.default_rng(3).permutation(1000)
      np.save(tmp_path / 'image_order_c100.npy', order)
    np.save(
        tmp_path / 'CIFAR-100_human_ordered.npy',
        {'clean_label': clean[order], 'noise_label': noisy[order]})
  labels = cifar_n.read_labels('cifar100n', tmp_path, examples, 100)
  np.testing.assert_array_equal(labels['noisy'], noisy[examples.ids])


def test_clean_labels_that_disagree_are_counted(tmp_path):
  examples, clean, noisy = _cifar100(1000)
  clean[:3] = (clean[:3] + 1) % 100
  _write_pt(
      tmp_path / 'CIFAR-100_human.pt',
      {'clean_label': clean, 'noisy_label': noisy})
  with pytest.raises(label_files.LabelFileError, match='3 of 1000'):
    cifar_n.read_labels('cifar100n', tmp_path, examples, 100)


def test_an_order_that_is_no_permutation_is_refused(tmp_path):
  examples, clean, noisy = _cifar100(1000)
  np.save(tmp_path / 'image_order_c100.npy', np.zeros(1000, int))
  np.save(
      tmp_path / 'CIFAR-100_human_ordered.npy',
      {'clean_label': clean, 'noise_label': noisy})
  with pytest.raises(label_files.LabelFileError, match='no permutation'):
    cifar_n.read_labels('cifar100n', tmp_path, examples, 100)


@pytest.mark.real_data
@needs_cifar_n
def test_cifar10n_has_its_published_noise_rates():
  labels = label_files.read(
      _CIFAR_N / 'CIFAR-10_human.pt',
      ['clean_label', 'random_label1', 'random_label2', 'random_label3',
       'aggre_label', 'worse_label'], 50_000, 10)
  clean = labels.pop('clean_label')
  rates = [round(100 * np.mean(noisy != clean), 2) for noisy in labels.values()]
  assert rates == [17.23, 18.12, 17.64, 9.01, 40.21]


@pytest.mark.real_data
@needs_cifar_n
def test_cifar100n_is_the_same_from_pt_and_from_npy():
  order = np.load(_CIFAR_N / 'image_order_c100.npy')
  pt = label_files.read(
      _CIFAR_N / 'CIFAR-100_human.pt', ['clean_label', 'noisy_label'], 50_000,
      100)
  npy = label_files.read(
      _CIFAR_N / 'CIFAR-100_human_ordered.npy',
      ['clean_label', 'noise_label'], 50_000, 100)
  for labels in (pt, npy):
    clean, noisy = labels.values()
    assert round(100 * np.mean(clean != noisy), 2) == 40.20
  np.testing.assert_array_equal(pt['clean_label'][order], npy['clean_label'])
  np.testing.assert_array_equal(pt['noisy_label'][order], npy['noise_label'])


@pytest.mark.real_data
@needs_cifar_n
def test_cifar100n_fits_the_labels_of_cifar100(tmp_path):
  packs = sorted((_CIFAR_N.parent / 'cifar100').glob('train_lossless_*.npz'))
  if not packs:
    pytest.skip('The images of CIFAR-100 are not here.')
  labels = np.concatenate([np.load(pack)['fine'] for pack in packs])
  ids = np.load(_CIFAR_N / 'image_order_c100.npy')
  examples = data.Examples(
      np.zeros((50_000, 1), np.uint8), labels[ids].astype(np.int32), ids)
  from_pt = cifar_n.read_labels('cifar100n', _CIFAR_N, examples, 100)
  npy = 'CIFAR-100_human_ordered.npy'
  (tmp_path / npy).symlink_to(_CIFAR_N / npy)
  from_npy = cifar_n.read_labels('cifar100n', tmp_path, examples, 100)
  np.testing.assert_array_equal(from_pt['noisy'], from_npy['noisy'])
  assert round(100 * np.mean(from_pt['noisy'] != examples.labels), 2) == 40.20
  # One class further on, everybody disagrees.
  shifted = dataclasses.replace(examples, labels=(examples.labels + 1) % 100)
  with pytest.raises(label_files.LabelFileError, match='50000 of 50000'):
    cifar_n.read_labels('cifar100n', _CIFAR_N, shifted, 100)

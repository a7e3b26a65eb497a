"""Tests of how arrays, images and labels are read from files."""

import csv
import os
import zipfile

import numpy as np
from PIL import Image
import pytest

from ln_tfp.audit import files
from ln_tfp.audit.files import images


def write_csv(path, header, rows):
  with open(path, 'w', newline='', encoding='utf-8') as file:
    writer = csv.writer(file)
    writer.writerow(header)
    writer.writerows(rows)
  return str(path)


def _save_images(folder, names, seed=0):
  rng = np.random.default_rng(seed)
  for i, name in enumerate(names):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    pixels = rng.integers(0, 256, (20 + i, 30, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(folder / name)


@pytest.mark.parametrize('header', [
    ('file', 'label'), ('filename', 'class'), ('Path', 'Target')])
def test_a_folder_of_images_is_read_in_the_order_of_the_labels(
    header, tmp_path):
  names = [f'{5 - i}.png' for i in range(6)]
  _save_images(tmp_path, names)
  labels = write_csv(tmp_path / 'labels.csv', header,
                     [(name, i % 2) for i, name in enumerate(names)])
  found = files.load(tmp_path, labels)
  assert found.ids.tolist() == names
  assert found.labels.tolist() == [0, 1] * 3
  inputs = found.inputs.array(16)
  assert inputs.shape == (6, 16, 16, 3)
  with Image.open(tmp_path / names[2]) as image:
    expected = np.asarray(image.resize((16, 16)))
  np.testing.assert_array_equal(inputs[2], expected)
  np.testing.assert_array_equal(found.inputs.batch(2, 4, 16), inputs[2:4])


def test_sub_folders_are_classes(tmp_path):
  names = ['cat/1.png', 'cat/more/2.JPG', 'dog/1.png', 'dog/.hidden.png']
  _save_images(tmp_path, names)
  (tmp_path / 'dog' / 'notes.txt').write_text('no image')
  _save_images(tmp_path, ['.cache/3.png'])
  found = files.load(tmp_path)
  assert found.ids.tolist() == names[:3]
  assert found.class_names == ('cat', 'dog')
  assert found.labels.tolist() == [0, 0, 1]


def test_a_folder_without_images_in_sub_folders_needs_labels(tmp_path):
  _save_images(tmp_path, ['1.png'])
  with pytest.raises(files.InputError, match='or say --labels FILE'):
    files.load(tmp_path)


def test_sixteen_bits_and_numbers_up_to_one_are_scaled(tmp_path):
  ramp = np.linspace(0, 1, 256).reshape(16, 16)
  expected = np.round(255 * ramp)
  Image.fromarray((65_535 * ramp).astype(np.uint16)).save(tmp_path / 'a.png')
  Image.fromarray(ramp.astype(np.float32)).save(tmp_path / 'a.tif')
  for name in ('a.png', 'a.tif'):
    found = np.asarray(images.read(tmp_path / name))
    assert found.dtype == np.uint8
    np.testing.assert_allclose(found, expected, atol=1)


@pytest.mark.parametrize('values', [[-1., 1.], [0., 300.], [0., np.nan]])
def test_numbers_without_a_known_white_are_refused(values, tmp_path):
  Image.fromarray(np.full((4, 2), values, np.float32)).save(tmp_path / 'a.tif')
  with pytest.raises(files.InputError, match='where 0 to 1 are expected'):
    images.read(tmp_path / 'a.tif')


def test_a_rotated_photograph_is_put_upright(tmp_path):
  pixels = np.zeros((10, 20, 3), np.uint8)
  pixels[:, :10] = 255  # the left half is white
  exif = Image.Exif()
  exif[0x0112] = 6  # to be turned clockwise
  Image.fromarray(pixels).save(tmp_path / 'a.png', exif=exif)
  found = np.asarray(images.read(tmp_path / 'a.png'))
  assert found.shape == (20, 10, 3)
  assert found[0].mean() == 255 and found[-1].mean() == 0


def test_grey_images_stay_grey_unless_one_has_colours(tmp_path):
  Image.new('L', (5, 5), 7).save(tmp_path / 'a.png')
  Image.new('P', (5, 5)).save(tmp_path / 'b.gif')
  folder = images.ImageFolder(tmp_path, ['a.png'])
  assert folder.array(4).shape == (1, 4, 4, 1)
  folder = images.ImageFolder(tmp_path, ['a.png', 'b.gif'])
  assert folder.array(4).shape == (2, 4, 4, 3)


def test_a_decompression_bomb_is_one_line(tmp_path, monkeypatch):
  Image.new('L', (2_000, 1_000)).save(tmp_path / 'a.png')
  monkeypatch.setattr(images, '_MAX_PIXELS', 1_000_000)
  with pytest.raises(files.InputError, match='2,000 x 1,000 pixels is too'):
    images.read(tmp_path / 'a.png')


@pytest.mark.parametrize('rows, message', [
    ([('1.png', 'a'), ('1.png', 'b')], 'listed twice, as examples 0 and 1'),
    ([('1.png', 'a'), ('./1.png', 'a')], 'listed twice'),
    ([('../1.png', 'a'), ('1.png', 'b')], 'is not in the folder'),
    ([('/etc/passwd', 'a'), ('1.png', 'b')], 'is not in the folder'),
    ([('1.png', 'a'), ('2.png', 'b')], '2.png: not a readable image'),
])
def test_lists_of_images_that_cannot_be_meant_are_refused(
    rows, message, tmp_path):
  folder = tmp_path / 'images'
  _save_images(folder, ['1.png'])
  labels = write_csv(tmp_path / 'labels.csv', ('file', 'label'), rows)
  with pytest.raises(files.InputError, match=message):
    files.load(folder, labels)


def test_images_outside_of_the_folder_can_be_allowed(tmp_path):
  _save_images(tmp_path, ['out.png', 'images/in.png'])
  labels = write_csv(tmp_path / 'labels.csv', ('file', 'label'),
                     [('../out.png', 'a'), ('in.png', 'b')])
  found = files.load(tmp_path / 'images', labels, allow_outside=True)
  assert found.inputs.array(4).shape == (2, 4, 4, 3)


@pytest.mark.parametrize('name', ['images', 'x', 'features'])
def test_an_npz_file_may_bring_its_labels(name, tmp_path):
  x = np.random.default_rng(0).normal(size=(8, 3))
  np.savez(tmp_path / 'd.npz', **{name: x}, labels=np.arange(8) % 2)
  found = files.load(tmp_path / 'd.npz')
  np.testing.assert_array_equal(found.inputs, x)
  np.testing.assert_array_equal(found.labels, np.arange(8) % 2)


def _npy_header(text):
  return b'\x93NUMPY\x01\x00' + len(text).to_bytes(2, 'little') + text.encode()


@pytest.mark.parametrize('content', [
    b'', b'\x93NUMPY', b'\x93NUMPY\x01\x00\xff\xff',
    _npy_header("{'descr': '<f8', 'fortran_order': False, "
                "'shape': (1000000000000, 9)}\n"),
    _npy_header("{'descr': '|O', 'fortran_order': False, 'shape': (3,)}\n"),
    _npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (-3, 2)}\n"),
    _npy_header('(' * 5_000 + '\n'),
    _npy_header('{}\n'),
])
def test_hostile_npy_files_are_one_line(content, tmp_path):
  (tmp_path / 'x.npy').write_bytes(content)
  with pytest.raises(files.InputError, match='x.npy: no NumPy file'):
    files.load(tmp_path / 'x.npy')


def test_hostile_npz_files_are_one_line(tmp_path):
  path = tmp_path / 'x.npz'
  path.write_bytes(b'PK\x03\x04 truncated')
  with pytest.raises(files.InputError, match='no NumPy file'):
    files.load(path)
  np.savez(path, a=np.zeros(3))
  with pytest.raises(files.InputError, match='no array called images'):
    files.load(path)
  with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as archive:
    archive.writestr('x.npy', _npy_header(
        "{'descr': '<f8', 'fortran_order': False, 'shape': (10, 2)}\n"))
  with pytest.raises(files.InputError, match='no NumPy file'):
    files.load(path)


def test_an_archive_that_does_not_fit_in_memory_is_refused(
    tmp_path, monkeypatch):
  from ln_tfp.audit.files import dataset
  np.savez_compressed(tmp_path / 'x.npz', x=np.zeros((1_000, 9)))
  monkeypatch.setattr(dataset, 'memory', lambda: 9_000)
  with pytest.raises(files.InputError, match='its arrays need'):
    files.load(tmp_path / 'x.npz')


@pytest.mark.parametrize('x, message', [
    (np.zeros(()), 'must be features'),
    (np.zeros(4), 'must be features'),
    (np.zeros((4, 0)), 'must be features'),
    (np.zeros((4, 2), [('a', 'f4')]), 'must be numbers'),
    (np.zeros((4, 2), complex), 'must be numbers'),
    (np.array([[0.], [np.inf], [0.], [0.]]), 'example 1 has values that are'),
    (np.array([[0.], [0.], [1e200], [0.]]), 'example 2 has values beyond'),
])
def test_arrays_that_cannot_be_audited_are_refused(x, message, tmp_path):
  np.save(tmp_path / 'x.npy', x)
  np.save(tmp_path / 'y.npy', np.arange(4) % 2)
  with pytest.raises(files.InputError, match=message):
    files.load(tmp_path / 'x.npy', tmp_path / 'y.npy')


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
  os.mkfifo(tmp_path / 'x.npy')
  with pytest.raises(files.InputError, match='no regular file'):
    files.load(tmp_path / 'x.npy')
  with pytest.raises(files.InputError, match='no regular file'):
    images.read(tmp_path / 'x.npy')


@pytest.mark.parametrize('labels, classes, expected', [
    ([3, 7, 3], None, ([0, 1, 0], ('3', '7'))),
    (['3', '10', '3'], None, ([0, 1, 0], ('3', '10'))),
    (['1', '01', '1_0', '١'], None,
     ([1, 0, 2, 3], ('01', '1', '1_0', '١'))),
    (['-1', '1', '0'], None, ([0, 2, 1], ('-1', '0', '1'))),
    (['1' * 400, '2', '2'], None, ([0, 1, 1], ('1' * 400, '2'))),
    (['b', 'a', 'b'], None, ([1, 0, 1], ('a', 'b'))),
    ([0, 1, 1], ('x', 'y'), ([0, 1, 1], ('x', 'y'))),
    (['y', 'x', 'x'], ('x', 'y'), ([1, 0, 0], ('x', 'y'))),
    (np.array([[2.], [4.]]), None, ([0, 1], ('2', '4'))),
    (np.array([True, False]), None, ([1, 0], ('0', '1'))),
])
def test_labels_are_numbers_or_names(labels, classes, expected):
  codes, names = files.encode(labels, classes)
  assert (codes.tolist(), names) == expected


@pytest.mark.parametrize('labels, classes, message', [
    ([1, 1, 1], None, 'All labels are the same'),
    ([], None, 'There are no labels'),
    (['a', 'b', 'c'], ('a', 'b'), "Label 2 is 'c', which is no class"),
    ([0, 1, 5], ('a', 'b'), "Label 2 is '5', which is no class"),
    ([0, -1], None, 'Label 1 is -1, which is no class'),
    ([0., 1.5], None, 'Label 1 is 1.5, which is no class'),
    ([0., np.nan], None, 'Label 1 is nan, which is no class'),
    ([0., np.inf], None, 'Label 1 is inf, which is no class'),
    (np.array([0, 2**63], np.uint64), None, 'Label 1 is 9223372036854775808'),
    (np.array([b'a', b'b']), None, 'must be names or whole numbers, not'),
    (np.array([1j, 2j]), None, 'must be names or whole numbers, not complex'),
    (np.array([b'a', 'b'], object), None, "Label 0 is b'a', which is no name"),
    (['a', ''], None, 'Label 1 is empty'),
    (np.zeros((2, 3)), None, 'single column'),
    (np.zeros(()), None, 'single column'),
    ([0, 1], ('a', 'a', 'b'), 'must be different'),
    (np.arange(20_000), None, 'whose matrices alone need 8.9 GB'),
    (np.arange(200), None, '200 different labels for 200 examples'),
])
def test_labels_that_are_no_classes_are_refused(labels, classes, message):
  with pytest.raises(files.InputError, match=message):
    files.encode(labels, classes)

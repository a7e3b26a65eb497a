"""Folders and lists of images that the audit is given."""

import functools

import numpy as np
from PIL import Image

from ln_tfp.audit import files
from tests.hostile import cases
from tests.hostile.cases import audit
from tests.hostile.cases import call
from tests.hostile.cases import csv
from tests.hostile.cases import picture
from tests.hostile.cases import raw

_CAT = picture('d/cat/1.png')
_DOG = picture('d/dog/2.png')
_RAMP = np.arange(256).reshape(16, 16)


def _bad_image(name, says, *makers):
  return audit(name, 'd --size=8', says, _CAT, _DOG, *makers)


def _bad_list(name, says, *lines, flags='', makers=()):
  return audit(
      name, f'd --labels list.csv {flags}', says, picture('d/a.png'),
      picture('d/b.png'), picture('outside.png'), *makers,
      csv('list.csv', 'file,label', *lines))


def _pixels(name='a.png'):
  return np.asarray(files.images.read(name)).astype(int)


def _expect(condition, got):
  if not condition:
    raise AssertionError(f'Silently wrong: {got}')


def _sixteen_bits_are_scaled():
  _expect(np.abs(_pixels() - _RAMP).max() <= 1, _pixels())


def _exif_is_applied(name):
  got = _pixels(name)
  _expect(got.shape[:2] == (16, 32) and got[:, -8:].min() > 200 and (
      got[:, :8].max() < 55), (got.shape, got[:, -8:].min()))


def _rotated(name):
  """The upper half is white; a viewer turns that to the right."""
  def write():
    pixels = np.zeros((32, 16), np.uint8)
    pixels[:16] = 255
    image = Image.fromarray(pixels)
    exif = image.getexif()
    exif[0x112] = 6
    image.save(name, exif=exif)
  return write


CASES = (
    audit('A folder without images', 'd', r'd: there are no images',
          cases.folder('d/cat')),
    audit('A folder of one class', 'd', r'All labels are the same', _CAT),
    audit('A folder that is not there', 'd/', r'd: there is no such'),
    audit('Images in no sub-folder', 'd', r'd: there are no images',
          picture('d/1.png')),
    _bad_image('An image that is empty', r'd/dog/3\.png: not a readable image',
               raw('d/dog/3.png', b'')),
    _bad_image('An image that is text', r'd/dog/3\.jpg: not a readable image',
               raw('d/dog/3.jpg', 'hello')),
    _bad_image('An image that ends early', r'd/dog/3\.png: not a readable',
               raw('d/dog/3.png', cases.picture_bytes(100, 200))),
    _bad_image('A picture of 10 gigapixels', r'd/dog/3\.png: .*10000000000 pix',
               raw('d/dog/3.png', cases.picture_bytes(100_000, 100_000))),
    _bad_image('A picture of many lines', r'd/dog/3\.png: .*2000000000 pix',
               raw('d/dog/3.png', cases.picture_bytes(1, 2_000_000_000))),
    _bad_image('A picture of no pixels', r'd/dog/3\.png: not a readable',
               raw('d/dog/3.png', cases.picture_bytes(0, 5))),
    _bad_image('A pipe among the images', r'd/dog/3\.png: .*no regular file',
               cases.pipe('d/dog/3.png')),
    _bad_image('A folder called .png among the images',
               r'd/dog/3\.png: .*no regular file', cases.folder('d/dog/3.png')),
    _bad_image('A link to an image that is gone',
               r'd/dog/3\.png: there is no such', cases.link(
                   'd/dog/3.png', 'gone.png')),
    _bad_image('Floating pixels beyond one',
               r'd/dog/3\.tif: .*from 0 to 255, where 0 to 1', picture(
                   'd/dog/3.tif', _RAMP.astype(np.float32))),
    _bad_image('Floating pixels that are NaN', r'd/dog/3\.tif: .*nan', picture(
        'd/dog/3.tif', np.full((4, 4), np.nan, np.float32))),
    _bad_image('Pixels of 32 bits', r'd/dog/3\.tif: .*from 0 to 1\.6', picture(
        'd/dog/3.tif', (_RAMP * 2**16).astype(np.int32))),
    _bad_image('Pixels of 32 bits that are small',
               r'd/dog/3\.tif: .*from 0 to 255, where sixteen', picture(
                   'd/dog/3.tif', _RAMP.astype(np.int32))),
    call('Pixels of sixteen bits are scaled', _sixteen_bits_are_scaled, None,
         picture('a.png', (_RAMP * 257).astype(np.uint16))),
    call('Floating pixels up to one are scaled',
         lambda: _expect(np.abs(_pixels('a.tif') - _RAMP).max() <= 1, ''),
         None, picture('a.tif', (_RAMP / 255).astype(np.float32))),
    call('Pixels of sixteen bits in a TIFF file are scaled',
         lambda: _expect(np.abs(_pixels('a.tif') - _RAMP).max() <= 1, ''),
         None, picture('a.tif', (_RAMP * 257).astype(np.uint16))),
    *(call(f'A {kind} file that a camera has turned is upright',
           functools.partial(_exif_is_applied, f'a.{kind}'), None,
           _rotated(f'a.{kind}')) for kind in ('jpg', 'png', 'tif', 'webp')),
    _bad_list('A list that is empty', r'list\.csv: there are no rows'),
    audit('A list without its header', 'd --labels list.csv',
          r'list\.csv: the header must name the column file', picture(
              'd/a.png'), csv('list.csv', 'a.png,cat', 'b.png,dog')),
    _bad_list('An image that is listed twice', r'a\.png is listed twice',
              'a.png,cat', 'b.png,dog', 'a.png,cat'),
    _bad_list('An image with two labels', r'a\.png is listed twice',
              'a.png,cat', 'a.png,dog'),
    _bad_list('An image under two names', r'\./a\.png is listed twice',
              'a.png,cat', './a.png,dog'),
    _bad_list('An image under two names, one of which leaves the folder',
              r'\.\./d/a\.png is listed twice', 'a.png,cat', '../d/a.png,dog',
              flags='--allow_outside'),
    _bad_list('A list that leaves the folder in the manner of Windows',
              r'is not in the folder', 'a.png,cat', '..\\outside.png,dog'),
    _bad_list('A list that leaves the folder',
              r'\.\./outside\.png is not in the folder.*--allow_outside',
              'a.png,cat', '../outside.png,dog'),
    _bad_list('A list that leaves the folder on a detour',
              r'is not in the folder', 'a.png,cat', 'x/../../outside.png,dog'),
    _bad_list('A list of absolute paths', r'/etc/passwd is not in the folder',
              'a.png,cat', '/etc/passwd,dog'),
    _bad_list('A file outside that is no image', r'/etc/passwd: not a readable',
              'a.png,cat', '/etc/passwd,dog', flags='--allow_outside --size=8'),
    _bad_list('An image that is missing', r'd/c\.png: .*no such file',
              'a.png,cat', 'c.png,dog'),
    _bad_list('A folder in a list', r'd/c: .*(no such|regular)', 'a.png,cat',
              'c,dog', makers=[cases.folder('d/c')]),
    _bad_list('A pipe in a list', r'd/c\.png: .*(no such|regular)',
              'a.png,cat', 'c.png,dog', makers=[cases.pipe('d/c.png')]),
    _bad_list('A name of 5,000 letters in a list', r'zzz.*(too long|no such)',
              'a.png,cat', f'{"z" * 5000}.png,dog'),
    _bad_list('A name that is empty in a list', r'list\.csv|d: ',
              'a.png,cat', '"",dog'),
    _bad_list('A name with a zero byte in a list', r'list\.csv|d/b',
              'a.png,cat', 'b\0.png,dog'),
    _bad_list('A label that is missing in a list', r'Label 1 is empty',
              'a.png,cat', 'b.png,'),
)

"""Flags of the audit that cannot be."""

import numpy as np

from tests.hostile import cases
from tests.hostile.audit_files import X
from tests.hostile.audit_files import Y
from tests.hostile.cases import audit
from tests.hostile.cases import npy
from tests.hostile.cases import picture
from tests.hostile.cases import raw

_IMAGES = npy('x.npy', np.zeros([40, 8, 8], np.uint8))
_CAT = picture('d/cat/1.png')
_DOG = picture('d/dog/2.png')


def _bad_flag(name, flag, says):
  return audit(name, f'x.npy --labels y.npy {flag}', says, X, Y)


CASES = (
    _bad_flag('No epochs', '--epochs=0', r"--epochs: '0' is no pos"),
    _bad_flag('A negative number of epochs', '--epochs=-3', r"--epochs: '-3'"),
    _bad_flag('Epochs that are a word', '--epochs=many', r"--epochs.*'many'"),
    _bad_flag('Epochs of 5,000 digits', f'--epochs={"9" * 5000}', r'--epochs'),
    _bad_flag('A precision of two', '--precision=2', r"--precision: '2'"),
    _bad_flag('A precision that is NaN', '--precision=nan', r'--precision'),
    _bad_flag('A precision of zero', '--precision=0', r"--precision: '0'"),
    _bad_flag('A budget of nothing', '--budget=0', r"--budget: '0'"),
    _bad_flag('A budget and a precision', '--budget=3 --precision=.9',
              r'--precision.*--budget'),
    _bad_flag('A page that shows nothing', '--shown=-1', r"--shown: '-1'"),
    _bad_flag('A flag that does not exist', '--zebra=1', r'--zebra'),
    _bad_flag('A seed that is negative', '--seed=-1', r'--seed.*-1'),
    _bad_flag('A seed of 30 digits', f'--seed={10**30}', r'--seed.*10000'),
    _bad_flag('A seed that is a fraction', '--seed=.5', r"--seed.*'\.5'"),
    _bad_flag('A side of an image for features', '--size=32', r'--size'),
    _bad_flag('Images twice', '--images=x.npy', r'--images'),
    _bad_flag('A data set beside files', '--dataset=digits', r'--dataset'),
    _bad_flag('Noise for files', '--noise=sym:0.2', r'--noise needs --dataset'),
    _bad_flag('A backbone for features', '--backbone=auto',
              r'--backbone needs images'),
    audit('A second file', 'x.npy y.npy', r'y\.npy', X, Y),
    audit('A side of a billion pixels', 'd --size=1000000000',
          r'--size.*1000000000', _CAT, _DOG),
    audit('A backbone that is not there', 'x.npy --labels y.npy '
          '--backbone=no.keras', r'--backbone=no\.keras', _IMAGES, Y),
    audit('A backbone of an unknown name', 'x.npy --labels y.npy '
          '--backbone=ZebraNet', r'--backbone=ZebraNet', _IMAGES, Y),
    audit('A backbone that is damaged', 'x.npy --labels y.npy '
          '--backbone=b.keras', r'--backbone=b\.keras', _IMAGES, Y,
          raw('b.keras', b'PK\3\4 nothing')),
    audit('A backbone in a pipe', 'x.npy --labels y.npy --backbone=b.keras',
          r'--backbone=b\.keras', _IMAGES, Y, cases.pipe('b.keras')),
    audit('A data set that does not exist', '--dataset=zebra --data_dir=.',
          r'zebra is missing'),
    audit('A data set that leaves its folder', '--dataset=../../etc '
          '--data_dir=.', r'\.\./\.\./etc'),
    audit('A data set of no name', '--dataset= --data_dir=.', r'--dataset'),
    audit('Noise beyond one', '--dataset=digits --noise=sym:2',
          r"noise='sym:2'"),
    audit('Noise that is NaN', '--dataset=digits --noise=sym:nan',
          r"noise='sym:nan'"),
    audit('Human labels that do not exist',
          '--dataset=digits --noise=human:worst', r"name='worst'"),
    audit('A matrix for noise', '--dataset=digits --noise=matrix', r'matrix'),
    audit('Labels for a data set', '--dataset=digits --labels=y.npy',
          r'--labels needs DATA', Y),
    audit('Ids for a data set', '--dataset=digits --id=name',
          r'--id needs DATA'),
)

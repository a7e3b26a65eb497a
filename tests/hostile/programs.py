"""Flags and data files of the programs; no worker may start for any of them."""

import json
import os
import pathlib
import pickle
import zipfile

import numpy as np

from tests.hostile import cases
from tests.hostile.cases import call
from tests.hostile.cases import csv
from tests.hostile.cases import npy
from tests.hostile.cases import picture
from tests.hostile.cases import program
from tests.hostile.cases import raw

_TABLE = 'synthetic_noise --methods=CE --noise=none --epochs=1'
_LN = 'synthetic_noise --methods=LN --noise=none --epochs=1'
_HET = 'synthetic_noise --methods=Het-tau-Sigma --noise=none --epochs=1'
_TOY = 'toy_datasets --dataset=circles --epochs=1'


def _flag(name, flag, says, line=_TABLE, makers=()):
  return program(name, f'{line} {flag}', says, *makers)


_FLAGS = [
    _flag('A data set of the programs that does not exist', '--dataset=zebra',
          r'--dataset: .*zebra'),
    _flag('More examples of each class than there are', '--per_class=100000',
          r'per_class.*100000'),
    _flag('A negative number of each class', '--per_class=-2',
          r'per_class.*-2'),
    _flag('A negative width', '--model_arguments=widths=[-5]', r'widths.*-5'),
    _flag('A width of zero', '--model_arguments=widths=[0]', r'widths.*0'),
    _flag('A width that is a word', '--model_arguments=widths=wide',
          r"widths.*'?wide"),
    _flag('A width that is a fraction', '--model_arguments=widths=[1.5]',
          r'widths.*1\.5'),
    _flag('A width that is no list', '--model_arguments=widths=5',
          r'widths.*5'),
    _flag('No widths', '--model_arguments=widths=[]', r'widths.*\[\]|\(\)'),
    _flag('A width of 10^15', '--model_arguments=widths=[1000000000000000]',
          r'widths.*1000000000000000'),
    _flag('An argument that a network does not have',
          '--model_arguments=depth=3', r'--model_arguments: .*depth'),
    _flag('Arguments that are no pairs', '--model_arguments=widths',
          r'--model_arguments: .*widths'),
    _flag('An argument of a network given twice',
          '"--model_arguments=widths=[5] widths=[6]"', r'widths.*twice'),
    _flag('A network that does not exist', '--model=zebra',
          r'--model: .*zebra'),
    _flag('A network for images on points', '--model=lenet5', r'lenet5.*\(2,\)',
          line=_TOY),
    _flag('A residual network on points', '--model=wide_resnet',
          r'wide_resnet.*\(2,\)', line=_TOY),
    _flag('A network that is too deep for its images', '--model=resnet50',
          r'resnet50.*\(8, 8, 1\)'),
    _flag('A residual network of an impossible depth',
          '--model=wide_resnet --model_arguments=depth=11', r'depth.*11'),
    _flag('A residual network of no width',
          '--model=wide_resnet --model_arguments=width=0', r'width.*0'),
    _flag('A rank beyond the classes', '--hyperparameters=LN.rank=99',
          r'rank.*99', line=_LN),
    _flag('A rank of Monte Carlo beyond the classes',
          '--hyperparameters=Het-tau-Sigma.rank=99', r'rank.*99', line=_HET),
    _flag('A rank of nothing', '--hyperparameters=LN.rank=0', r'rank.*0',
          line=_LN),
    _flag('A temperature of zero', '--hyperparameters=LN.temperature=0',
          r'temperature.*0', line=_LN),
    _flag('A temperature that is NaN', '--hyperparameters=LN.temperature=NaN',
          r'temperature.*nan', line=_LN),
    _flag('A temperature that is a word',
          '--hyperparameters=LN.temperature=hot', r'temperature.*hot',
          line=_LN),
    _flag('A hyperparameter given twice',
          '"--hyperparameters=LN.rank=1 LN.rank=2"', r'LN\.rank.*twice',
          line=_LN),
    _flag('A hyperparameter that does not exist',
          '--hyperparameters=LN.zebra=1', r'--hyperparameters: .*zebra',
          line=_LN),
    _flag('A hyperparameter of no method', '--hyperparameters=zebra.rank=1',
          r'--hyperparameters: .*zebra', line=_LN),
    _flag('A hyperparameter without a value', '--hyperparameters=LN.rank',
          r'--hyperparameters: .*LN\.rank', line=_LN),
    _flag('A hyperparameter of nested brackets',
          f'--hyperparameters=LN.rank={"[" * 20_000}', r'--hyperparameters: ',
          line=_LN),
    _flag('A hyperparameter of 5,000 digits',
          f'--hyperparameters=LN.rank={"9" * 5000}', r'--hyperparameters: ',
          line=_LN),
    _flag('Samples without number',
          '--hyperparameters=Het-tau-Sigma.samples=-1', r'samples.*-1',
          line=_HET),
    _flag('An option given twice', '"--options=pad=4 pad=2"', r'pad.*twice'),
    _flag('An option that does not exist', '--options=zebra=4',
          r'--options: .*zebra'),
    _flag('A negative padding', '--options=pad=-4', r'pad.*-4'),
    _flag('A protocol of nobody', '--protocol=mine', r'protocol.*mine'),
    _flag('A billion seeds', '--seeds=1000000000', r'--seeds: .*1000000000'),
    _flag('No seeds', '--seeds=0', r'--seeds: .*0'),
    _flag('A negative number of seeds', '--seeds=-5', r'--seeds: .*-5'),
    _flag('Seeds that are a word', '--seeds=some', r'--seeds.*some'),
    _flag('A method that does not exist', '--methods=zebra',
          r'--methods: .*zebra'),
    _flag('A method given twice', '--methods=CE,CE', r'--methods: .*CE,CE'),
    _flag('No method', '--methods=', r'--methods: '),
    _flag('Noise of the programs beyond one', '--noise=sym:1.5',
          r'--noise: .*sym:1\.5'),
    _flag('Noise below zero', '--noise=sym:-0.1', r'--noise: .*sym:-0\.1'),
    _flag('Noise that is a word', '--noise=loud', r'--noise: .*loud'),
    _flag('The same noise twice', '--noise=sym:0.2,sym:.20',
          r'--noise: .*distinct'),
    _flag('No noise beside noise of rate zero', '--noise=none,sym:0.0,asym:0',
          r'--noise: .*distinct'),
    _flag('Human labels of a data set that has none', '--noise=human:worst',
          r'--noise: .*worst'),
    _flag('A batch of a negative size', '--batch_size=-1', r'batch_size.*-1'),
    _flag('Epochs of the programs that are none', '--epochs=0', r'epochs.*0'),
    _flag('A learning rate of zero', '--learning_rate=0', r'learning_rate.*0'),
    _flag('A learning rate that is NaN', '--learning_rate=nan',
          r'learning_rate.*nan'),
    _flag('A learning rate that is infinite', '--learning_rate=1e999',
          r'learning_rate.*inf'),
    _flag('A weight decay that is negative', '--weight_decay=-1',
          r'weight_decay.*-1'),
    _flag('An optimiser that does not exist', '--optimizer=zebra',
          r'optimizer.*zebra'),
    _flag('No workers', '--jobs=0', r'--jobs: .*0'),
    _flag('A strategy that does not exist', '--strategy=zebra',
          r'strategy.*zebra'),
    _flag("A flag of Ray's without Ray", '--cpus_per_run=1',
          r'--cpus_per_run: '),
    _flag('A word among the flags', 'zebra', r'Not a flag: zebra'),
    _flag('A flag of the programs that does not exist', '--zebra=1', r'zebra'),
    _flag('A file of flags that is not there', '--flagfile=no.cfg', r'no\.cfg'),
    _flag('Results in a file', '--output_dir=r', r'--output_dir: .*r',
          makers=[raw('r', 'mine')]),
    _flag('Results that cannot be written', '--output_dir=/proc/results',
          r'--output_dir: .*/proc/results'),
    _flag('Logs in a file', '--tensorboard=logs', r'--tensorboard: .*logs',
          makers=[raw('logs', 'mine')]),
    _flag('Logs that cannot be written', '--tensorboard=/proc/logs',
          r'--tensorboard: .*/proc/logs'),
    _flag('Logs in a pipe', '--tensorboard=logs', r'--tensorboard: .*logs',
          makers=[cases.pipe('logs')]),
    _flag('Logs below a file', '--tensorboard=logs/deep',
          r'--tensorboard: .*logs/deep', makers=[raw('logs', 'mine')]),
    _flag('Logs with a zero byte', '"--tensorboard=a\0b"',
          r'--tensorboard: .*null'),
    _flag('Results with a zero byte', '"--output_dir=a\0b"',
          r'--output_dir: .*null'),
    _flag('Results in a link to nowhere', '--output_dir=r',
          r'--output_dir: .*r', makers=[cases.link('r', 'gone/far')]),
    _flag('Seeds of 30 digits', f'--seeds={10**30}', r'--seeds: .*10000'),
    _flag('A width in two brackets', '--model_arguments=widths=[[5]]',
          r'widths.*5'),
    _flag('A rank that is a fraction', '--hyperparameters=LN.rank=1.5',
          r'rank.*1\.5', line=_LN),
    _flag('Data that are not there', '--dataset=mnist --data_dir=no --offline',
          r'mnist needs no'),
    _flag('Data in a file', '--dataset=mnist --data_dir=d --offline',
          r'mnist.* d', makers=[raw('d', 'mine')]),
]

# Clothing1M as its authors publish it, made small.
_IMAGES = {
    'noisy_train': [f'images/0/t{i}.jpg' for i in range(6)],
    'clean_val': [f'images/1/v{i}.jpg' for i in range(2)],
    'clean_test': [f'images/1/e{i}.jpg' for i in range(2)]}
_LINES = {
    'category_names_eng.txt': ['Shirt', 'Dress'],
    **{f'{split}_key_list.txt': keys for split, keys in _IMAGES.items()},
    'noisy_label_kv.txt': [
        f'{key} {i % 2}' for i, key in enumerate(_IMAGES['noisy_train'])],
    'clean_label_kv.txt': [
        f'{key} {i % 2}' for split in ('clean_val', 'clean_test')
        for i, key in enumerate(_IMAGES[split])]}
_JPEG = np.zeros((8, 8, 3), np.uint8)


def _clothing(name, says, *makers, **lists):
  """A case of lists, of which some are replaced."""
  lines = {**_LINES, **{f'{key}.txt': value for key, value in lists.items()}}
  return program(
      name, 'natural_noise --dataset=clothing1m --data_dir=. --offline '
      '--model=mlp --model_arguments= --per_class=1 --methods=CE --epochs=1',
      says, *[picture(f'clothing1m/{key}', _JPEG)
              for keys in _IMAGES.values() for key in keys],
      *[csv(f'clothing1m/{file}', *content)
        for file, content in lines.items()], *makers)


_TRAIN = _IMAGES['noisy_train']
_NOISY = _LINES['noisy_label_kv.txt']
_CLOTHING = [
    _clothing('An image with two labels in a list', r'noisy_label_kv.*t0\.jpg',
              noisy_label_kv=[*_NOISY, f'{_TRAIN[0]} 1']),
    _clothing('An image with two labels under two names',
              r'noisy_label_kv.*t0\.jpg', noisy_label_kv=[
                  *_NOISY, 'images/./0/t0.jpg 1']),
    _clothing('A list of training images that is empty',
              r'noisy_train_key_list.* empty', raw(
                  'clothing1m/noisy_train_key_list.txt', '')),
    _clothing('A list of test images that is empty',
              r'clean_test_key_list.* empty', raw(
                  'clothing1m/clean_test_key_list.txt', '')),
    _clothing('A list of classes that is empty', r'category_names_eng.* empty',
              raw('clothing1m/category_names_eng.txt', '')),
    _clothing('A class that is listed twice', r'category_names_eng.*Shirt',
              category_names_eng=['Shirt', 'Shirt']),
    _clothing('A test image in the training list', r'e0\.jpg',
              noisy_train_key_list=[*_TRAIN, _IMAGES['clean_test'][0]],
              noisy_label_kv=[*_NOISY, f'{_IMAGES["clean_test"][0]} 1']),
    _clothing('A test image in the training list by another name', r'e0\.jpg',
              noisy_train_key_list=[*_TRAIN, 'images/0/../1/e0.jpg'],
              noisy_label_kv=[*_NOISY, 'images/0/../1/e0.jpg 1']),
    _clothing('A validation image among the tests', r'v0\.jpg',
              clean_test_key_list=_IMAGES['clean_val'],),
    _clothing('A list that leaves its folder', r'\.\./secret\.jpg',
              picture('secret.jpg', _JPEG),
              noisy_train_key_list=[*_TRAIN, '../secret.jpg'],
              noisy_label_kv=[*_NOISY, '../secret.jpg 1']),
    _clothing('A list with absolute paths', r'/etc/passwd',
              noisy_train_key_list=[*_TRAIN, '/etc/passwd'],
              noisy_label_kv=[*_NOISY, '/etc/passwd 1']),
    _clothing('A label beyond the classes in a list', r'line 7.*t0\.jpg 9',
              noisy_label_kv=[*_NOISY, f'{_TRAIN[0]} 9']),
    _clothing('A label in Arabic digits', r'line 7', noisy_label_kv=[
        *_NOISY, 'images/0/t9.jpg ١']),
    _clothing('A label of 5,000 digits in a list', r'line 7', noisy_label_kv=[
        *_NOISY, f'images/0/t9.jpg {"9" * 5000}']),
    _clothing('An image of a list without a label', r't5\.jpg',
              noisy_label_kv=_NOISY[:-1]),
    _clothing('An image of a list that is missing', r't9\.jpg',
              noisy_train_key_list=[*_TRAIN, 'images/0/t9.jpg'],
              noisy_label_kv=[*_NOISY, 'images/0/t9.jpg 0']),
    _clothing('A list that is no text', r'noisy_label_kv', raw(
        'clothing1m/noisy_label_kv.txt', bytes(range(128, 256)))),
    program('A list that is a pipe', 'natural_noise --dataset=clothing1m '
            '--data_dir=. --offline', r'noisy_label_kv', *[
                csv(f'clothing1m/{file}', *lines)
                for file, lines in _LINES.items() if 'noisy_l' not in file],
            cases.pipe('clothing1m/noisy_label_kv.txt')),
    program('Clothing1M that is not there', 'natural_noise '
            '--dataset=clothing1m --data_dir=. --offline',
            r'clothing1m needs clothing1m/'),
]


def _nested():
  """A pickle of 287 bytes that unpickles to 2^64 references."""
  content = b'\x80\x04]\x94.'
  lists = b''.join(b'](h' + bytes([i]) + b'h' + bytes([i]) + b'e\x94'
                   for i in range(30))
  return content[:-1] + lists + b'.'


def _label_file(name, content):
  def write():
    cases.folder('cifar_n')()
    with zipfile.ZipFile(f'cifar_n/{name}', 'w') as archive:
      archive.writestr('archive/data.pkl', content)
  return write


def _read_labels():
  from experiments import data
  from experiments.data import cifar_n
  zeros = np.zeros(9, int)
  examples = data.Examples(np.zeros([9, 1]), zeros, zeros, np.arange(9))
  cifar_n.read_labels(
      'cifar10n', pathlib.Path('cifar_n/CIFAR-10_human.pt'), examples)


def _labels(name, says, *makers):
  return call(name, _read_labels, says, *makers)


_NOT_PUBLISHED = r'CIFAR-10_human\.pt is not the published file'
_HUMAN = [
    _labels('Human labels of nested lists', _NOT_PUBLISHED, _label_file(
        'CIFAR-10_human.pt', _nested())),
    _labels('Human labels that are a program', _NOT_PUBLISHED, _label_file(
        'CIFAR-10_human.pt', b'cos\nmkdir\n(S"trap"\ntR.')),
    _labels('Human labels of other numbers', _NOT_PUBLISHED, _label_file(
        'CIFAR-10_human.pt', pickle.dumps({'clean_label': [0]}))),
    _labels('Human labels that are empty', _NOT_PUBLISHED, raw(
        'cifar_n/CIFAR-10_human.pt', b'')),
    _labels('Human labels in a pipe', r'CIFAR-10_human\.pt', cases.pipe(
        'cifar_n/CIFAR-10_human.pt')),
    _flag('A prepared data set that is damaged', '--dataset=mnist --data_dir=. '
          '--offline', r'mnist/3\.0\.1 is damaged', makers=[
              raw('mnist/3.0.1/dataset_info.json', '{')]),
    program('Human labels that are not there', 'natural_noise '
            '--dataset=cifar10n --data_dir=. --offline',
            r'cifar_n/CIFAR-10_human\.pt'),
]

_PROVENANCE = {
    'images': 'cifar10', 'backbone': 'b', 'digest': 'd', 'num_features': 2,
    'examples': {'train': 20, 'test': 10}}
_PLACE = 'features/cifar10'


def _features(name, says, *makers, **changes):
  """A case of computed features, of which something is replaced."""
  arrays = {
      'train': np.ones([20, 2], np.float16),
      'test': np.ones([10, 2], np.float16),
      'train-labels': np.stack([np.arange(20) % 10, np.arange(20)]),
      'test-labels': np.stack([np.arange(10), np.arange(10)])}
  provenance = {**_PROVENANCE, **changes}
  return program(
      name, 'synthetic_noise --dataset=cifar10_features --data_dir=. '
      '--offline --methods=CE --noise=none --epochs=1', says, *[
          npy(f'{_PLACE}/{file}.npy', array)
          for file, array in arrays.items()],
      raw(f'{_PLACE}/provenance.json', json.dumps(provenance)), *makers)


_FEATURES = [
    _features('Features of unknown origin', r'provenance', raw(
        f'{_PLACE}/provenance.json', '{')),
    _features('Features whose origin is a list', r'provenance', raw(
        f'{_PLACE}/provenance.json', '[1]')),
    _features('Features whose origin is nested brackets', r'provenance', raw(
        f'{_PLACE}/provenance.json', '[' * 100_000)),
    _features('Features whose origin is endless', r'provenance',
              cases.sparse(f'{_PLACE}/provenance.json', 2**40)),
    _features('Features whose origin lacks a digest', r'provenance.*digest',
              raw(f'{_PLACE}/provenance.json', json.dumps({
                  key: value for key, value in _PROVENANCE.items()
                  if key != 'digest'}))),
    _features('Features of other images', r'zebra', images='zebra'),
    _features('Fewer features than there were', r'train has.*\(20, 2\)',
              examples={'train': 30, 'test': 10}),
    _features('Features that are no array', r'train is damaged', raw(
        f'{_PLACE}/train.npy', b'')),
    _features('Features that are pickled', r'train is damaged', npy(
        f'{_PLACE}/train.npy', np.array([[1, 'a']] * 20, object))),
    _features('Features that are words', r'train must be numbers', npy(
        f'{_PLACE}/train.npy', np.full([20, 2], 'a'))),
    _features('Features that claim terabytes', r'train is damaged',
              cases.header(
                  f'{_PLACE}/train.npy', "{'descr': '<f2', 'fortran_order': "
                  "False, 'shape': (1000000000000, 2), }")),
    _features('Computed features that are NaN', r'row 0 of train', npy(
        f'{_PLACE}/train.npy', np.full([20, 2], np.nan))),
    _features('Labels of features beyond the classes', r'label.*99', npy(
        f'{_PLACE}/train-labels.npy', np.stack([
            np.full(20, 99), np.arange(20)]))),
    _features('Labels of features of one row', r'train', npy(
        f'{_PLACE}/train-labels.npy', np.arange(20))),
    _features('Labels of features that are fractions', r'train', npy(
        f'{_PLACE}/train-labels.npy', np.full([2, 20], .5))),
    _features('Ids of features that repeat', r'ids', npy(
        f'{_PLACE}/train-labels.npy', np.zeros([2, 20], int))),
    _features('A pipe among the features', r'train', lambda: os.remove(
        f'{_PLACE}/train.npy'), cases.pipe(f'{_PLACE}/train.npy')),
    program('Features that are not there', 'synthetic_noise '
            '--dataset=cifar10_features --data_dir=. --offline --methods=CE '
            '--noise=none', r'features/cifar10, which is missing'),
]

CASES = (*_FLAGS, *_CLOTHING, *_HUMAN, *_FEATURES)

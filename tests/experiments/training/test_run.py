"""Runs: what they refuse, and when two are the same."""

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest

from experiments import training
from experiments.training import runs


def test_defaults_are_the_digits_recipe():
  run = training.Run()
  assert (run.dataset, run.model, run.optimizer) == ('digits', 'mlp', 'adam')
  assert (run.learning_rate, run.batch_size, run.epochs) == (1e-3, 64, 100)


def test_runs_written_differently_have_one_key():
  run = training.Run(
      hyperparameters={'temperature': 1., 'min_scale': .5}, noise='sym:0.4')
  other = training.Run(
      hyperparameters=(('temperature', 1),), noise='sym:.40')
  assert run == other
  assert run.key == other.key


@pytest.mark.parametrize('one, other', [
    (dict(model_arguments={'widths': [256, 256]}), {}),
    (dict(model='wide_resnet', model_arguments={'depth': 28, 'width': 2}),
     dict(model='wide_resnet')),
    (dict(model='wide_resnet', model_arguments={'width': 4.}),
     dict(model='wide_resnet', model_arguments={'width': 4})),
    (dict(model_arguments={'widths': (8., 8)}),
     dict(model_arguments={'widths': [8, 8]})),
    (dict(noise='sym:0'), dict(noise='none')),
    (dict(jit=1), dict(jit=True)),
    (dict(options={'weight_decay': 0}), dict(options={'weight_decay': 0.})),
    (dict(learning_rate=1), dict(learning_rate=1.)),
    (dict(seed=np.int64(3), options={'pad': np.int64(4)},
          model_arguments={'widths': np.array([8, 8])},
          hyperparameters={'temperature': np.float32(2.)}),
     dict(seed=3, options={'pad': 4}, model_arguments={'widths': [8, 8]},
          hyperparameters={'temperature': 2})),
    (dict(model='wide_resnet', model_arguments={'width': np.int64(4)}),
     dict(model='wide_resnet', model_arguments={'width': 4})),
])
def test_equal_runs_have_equal_keys(one, other):
  one, other = training.Run(**one), training.Run(**other)
  assert one == other
  assert one.key == other.key
  assert json.dumps(one.to_dict()) == json.dumps(other.to_dict())


@pytest.mark.parametrize('change', [
    dict(dataset='digits_n'), dict(method='CE'), dict(noise='sym:0.3'),
    dict(hyperparameters={'temperature': .7}), dict(seed=1),
    dict(model='lenet5'), dict(model_arguments={'widths': [8, 8]}),
    dict(optimizer='gd'), dict(learning_rate=2e-3), dict(weight_decay=1e-4),
    dict(batch_size=None), dict(per_class=3), dict(epochs=7), dict(jit=True),
    dict(mixed_precision=True), dict(protocol='authors'),
    dict(options={'pad': 4}),
])
def test_every_setting_changes_the_key(change):
  assert training.Run(**change).key != training.Run().key


def test_keys_never_change():
  run = training.Run(noise='sym:0.4', method='CE', seed=3)
  assert run.key == 'digits-sym0.4-CE-seed3-d292d4602a9b'


def test_a_setting_added_later_does_not_change_old_keys():
  later = dataclasses.make_dataclass(
      'Later', [('extra', str, dataclasses.field(default='off'))],
      bases=(runs.Run,), frozen=True)
  assert later(seed=5).key == training.Run(seed=5).key
  assert later(seed=5, extra='on').key != training.Run(seed=5).key


def test_run_survives_json():
  run = training.Run(
      model_arguments={'widths': (8, 8)}, hyperparameters={'min_scale': .1},
      options={'pad': 4})
  document = json.loads(json.dumps(run.to_dict()))
  assert training.Run.from_dict(document) == run
  assert hash(training.Run.from_dict(document)) == hash(run)


@pytest.mark.parametrize('change, word', [
    (dict(method='XY'), 'name'),
    (dict(hyperparameters={'q': .5}), 'q'),
    (dict(hyperparameters={'temperature': -1.}), 'temperature'),
    (dict(method='Forward', hyperparameters={'transition': [[1.]]}),
     'transition'),
    (dict(noise='sym:-0.1'), 'noise'),
    (dict(noise='sym:1.5'), 'noise'),
    (dict(noise='salt'), 'noise'),
    (dict(noise='matrix'), 'noise'),
    (dict(epochs=0), 'epochs'),
    (dict(epochs=1.5), 'epochs'),
    (dict(seed=-1), 'seed'),
    (dict(batch_size=0), 'batch_size'),
    (dict(per_class=0), 'per_class'),
    (dict(optimizer='lbfgs'), 'optimizer'),
    (dict(learning_rate=0.), 'learning_rate'),
    (dict(learning_rate=float('nan')), 'learning_rate'),
    (dict(weight_decay=-1e-4), 'weight_decay'),
    (dict(protocol='mine'), 'protocol'),
    (dict(options={'padding': 4}), 'options'),
    (dict(options={'pad': -1}), 'pad'),
    (dict(options={'noise_mode': 'some'}), 'noise_mode'),
    (dict(model='vgg'), 'vgg'),
    (dict(model_arguments={'depth': 28}), 'depth'),
])
def test_wrong_settings_are_refused_by_name(change, word):
  with pytest.raises(ValueError, match=word):
    training.Run(**change)


def test_forward_needs_the_ce_run_of_its_seed_and_noise():
  run = training.Run(
      method='Forward', hyperparameters={'estimate_from': 'best'},
      noise='asym:0.3', seed=2, epochs=5)
  expected = training.Run(method='CE', noise='asym:0.3', seed=2, epochs=5)
  assert run.prerequisites() == (expected,)
  assert expected.prerequisites() == ()


def test_what_flags_need_is_imported_without_tensorflow():
  # Flags are parsed, and results read, before TensorFlow is imported.
  program = (
      'import sys\n'
      'from experiments import data, methods, models, training\n'
      'data.NAMES, data.MissingDataError, data.traits("digits")\n'
      'methods.NAMES, methods.get("CE").requires()\n'
      'models.arguments("resnet50", {}), models.arguments("mlp", {})\n'
      'training.Run, training.Options, training.read_result\n'
      'training.Result, training.BadClusterError\n'
      'print([name for name in ("tensorflow", "keras", "ln_tfp")\n'
      '       if name in sys.modules])')
  output = subprocess.run(
      [sys.executable, '-c', program], check=True, capture_output=True,
      text=True).stdout
  assert output.strip() == '[]'

"""What a run trains, validates and tests on."""

import dataclasses

import numpy as np

from experiments import data
from experiments import training
from tests.experiments.training import tiny


def test_train_and_validation_are_corrupted_and_test_is_not():
  source = tiny.source(num_train=1000)
  splits = training.load_splits(tiny.run(noise='sym:0.6'), source=source)
  for split in (splits.train, splits.validation):
    assert .25 < split.is_noisy.mean() < .55  # 0.6 * 2/3 expected
  assert not splits.test.is_noisy.any()
  assert len(splits.validation) == 100


def test_validation_depends_on_ids_alone():
  source = tiny.source()
  first = training.load_splits(tiny.run(seed=0), source=source)
  for other in (tiny.run(seed=1), tiny.run(noise='none'),
                tiny.run(method='LN')):
    splits = training.load_splits(other, source=source)
    np.testing.assert_array_equal(splits.validation.ids, first.validation.ids)
    np.testing.assert_array_equal(splits.test.ids, first.test.ids)


def test_noise_is_the_same_for_every_method_at_one_seed():
  source = tiny.source()
  given = lambda **settings: training.load_splits(
      tiny.run(**settings), source=source).train.given
  np.testing.assert_array_equal(given(), given(method='LN', epochs=9))
  assert np.any(given() != given(seed=1))


def test_a_source_with_its_own_validation_set_is_not_cut():
  source = tiny.source()
  own = dataclasses.replace(source, validation=source.test)
  splits = training.load_splits(tiny.run(noise='none'), source=own)
  assert len(splits.train) == 100
  assert len(splits.validation) == 37


def test_options_reach_noise_split_and_padding():
  source = tiny.source(1000, preprocessing=data.Preprocessing(pad=2))
  coin, exact = (
      training.load_splits(
          tiny.run(options={'pad': 4, 'noise_mode': mode}, noise='sym:0.4'),
          source=source)
      for mode in ('coin', 'exact'))
  assert exact.preprocessing.pad == 4
  assert np.any(coin.train.given != exact.train.given)

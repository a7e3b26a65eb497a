"""Checkpoints: whole, or not used."""

import os

import numpy as np
import pytest

from experiments.training import store as store_lib


def _state(value):
  return store_lib.State(
      {'model/dense/kernel': np.full([2, 3], value, np.float32),
       'optimizer/iteration': np.array(value, np.int64)},
      {'history': {'loss': [.1, 1 / 3]}, 'epoch_seconds': [1e-7]})


def _load(store):
  return store_lib.State.from_bytes(store.latest())


def test_state_comes_back_bit_by_bit(tmp_path):
  store = store_lib.Checkpoints(tmp_path / 'run')
  assert store.latest() is None
  store.save(1, _state(7))
  state = _load(store)
  assert state.records == _state(7).records
  for name, array in _state(7).arrays.items():
    assert state.arrays[name].dtype == array.dtype
    np.testing.assert_array_equal(state.arrays[name], array)


def test_equal_states_give_equal_bytes():
  assert _state(3).to_bytes() == _state(3).to_bytes()
  assert _state(3).to_bytes() != _state(4).to_bytes()


def test_the_last_two_are_kept(tmp_path):
  store = store_lib.Checkpoints(tmp_path)
  for epoch in range(1, 6):
    store.save(epoch, _state(epoch))
  names = sorted(file.name for file in tmp_path.iterdir())
  assert names == ['epoch-000004.ckpt', 'epoch-000005.ckpt']


def _cut(content):
  return content[:len(content) // 2]


def _flip(content):
  middle = len(content) // 2
  return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1:]


@pytest.mark.parametrize('damage', [_cut, _flip, lambda content: b''])
def test_a_damaged_checkpoint_is_passed_over(tmp_path, damage):
  store = store_lib.Checkpoints(tmp_path)
  store.save(1, _state(1))
  store.save(2, _state(2))
  last = tmp_path / 'epoch-000002.ckpt'
  last.write_bytes(damage(last.read_bytes()))
  assert _load(store).arrays['optimizer/iteration'] == 1


@pytest.mark.parametrize('make', [
    os.mkfifo, os.mkdir, lambda file: os.symlink('/dev/zero', file)])
def test_what_is_no_file_is_no_checkpoint(tmp_path, make):
  store = store_lib.Checkpoints(tmp_path)
  store.save(1, _state(1))
  make(tmp_path / 'epoch-000002.ckpt')
  assert _load(store).arrays['optimizer/iteration'] == 1


def test_a_write_that_fails_leaves_the_old_checkpoint(tmp_path, monkeypatch):
  store = store_lib.Checkpoints(tmp_path)
  store.save(1, _state(1))

  def fail(descriptor):
    raise OSError('no space left')

  monkeypatch.setattr('os.fsync', fail)
  with pytest.raises(OSError, match='no space'):
    store.save(1, _state(2))
  assert _load(store).arrays['optimizer/iteration'] == 1
  assert len(list(tmp_path.iterdir())) == 1


def test_remove_leaves_nothing(tmp_path):
  store = store_lib.Checkpoints(tmp_path / 'run')
  store.save(1, _state(1))
  store.remove()
  assert store.latest() is None
  assert not (tmp_path / 'run').exists()

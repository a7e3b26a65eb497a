"""A run in its own process, killed at any moment."""

import signal
import time

import pytest

from experiments import training
from experiments.training import store as store_lib
from tests import forks

_SECONDS = 300
_STATEFUL = ('ELR', 'SOP', 'mixup', 'co-teaching', 'GJS', 'SGN')


def _train(run, output_dir):
  return training.train(
      run, output_dir=output_dir, strategy='one', keep_weights=True)


def _epochs(directory):
  """The last epoch with a checkpoint."""
  files = sorted(directory.glob('epoch-*.ckpt'))
  return int(files[-1].stem.removeprefix('epoch-')) if files else 0


def _kill_after(process, directory, epoch):
  """Sends SIGKILL as soon as an epoch is there; returns the recorded times."""
  deadline = time.monotonic() + _SECONDS
  while _epochs(directory) < epoch:
    assert process.poll() is None, 'the process ended before it was killed'
    assert time.monotonic() < deadline
    time.sleep(.002)
  process.kill()
  assert process.wait() == -signal.SIGKILL
  state = store_lib.State.from_bytes(
      store_lib.Checkpoints(directory).latest())
  return state.records['epoch_seconds']


@pytest.mark.slow
@pytest.mark.parametrize('method', ['NAN', *(
    pytest.param(name, marks=pytest.mark.thorough) for name in _STATEFUL)])
def test_a_run_killed_twice_ends_bit_identical_to_a_whole_one(
    tmp_path, method):
  whole, broken = tmp_path / 'whole', tmp_path / 'broken'
  epochs = 25 if method == 'NAN' else 150  # long enough to be killed twice
  run = training.Run(method=method, noise='sym:0.4', epochs=epochs)
  expected = _train(run, whole)
  times = []
  for epoch in (3, 12):
    before = times
    times = _kill_after(
        forks.Fork(_train, run, broken), broken / 'checkpoints' / run.key,
        epoch)
    assert times[:len(before)] == before, 'it began again'
    assert not (broken / f'{run.key}.json').exists()
  assert forks.Fork(_train, run, broken).wait(_SECONDS) == 0
  result = training.read_result(broken / f'{run.key}.json')
  assert result.seconds['epochs'][:len(times)] == times
  assert result.metrics == expected.metrics
  assert result.history == expected.history
  assert result.weights == expected.weights
  name = result.weights['file']
  assert (whole / name).read_bytes() == (broken / name).read_bytes()
  assert not (broken / 'checkpoints' / run.key).exists()

"""Which devices a sweep takes, decided on machines that are made up."""

import gc
import os
import pathlib
import re
import resource
import stat
import subprocess
import sys

from absl.testing import flagsaver
import pytest

from experiments import embed
from experiments import gp_classification
from experiments import many_classes
from experiments import synthetic_noise
from experiments.cli import app
from experiments.sweep import launch
from experiments.sweep import machine
from experiments.sweep import pool as pool_lib
from experiments.sweep import worker
from tests.experiments.programs import calling

_TENSORFLOW = """
import os
class experimental:
  def get_device_details(gpu):
    return {'device_name': gpu}
class config:
  experimental = experimental
  def list_physical_devices(kind):
    names = os.environ['FAKE_GPUS'].split(',')
    seen = os.environ.get('CUDA_VISIBLE_DEVICES')
    if seen is not None:
      names = [names[int(i)] for i in seen.split(',') if int(i) >= 0]
    return [name for name in names if name]
"""


@pytest.fixture(autouse=True)
def _nothing_is_hidden_afterwards(monkeypatch):
  machine.show_gpus()
  monkeypatch.delenv('CUDA_VISIBLE_DEVICES', raising=False)
  probe = machine._probe
  probe.cache_clear()
  with flagsaver.flagsaver():
    yield
  machine.show_gpus()
  probe.cache_clear()


@pytest.fixture(name='gpus')
def _gpus(tmp_path, monkeypatch):
  """A machine with `nvidia-smi`, whose TensorFlow sees the GPUs we name."""
  smi = tmp_path / 'bin' / 'nvidia-smi'
  smi.parent.mkdir()
  smi.write_text('#!/bin/sh\n')
  smi.chmod(smi.stat().st_mode | stat.S_IXUSR)
  (tmp_path / 'fake' / 'tensorflow').mkdir(parents=True)
  (tmp_path / 'fake' / 'tensorflow' / '__init__.py').write_text(_TENSORFLOW)
  monkeypatch.setenv('PATH', f'{smi.parent}:{os.environ["PATH"]}')
  monkeypatch.setenv('PYTHONPATH', str(tmp_path / 'fake'))

  def see(*names):
    monkeypatch.setenv('FAKE_GPUS', ','.join(names))

  return see


@pytest.fixture(name='no_sign')
def _no_sign(monkeypatch):
  monkeypatch.setattr(machine, 'sign_of_gpu', lambda: '')


def test_without_a_sign_of_a_gpu_nobody_looks_for_one(no_sign, monkeypatch):
  monkeypatch.setattr(machine, '_probe', lambda *unused: pytest.fail())
  assert machine.gpu_ids() == []
  assert machine.trains_on() == f'{machine.cores()} CPU cores'.replace(
      '1 CPU cores', '1 CPU core')
  assert machine.warning() == ''


def test_gpus_are_named_and_shared_out(gpus):
  gpus('NVIDIA A100', 'NVIDIA A100')
  assert machine.gpu_ids() == ['0', '1']
  assert machine.trains_on() == '2 GPUs: NVIDIA A100'
  assert machine.warning() == ''


def test_different_gpus_are_counted(gpus):
  gpus('A100', 'T4', 'T4')
  assert machine.trains_on() == '3 GPUs: 1 x A100, 2 x T4'


def test_a_gpu_that_tensorflow_does_not_see_is_a_warning(gpus):
  gpus('')
  assert machine.gpu_ids() == []
  assert 'CPU core' in machine.trains_on()
  assert 'nvidia-smi' in machine.warning()
  assert 'tensorflow[and-cuda]==' in machine.warning()


def test_a_device_file_is_a_sign_too(monkeypatch):
  monkeypatch.setattr(machine.shutil, 'which', lambda name: None)
  monkeypatch.setattr(
      machine.glob, 'glob', lambda pattern: ['/dev/nvidia0'])
  assert machine.sign_of_gpu() == '/dev/nvidia0'


@pytest.mark.parametrize('value', ['', '-1'])
def test_who_hides_the_gpus_himself_is_not_warned(gpus, monkeypatch, value):
  gpus('A100')
  monkeypatch.setenv('CUDA_VISIBLE_DEVICES', value)
  assert machine.gpu_ids() == []
  assert machine.warning() == ''


def test_the_users_choice_of_gpus_is_kept(gpus, monkeypatch):
  gpus('A100', 'T4', 'L4')
  monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '2,1')
  machine.hide_gpus()
  assert machine.gpu_ids() == ['2', '1']
  assert machine.gpu_names() == ['L4', 'T4']
  assert os.environ['CUDA_VISIBLE_DEVICES'] == '-1'


def test_a_driver_sees_no_gpu_and_its_workers_do(gpus):
  gpus('A100', 'T4')
  machine.hide_gpus()
  look = 'import os; print(os.environ.get("CUDA_VISIBLE_DEVICES"))'
  here = subprocess.check_output([sys.executable, '-c', look], text=True)
  there = subprocess.check_output(
      [sys.executable, '-c', look], text=True, env=machine.environment())
  assert (here, there) == ('-1\n', 'None\n')
  pool = pool_lib.Pool(3, machine.gpu_ids())
  assert [pool._environment(index)['CUDA_VISIBLE_DEVICES']
          for index in range(3)] == ['0', '1', '0']
  pool.close()


@pytest.mark.parametrize('computes, flags, hidden', [
    (False, {}, True), (True, {}, False),
    (False, {'in_process': True}, False),
    (False, {'strategy': 'multi_worker'}, False),
    (False, {'strategy': 'mirrored'}, True)])
def test_gpus_are_hidden_from_processes_that_do_not_train(
    computes, flags, hidden):
  app.FLAGS(['program'])
  for name, value in flags.items():
    setattr(app.FLAGS, name, value)
  launch.choose_devices(computes)
  assert (os.environ.get('CUDA_VISIBLE_DEVICES') == '-1') == hidden


@pytest.mark.parametrize(
    'program', [embed, gp_classification, many_classes])
def test_programs_that_train_themselves_see_the_gpus(program):
  source = pathlib.Path(program.__file__).read_text(encoding='utf-8')
  assert 'app.start(main, computes=True' in source


def test_no_more_processes_than_the_memory_has_room_for(monkeypatch):
  monkeypatch.setattr(machine, 'cores', lambda: 64)
  for available, slots in ((5 * 2**30, 5), (2**20, 1), (None, 64)):
    monkeypatch.setattr(
        machine, 'available_bytes', lambda size=available: size)
    pool = pool_lib.Pool()
    assert pool.slots == slots
    pool.close()
    pool = pool_lib.Pool(7)  # whoever says a number means it
    assert pool.slots == 7
    pool.close()


def test_cores_are_counted_where_there_is_no_affinity(monkeypatch):
  monkeypatch.delattr(os, 'sched_getaffinity')
  assert machine.cores() == os.cpu_count()


@pytest.mark.slow
def test_growth_counts_from_the_first_run_on(monkeypatch):
  sizes = iter([1000, 1050, 900, 1100, 1101])
  monkeypatch.setattr(machine, 'resident_bytes', lambda: next(sizes))
  growth = worker.Growth()
  try:
    assert [growth.exceeds(100) for _ in range(5)] == [False] * 4 + [True]
  finally:
    gc.unfreeze()


def test_the_memory_of_a_process_is_known():
  assert 2**22 < machine.resident_bytes() < 2**40
  assert machine.available_bytes() > 2**20


@pytest.mark.parametrize('platform, unit', [('darwin', 1), ('linux', 1024)])
def test_without_proc_and_sys_all_is_known_that_is_needed(
    monkeypatch, platform, unit):
  def absent(path, *unused_arguments, **unused_options):
    raise FileNotFoundError(path)

  monkeypatch.setattr(pathlib.Path, 'read_text', absent)
  monkeypatch.setattr(sys, 'platform', platform)
  monkeypatch.delattr(os, 'sched_getaffinity', raising=False)
  peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
  assert peak <= machine.resident_bytes() <= 1.1 * peak
  assert machine.available_bytes() > 2**20
  assert machine.cores() >= 1


@pytest.mark.parametrize('there, first, second', [
    (('A100', 'A100'), 'Trains on 2 GPUs: A100.', r'0 runs finished before'),
    (('',), r'Trains on \d+ CPU cores?\.', 'Warning: nvidia-smi says')])
def test_the_first_line_says_on_what_runs_are_trained(
    gpus, tmp_path, monkeypatch, there, first, second):
  gpus(*there)
  real = pool_lib.Pool
  monkeypatch.setattr(
      launch.pool_lib, 'Pool', lambda jobs, gpus: real(
          jobs, gpus, module='tests.experiments.sweep.fake_worker'))
  monkeypatch.setattr(launch, '_prepare', lambda runs: None)
  monkeypatch.setenv('PYTHONPATH', os.environ['PYTHONPATH'])
  arguments = [f'--output_dir={tmp_path}/out', '--methods=CE',
               '--noise=none', '--epochs=2', '--jobs=1']
  # The stand-in for TensorFlow is for the probe alone.
  names = machine.gpu_names()
  monkeypatch.setattr(machine, 'gpu_names', lambda: names)
  monkeypatch.delenv('PYTHONPATH')
  status, _, errors = calling.call(synthetic_noise, *arguments)
  assert status == 0, errors
  assert re.fullmatch(first, errors.splitlines()[0])
  assert errors.splitlines()[1].startswith(second)


@pytest.mark.parametrize('there, asked, taken', [
    (4., None, 1.), (0., None, 0.), (4., 0., 0.), (4., .5, .5)])
def test_ray_gives_a_run_a_gpu_where_the_cluster_has_any(
    there, asked, taken, monkeypatch):
  ray_pool = pytest.importorskip('experiments.sweep.ray_pool')
  options = {}
  connected = []

  def connect(address, runtime, temporary):
    del address, runtime, temporary
    connected.append(os.environ.get('CUDA_VISIBLE_DEVICES'))

  def remote(**arguments):
    options.update(arguments)
    return lambda function: function

  monkeypatch.setattr(ray_pool, '_connect', connect)
  monkeypatch.setattr(ray_pool.ray, 'remote', remote)
  monkeypatch.setattr(
      ray_pool.ray, 'cluster_resources', lambda: {'GPU': there, 'CPU': 8.})
  machine.hide_gpus()
  pool = ray_pool.Pool('auto', 2., asked)
  assert connected == [None]  # a cluster of this machine counts its GPUs
  assert pool.gpus_per_run == options['num_gpus'] == taken
  hidden = options['runtime_env']['env_vars'].get('CUDA_VISIBLE_DEVICES')
  assert hidden == (None if taken else '-1')
  assert ('4 GPUs' in pool.trains_on()) == bool(taken)

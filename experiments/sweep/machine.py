"""What this machine has, found out without TensorFlow in this process.

A process that does not train hides the GPUs from its own TensorFlow, which
would otherwise take their memory; the workers see them again.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator
import contextlib
import functools
import glob
from importlib import metadata
import json
import os
import pathlib
import shutil
import subprocess
import sys

_VISIBLE = 'CUDA_VISIBLE_DEVICES'
_NONE = '-1'
_PROBE_SECONDS = 180.
_PROBE = """
import json
import tensorflow as tf
name = lambda gpu: tf.config.experimental.get_device_details(gpu).get(
    'device_name', 'unknown')
print(json.dumps([name(gpu) for gpu in tf.config.list_physical_devices('GPU')]))
"""
# The user's own setting, while ours hides the GPUs.
_hidden: list[str | None] = []


def cores() -> int:
  """The cores that this process may use."""
  if hasattr(os, 'sched_getaffinity'):  # not on macOS
    return len(os.sched_getaffinity(0))
  return os.cpu_count() or 1


def hide_gpus() -> None:
  """Hides the GPUs from this process, if TensorFlow is not there already."""
  if not _hidden:
    _hidden.append(os.environ.get(_VISIBLE))
    os.environ[_VISIBLE] = _NONE


def show_gpus() -> None:
  """Takes `hide_gpus` back."""
  if _hidden:
    value = _hidden.pop()
    if value is None:
      os.environ.pop(_VISIBLE, None)
    else:
      os.environ[_VISIBLE] = value


@contextlib.contextmanager
def gpus_shown() -> Iterator[None]:
  """What is started inside sees the GPUs that the user meant it to see."""
  was_hidden = bool(_hidden)
  show_gpus()
  try:
    yield
  finally:
    if was_hidden:
      hide_gpus()


def environment() -> dict[str, str]:
  """The variables of a process that trains."""
  with gpus_shown():
    return dict(os.environ)


def gpu_names() -> list[str]:
  """The GPUs that TensorFlow sees in a process that trains.

  A process of its own looks, and only where there is a sign of a GPU.
  """
  variables = environment()
  if not sign_of_gpu() or variables.get(_VISIBLE) in ('', _NONE):
    return []
  return list(_probe(tuple(sorted(variables.items()))))


def gpu_ids() -> list[str]:
  """The same GPUs, as `CUDA_VISIBLE_DEVICES` has them."""
  count = len(gpu_names())
  visible = environment().get(_VISIBLE)
  if visible:
    return visible.split(',')[:count]
  return [str(index) for index in range(count)]


def sign_of_gpu() -> str:
  """What says that there is a GPU, whether TensorFlow can use it or not."""
  if shutil.which('nvidia-smi'):
    return 'nvidia-smi'
  files = sorted(glob.glob('/dev/nvidia[0-9]*'))
  if files:
    return files[0]
  for package in ('tensorflow-metal', 'tensorflow-rocm'):
    with contextlib.suppress(metadata.PackageNotFoundError):
      metadata.version(package)
      return package
  return ''


@functools.lru_cache(maxsize=1)
def _probe(variables: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
  try:
    output = subprocess.run(
        [sys.executable, '-c', _PROBE], env=dict(variables), text=True,
        stdin=subprocess.DEVNULL, capture_output=True,
        timeout=_PROBE_SECONDS).stdout
    return tuple(json.loads(output.splitlines()[-1]))
  except (IndexError, OSError, ValueError, subprocess.TimeoutExpired):
    return ()


def trains_on() -> str:
  """On what runs are trained here: '2 CPU cores', '4 GPUs: NVIDIA A100'."""
  names = gpu_names()
  if not names:
    return _count(cores(), 'CPU core')
  kinds = collections.Counter(names)
  text = ', '.join(
      f'{count} x {name}' if len(kinds) > 1 else name
      for name, count in kinds.items())
  return f'{_count(len(names), "GPU")}: {text}'


def warning() -> str:
  """What to say where there is a GPU that TensorFlow does not see, or ''."""
  sign = sign_of_gpu()
  if not sign or gpu_names() or environment().get(_VISIBLE) in ('', _NONE):
    return ''
  return (f'Warning: {sign} says that this machine has a GPU, but TensorFlow '
          'sees none and trains on the CPU. '
          f"pip install 'tensorflow[and-cuda]=={metadata.version('tensorflow')}"
          "' brings what it needs (docs/scaling.md).")


def available_bytes() -> int | None:
  """Memory that new processes can take; None where nobody knows."""
  found = [_meminfo(), _cgroup()]
  with contextlib.suppress(AttributeError, OSError, ValueError):
    found.append(os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE'))
  return min((size for size in found if size is not None), default=None)


def _meminfo() -> int | None:
  with contextlib.suppress(OSError, ValueError, IndexError):
    for line in pathlib.Path('/proc/meminfo').read_text().splitlines():
      if line.startswith('MemAvailable:'):
        return 1024 * int(line.split()[1])
  return None


def _cgroup() -> int | None:
  """What the limit of a container or a SLURM job leaves."""
  folder = pathlib.Path('/sys/fs/cgroup')
  with contextlib.suppress(OSError, ValueError):
    used = int((folder / 'memory.current').read_text())
    return max(0, int((folder / 'memory.max').read_text()) - used)
  return None


def resident_bytes() -> int:
  """The memory of this process; its peak where the system tells no more."""
  with contextlib.suppress(OSError, ValueError, IndexError):
    pages = pathlib.Path('/proc/self/statm').read_text().split()[1]
    return int(pages) * os.sysconf('SC_PAGE_SIZE')
  import resource  # not on Windows
  peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
  return peak * (1 if sys.platform == 'darwin' else 1024)


def _count(number: int, noun: str) -> str:
  return f'{number} {noun}' + ('' if number == 1 else 's')

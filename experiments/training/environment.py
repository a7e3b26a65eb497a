"""With what a result was computed."""

from importlib import metadata
import pathlib
import platform
from typing import Any

import tensorflow as tf

from experiments.training import strategies

_PACKAGES = (
    'ln_tfp', 'tensorflow', 'keras', 'tensorflow-probability', 'numpy')


def versions() -> dict[str, str]:
  """Versions of Python and of the packages that compute."""
  found = {'python': platform.python_version()}
  for package in _PACKAGES:
    try:
      found[package] = metadata.version(package)
    except metadata.PackageNotFoundError:  # used from a checkout, or tf-nightly
      found[package] = 'unknown'
  return found


def device(strategy: tf.distribute.Strategy) -> dict[str, Any]:
  """Kind and name of the device, number of replicas and of workers."""
  gpus = tf.config.list_physical_devices('GPU')
  if gpus:
    details = tf.config.experimental.get_device_details(gpus[0])
    name = details.get('device_name', 'unknown')
  else:
    name = _processor()
  return {
      'kind': 'GPU' if gpus else 'CPU',
      'name': name,
      'replicas': strategy.num_replicas_in_sync,
      'workers': strategies.worker(strategy)[1],
  }


def _processor() -> str:
  information = pathlib.Path('/proc/cpuinfo')
  if information.exists():
    for line in information.read_text(encoding='utf-8').splitlines():
      if line.startswith('model name'):
        return line.partition(':')[2].strip()
  return platform.processor() or platform.machine()

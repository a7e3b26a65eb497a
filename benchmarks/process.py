"""The Logistic-Normal process: against scikit-learn's, and how it grows.

- N = 300, 1,000 and 3,000 against `GaussianProcessClassifier`, which searches
  the two hyperparameters of its kernel, but not at 3,000; digits, with jitter
  in copies.
- Time over N, F and K, streamed, the noise model and three rounds of
  relabelling included; memory over N.
- 50,000 rows of 1280 features, and the EM of 10,000 rows with K = 100.

Times are CPU seconds of one thread: a load beside them changes them little, and
idle cores take no longer. Takes about a quarter of an hour.
"""

from collections.abc import Sequence
import dataclasses
import os
import pathlib
import tempfile
import time

import numpy as np
from sklearn import datasets
from sklearn import gaussian_process
from sklearn.gaussian_process import kernels
import threadpoolctl

from benchmarks import memory
from benchmarks import timing
import ln_tfp
from ln_tfp.process import noise_model
from ln_tfp.process import votes as votes_lib

_BATCH = 10_000
_FEATURES = 1280
_ROWS = [1_000, 10_000, 100_000, 1_000_000]
_WIDTHS = [160, 320, 640, 1280]
_CLASSES = [10, 100, 1_000]


def make_stream(num_rows: int, num_features: int, num_classes: int):
  """Batches of embedding-like rows, with a third of the labels redrawn."""
  random = np.random.default_rng(0)
  centres = random.normal(size=[num_classes, num_features]).astype(np.float32)
  noise = random.normal(size=[_BATCH, num_features]).astype(np.float32)

  def batches():
    for start in range(0, num_rows, _BATCH):
      size = min(_BATCH, num_rows - start)
      order = np.random.default_rng(start)
      true = order.integers(num_classes, size=size)
      given = np.where(order.random(size) < 1 / 3, order.integers(
          num_classes, size=size), true)
      # The same numbers in another order of rows and columns.
      rest = np.roll(noise[order.permutation(_BATCH)[:size]], start // 7, 1)
      yield .12 * centres[true] + rest, given

  return batches


def fit_stream(num_rows: int, num_features: int, num_classes: int) -> None:
  """Fits, and reads the leave-one-out predictions part by part."""
  stream = make_stream(num_rows, num_features, num_classes)
  process = ln_tfp.LogisticNormalProcess('linear').fit(stream)
  for _ in process.leave_one_out_chunks(stream):
    pass


def fit_stream_timed(file: str, *size: int) -> None:
  """The same; writes its seconds to a file."""
  pathlib.Path(file).write_text(str(_seconds(fit_stream, *size)), 'utf-8')


def _seconds(function, *arguments) -> float:
  """CPU seconds of one thread."""
  with threadpoolctl.threadpool_limits(1):
    begin = time.process_time()
    function(*arguments)
    return time.process_time() - begin


def _seconds_and_memory(*size: int) -> tuple[float, float]:
  with tempfile.TemporaryDirectory() as directory:
    file = os.path.join(directory, 'seconds')
    rise = memory.rise(fit_stream_timed, file, *size)
    return float(pathlib.Path(file).read_text('utf-8')), rise


def make_digits(size: int) -> tuple[np.ndarray, np.ndarray]:
  """So many digits; all after the first 1,797 are copies with jitter."""
  x, y = datasets.load_digits(return_X_y=True)
  random = np.random.default_rng(0)
  rows = np.resize(random.permutation(len(x)), size)
  jitter = (np.arange(size) >= len(x))[:, np.newaxis]
  return x[rows] / 16. + .05 * jitter * random.normal(
      size=[size, x.shape[1]]), y[rows]


def measure_rivals(
    sizes: Sequence[int] = (300, 1_000, 3_000)) -> list[timing.Row]:
  """Against scikit-learn."""
  rows = []
  for size in sizes:
    x, y = make_digits(size)
    search = {'optimizer': None} if size == 3_000 else {}

    ours = ln_tfp.LogisticNormalProcess()
    theirs = gaussian_process.GaussianProcessClassifier(
        1. * kernels.RBF(2.), **search)
    ours.fit(x, y)  # imports
    times = {'process': [1e3 * _seconds(ours.fit, x, y)],
             'scikit-learn': [1e3 * _seconds(theirs.fit, x, y)]}
    rows.append(timing.ratio(
        f'process / GaussianProcessClassifier, N = {size:,}'
        f'{", without search" if search else ""}', times, 'process',
        'scikit-learn', '<= 0.05' if size == 1_000 else ''))
  return rows


def measure_growth() -> list[timing.Row]:
  """Exponents of time and memory."""
  by_rows, rises = zip(*(
      _seconds_and_memory(size, _FEATURES, 10) for size in _ROWS))
  by_width = [_seconds(fit_stream, 20_000, width, 10) for width in _WIDTHS]
  by_class = [_seconds(fit_stream, 20_000, 320, size) for size in _CLASSES]
  return [
      timing.slope('time of a fit over N, F = 1280, K = 10', _ROWS, by_rows,
                   's'),
      dataclasses.replace(timing.slope(
          'time of a fit over F, N = 20,000, K = 10', _WIDTHS, by_width,
          's'), goal='<= 3'),
      timing.slope('time of a fit over K, N = 20,000, F = 320', _CLASSES,
                   by_class, 's'),
      timing.slope('memory of a fit over N, F = 1280, K = 10', _ROWS, rises,
                   'MB'),
      timing.Row('MB of a fit to 1,000,000 x 1280, K = 10', rises[-1],
                 goal='<= 2000'),
      timing.Row('s of a fit to 1,000,000 x 1280, K = 10', by_rows[-1])]


def measure_embeddings(
    classes: Sequence[int] = (10, 100)) -> list[timing.Row]:
  """Embeddings in memory, seconds."""
  rows = []
  for num_classes in classes:
    parts = list(make_stream(50_000, _FEATURES, num_classes)())
    x, y = (np.concatenate(part) for part in zip(*parts))
    rows.append(timing.Row(
        f's of 50,000 x 1280, K = {num_classes}',
        _seconds(ln_tfp.LogisticNormalProcess().fit, x, y), goal='<= 30'))
  return rows


def measure_noise_model() -> list[timing.Row]:
  """The EM alone, seconds."""
  random = np.random.default_rng(0)
  size, num_classes = 10_000, 100
  true = random.integers(num_classes, size=size)
  loc = (.3 * np.eye(num_classes)[true] + .06 * random.normal(
      size=[size, num_classes])).astype(np.float32)
  given = np.where(random.random(size) < .4, (true + 1) % num_classes, true)
  votes = votes_lib.Votes(
      given[:, np.newaxis], num_classes, np.zeros(size, bool))
  weight = np.ones(size, np.float32)
  return [timing.Row(
      's of the EM, N = 10,000, K = 100', min(
          _seconds(noise_model.fit, loc, votes, weight) for _ in range(3)),
      n=3, goal='<= 3')]


def measure() -> list[timing.Row]:
  """All rows."""
  return (measure_rivals() + measure_embeddings() + measure_noise_model()
          + measure_growth())

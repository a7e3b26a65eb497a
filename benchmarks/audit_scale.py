"""A million labels of a thousand classes: time and memory of an audit.

    python -m benchmarks.audit_scale [--rows 100000 1000000]
        [--features=1280] [--classes=1000]

The features are generated batch by batch, the same at every pass, and never
held: a class is a direction in feature space, a tenth of the labels are drawn
anew. Seconds, by how much the peak of the process's memory rose, and what was
found. A tenth of the rows first, to see that memory does not grow with them
beyond the report itself.
"""

import argparse
import json
import pathlib
import tempfile
import time

import numpy as np

from benchmarks import memory
import ln_tfp
from ln_tfp import files
from ln_tfp import random
from ln_tfp.audit import closed_form

_BATCH = 4_096
_RESULTS = pathlib.Path(__file__).parent / 'audit_scale.json'


def stream(num_rows: int, num_features: int, num_classes: int):
  """Returns a function that starts a pass over `(x, y)`."""
  directions = np.random.default_rng(0).normal(
      size=(num_classes, num_features)).astype(np.float32)

  def begin():
    for start in range(0, num_rows, _BATCH):
      rows = np.arange(start, min(start + _BATCH, num_rows))
      generator = np.random.default_rng(start)
      x = generator.standard_normal(
          (len(rows), num_features), dtype=np.float32)
      true = random.integers(num_classes, 'true', rows)
      x += .35 * directions[true]
      yield x, labels(rows, num_classes)

  return begin


def labels(rows: np.ndarray, num_classes: int) -> np.ndarray:
  """Returns labels of which a tenth are drawn anew."""
  true = random.integers(num_classes, 'true', rows)
  return ln_tfp.noise.corrupt(
      true, 'sym:0.1', ids=rows, num_classes=num_classes)


def audit(
    num_rows: int, num_features: int, num_classes: int, path: str) -> None:
  """Audits, and writes what it took and found to a JSON file."""
  begin, begin_cpu = time.perf_counter(), time.process_time()
  report = ln_tfp.audit_features(
      stream(num_rows, num_features, num_classes),
      process=closed_form.default_process(num_classes, kernel='linear'))
  seconds = time.perf_counter() - begin
  cpu_seconds = time.process_time() - begin_cpu
  rows = np.arange(num_rows)
  wrong = labels(rows, num_classes) != random.integers(
      num_classes, 'true', rows)
  found = report.is_issue
  figures = {
      'rows': num_rows, 'features': num_features, 'classes': num_classes,
      'seconds': round(seconds, 1), 'cpu_seconds': round(cpu_seconds, 1),
      'precision': float(wrong[found].mean()) if found.any() else None,
      'recall': float(found[wrong].mean())}
  pathlib.Path(path).write_text(json.dumps(figures), encoding='utf-8')


def main() -> None:
  parser = argparse.ArgumentParser(
      prog='python -m benchmarks.audit_scale', description=__doc__,
      formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument('--rows', type=int, nargs='+',
                      default=[100_000, 1_000_000])
  parser.add_argument('--features', type=int, default=1_280)
  parser.add_argument('--classes', type=int, default=1_000)
  parser.add_argument('--results', type=pathlib.Path, default=_RESULTS)
  arguments = parser.parse_args()
  path = arguments.results
  results = (json.loads(path.read_text(encoding='utf-8'))
             if path.exists() else {})
  for rows in arguments.rows:
    with tempfile.TemporaryDirectory() as folder:
      found = pathlib.Path(folder) / 'found.json'
      megabytes = memory.rise(
          audit, rows, arguments.features, arguments.classes, str(found))
      figures = json.loads(found.read_text(encoding='utf-8'))
    figures['megabytes'] = round(megabytes)
    print(figures, flush=True)
    name = f'{rows} x {arguments.features}, {arguments.classes}'
    results[name] = figures
    files.write_atomically(path, json.dumps(results, indent=1).encode())


if __name__ == '__main__':
  main()

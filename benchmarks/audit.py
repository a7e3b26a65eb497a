"""Which finds wrong labels better: the audit, cleanlab, AUM.

    python -m benchmarks.audit [--cells=digits/sym:0.2,...] [--parts=3]
        [--contestants=...] [--data_dir=DIR] [--docs]

Blind: all settings stand in `audit_contestants` and in the library, and were
chosen on rows and seeds that are in no cell here (the cells of 50,000 rows
aside, a fifth of which they contain). Each result goes to a JSON file as soon
as it is there; what is there already is not run again. `--docs` writes the
tables of docs/audit.md from it and stops. A cell whose data are missing is
skipped. The cells without CIFAR take a quarter of an hour on two idle cores,
CIFAR's some hours; BLAS threads are the user's choice (OPENBLAS_NUM_THREADS).
"""

import argparse
import json
import pathlib
import threading
import time

import numpy as np
from sklearn import metrics

from benchmarks import audit_cells
from benchmarks import audit_contestants
from benchmarks import audit_tables
from experiments import data
from ln_tfp import files

_RESULTS = pathlib.Path(__file__).parent / 'audit.json'
_PARTS = 3


def measure(part: audit_cells.Part, verdict: audit_contestants.Verdict) -> dict:
  """Returns the figures of one contestant on one part of a cell."""
  wrong = part.is_wrong
  figures = {'n': len(wrong), 'noise': float(wrong.mean())}
  if verdict.noise_rate is not None:
    figures['noise_rate'] = verdict.noise_rate
  if verdict.is_issue is not None:
    figures['flagged'] = int(verdict.is_issue.sum())
    figures['false_alarms'] = int((verdict.is_issue & ~wrong).sum())
  if not wrong.any():
    return figures
  worst = np.argsort(verdict.quality, kind='stable')[:wrong.sum()]
  figures |= {
      'auroc': metrics.roc_auc_score(wrong, -verdict.quality),
      'average_precision': metrics.average_precision_score(
          wrong, -verdict.quality),
      'missed': float(np.mean(~wrong[worst])),
  }
  if verdict.is_issue is not None:
    figures['f1'] = metrics.f1_score(wrong, verdict.is_issue)
  return figures


class PeakMemory:
  """Megabytes by which this process grew at most, looked at now and then."""

  def __enter__(self):
    self._done = threading.Event()
    self._start = self._peak = _resident()
    self._thread = threading.Thread(target=self._watch, daemon=True)
    self._thread.start()
    return self

  def _watch(self):
    while not self._done.wait(.05):
      self._peak = max(self._peak, _resident())

  def __exit__(self, *_):
    self._done.set()
    self._thread.join()

  @property
  def rise(self) -> float:
    return self._peak - self._start


def _resident():
  pages = pathlib.Path('/proc/self/statm').read_text(encoding='ascii').split()
  return int(pages[1]) * 4096 / 1e6


def run(part: audit_cells.Part, contestant: str) -> dict:
  """Returns the figures of a contestant, its seconds and megabytes."""
  begin, begin_cpu = time.perf_counter(), time.process_time()
  with PeakMemory() as memory:
    verdict = audit_contestants.CONTESTANTS[contestant](
        part.features, part.given, part.num_classes)
  return measure(part, verdict) | {
      'seconds': round(time.perf_counter() - begin, 2),
      # On a machine that others use, too, these are what can be compared.
      'cpu_seconds': round(time.process_time() - begin_cpu, 2),
      'megabytes': round(memory.rise)}


def main() -> None:
  """Runs what is not there yet."""
  parser = argparse.ArgumentParser(
      prog='python -m benchmarks.audit', description=__doc__,
      formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument('--cells', default=','.join(audit_cells.CELLS))
  parser.add_argument(
      '--contestants', default=';'.join(audit_contestants.CONTESTANTS),
      help='separated by semicolons')
  parser.add_argument('--parts', type=int, default=_PARTS,
                      help='blocks of rows, or seeds, of each cell')
  parser.add_argument('--data_dir', help='of data sets, features and cifar_n')
  parser.add_argument('--results', type=pathlib.Path, default=_RESULTS)
  parser.add_argument('--docs', action='store_true')
  arguments = parser.parse_args()
  results = (json.loads(arguments.results.read_text(encoding='utf-8'))
             if arguments.results.exists() else {})
  if arguments.docs:
    audit_tables.write_docs(results)
    return
  contestants = arguments.contestants.split(';')
  for index in range(arguments.parts):
    for cell in arguments.cells.split(','):
      names = [f'{cell} | {index} | {name}' for name in contestants]
      if all(name in results for name in names):
        continue
      try:
        part = audit_cells.load(cell, index, arguments.data_dir)
      except data.MissingDataError as error:
        print(f'{cell} is skipped: {error}')
        continue
      for name, contestant in zip(names, contestants):
        if name not in results:
          results[name] = run(part, contestant)
          print(name, results[name], flush=True)
          _add(arguments.results, name, results[name])


def _add(path, name, figures):
  """Adds a result to the file, which another process may be adding to."""
  found = json.loads(path.read_text(encoding='utf-8')) if path.exists() else {}
  found[name] = figures
  files.write_atomically(
      path, json.dumps(dict(sorted(found.items())), indent=1).encode())


if __name__ == '__main__':
  main()

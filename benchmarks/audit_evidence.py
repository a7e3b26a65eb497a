"""What to judge the labels of a trained model by: the kinds of evidence.

    python -m benchmarks.audit_evidence [--cells=...] [--data_dir=DIR]

One network with the LN head is trained on each part, as `python -m
ln_tfp.audit` trains it, and its labels are judged by everything that there is
afterwards: the closed form before the first trainable layer ('frozen') and
before the head ('features'), the head's outputs in-sample, margins averaged
over the epochs, and the mean of two ranks. The rule of 'auto' was chosen on
other seeds and rows.
"""

import argparse
import json
import pathlib

from scipy import stats

from benchmarks import audit
from benchmarks import audit_cells
from benchmarks import audit_contestants
from experiments import data
import ln_tfp
from ln_tfp import files
from ln_tfp.audit import auditing
from ln_tfp.audit.command import fitting

CELLS = ('digits/sym:0.4', 'digits/asym:0.3', 'digits/none',
         'digits_n/worst', 'mnist/sym:0.4', 'mnist/asym:0.4',
         'breast_cancer/sym:0.2', 'text/sym:0.4')
_RESULTS = pathlib.Path(__file__).parent / 'audit_evidence.json'


def run(part: audit_cells.Part) -> dict[str, dict]:
  """Returns the figures of each kind of evidence."""
  recorder = ln_tfp.MarginRecorder(part.features, part.given)
  model = fitting.fit(
      part.features, part.given, part.num_classes, callbacks=[recorder])
  reports = {
      kind: ln_tfp.audit_labels(
          model, part.features, part.given, evidence=kind)
      for kind in ('frozen', 'features', 'outputs')}
  reports['auto'] = auditing.decide(reports)
  verdicts = {
      kind: audit_contestants.Verdict(
          report.quality, report.is_issue, report.noise_rate)
      for kind, report in reports.items()}
  verdicts['margins'] = audit_contestants.Verdict(recorder.margins)
  ranks = stats.rankdata(recorder.margins)
  for kind in ('frozen', 'features'):
    both = ranks + stats.rankdata(verdicts[kind].quality)
    verdicts[f'margins and {kind}'] = audit_contestants.Verdict(both)
  return {kind: audit.measure(part, verdict)
          for kind, verdict in verdicts.items()}


def main() -> None:
  parser = argparse.ArgumentParser(
      prog='python -m benchmarks.audit_evidence', description=__doc__,
      formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument('--cells', default=','.join(CELLS))
  parser.add_argument('--parts', type=int, default=1)
  parser.add_argument('--data_dir')
  parser.add_argument('--results', type=pathlib.Path, default=_RESULTS)
  arguments = parser.parse_args()
  path = arguments.results
  results = (json.loads(path.read_text(encoding='utf-8'))
             if path.exists() else {})
  for cell in arguments.cells.split(','):
    for index in range(arguments.parts):
      if f'{cell} | {index} | auto' in results:
        continue
      try:
        part = audit_cells.load(cell, index, arguments.data_dir)
      except data.MissingDataError as error:
        print(f'{cell} is skipped: {error}')
        continue
      for kind, figures in run(part).items():
        results[f'{cell} | {index} | {kind}'] = figures
        print(cell, index, kind, figures, flush=True)
      files.write_atomically(path, json.dumps(results, indent=1).encode())


if __name__ == '__main__':
  main()

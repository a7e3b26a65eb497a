"""Packs the results of a data set into one archive, OUTPUT_DIR/DATASET.zip.

    python -m experiments.pack --dataset=digits --output_dir=results

All programs read results from such archives, too. The archive is read back and
compared before the packed documents are removed.

Time: seconds for a thousand runs.
Expected: a quarter of the size, some five kilobytes a run of digits.
"""

import pathlib

from experiments.cli import app
from experiments.sweep import store


def main(argv):
  del argv
  directory = pathlib.Path(app.FLAGS.output_dir)
  file = directory / f'{app.FLAGS.dataset}.zip'
  found, problems = store.Store(directory).everything
  for problem in problems:
    if problem.startswith(f'{file}:'):
      raise app.BadFlagError(f'It would be overwritten: {problem}')
  chosen = {key: result for key, result in found.items()
            if result.run['dataset'] == app.FLAGS.dataset}
  if not chosen:
    raise app.BadFlagError(
        f'{directory} has no results of {app.FLAGS.dataset}.')
  store.pack(chosen.values(), file)
  if store.read(file) != chosen:
    raise RuntimeError(f'{file} is not what was written.')
  for key in chosen:
    (directory / f'{key}.json').unlink(missing_ok=True)
  print(f'{file}: {len(chosen)} results, {file.stat().st_size / 1e6:.1f} MB.')


if __name__ == '__main__':
  app.start(main)

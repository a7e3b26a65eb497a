"""Runs the code of the guides, as a reader would: from top to bottom."""

import pathlib
import re
import runpy

import pytest

_DOCS = pathlib.Path(__file__).resolve().parents[1] / 'docs'
_EXECUTE = runpy.run_path(str(_DOCS / 'tutorials' / 'run.py'))['execute']
# What a page takes from its reader: a backbone and images.
_GIVEN = {'many_classes': """
import keras
import numpy as np

import ln_tfp

rng = np.random.default_rng(0)
images = rng.normal(size=[40, 6]).astype('float32')
noisy_labels = rng.integers(21_843, size=40)
backbone = keras.Sequential([keras.Input([6]), keras.layers.Dense(4)])
"""}


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize('page, section, prints', [
    ('learning', None, r"'accuracy': 0\.[89]"),
    ('process', None, r'^0\.9'),
    ('many_classes', None, ''),
    ('audit', 'In Python', r': 3\d\d look wrong'),
])
def test_the_code_of_a_guide_runs(
    tmp_path, monkeypatch, page, section, prints):
  monkeypatch.chdir(tmp_path)  # for what the code writes
  text = (_DOCS / f'{page}.md').read_text(encoding='utf-8')
  if section:
    text = re.search(rf'^## {section}$.*?(?=^## )', text, re.M | re.S)[0]
  assert '```python' in text
  done = _EXECUTE(f'```python\n{_GIVEN.get(page, "")}```\n{text}', page)
  printed = ''.join(re.findall(r'^```text\n(.*?)^```', done, re.M | re.S))
  assert re.search(prints, printed, re.M), printed

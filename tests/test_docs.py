"""The site's reference; that the site can be made is seen to by `make docs`."""

import importlib
import inspect
import pathlib
import re
import runpy

from packaging import requirements

import ln_tfp
from ln_tfp import process

_DOCS = pathlib.Path(__file__).resolve().parents[1] / 'docs'


def _documented():
  """Objects in the reference, by the names that it gives them."""
  names = set()
  for page in (_DOCS / 'reference').glob('*.md'):
    text = page.read_text(encoding='utf-8')
    names.update(re.findall(r'auto(?:class|function):: ([\w.]+)', text))
    for module in re.findall(r'automodule:: ([\w.]+)', text):
      names.update(f'{module}.{name}'
                   for name in _own(importlib.import_module(module)))
  return names


def _own(module):
  """Public names of what is defined in a module."""
  return [name for name, value in vars(module).items()
          if not name.startswith('_')
          and getattr(value, '__module__', None) == module.__name__]


def _public():
  """All public names: of modules and what is in them."""
  modules = (ln_tfp, ln_tfp.losses, ln_tfp.audit, process)
  for module in modules:
    names = getattr(module, '__all__', None) or [
        name for name in dir(module) if not name.startswith('_')
        and not inspect.ismodule(getattr(module, name))]
    for name in names:
      value = getattr(module, name)
      if inspect.ismodule(value):
        if value not in modules:
          yield from ((f'{module.__name__}.{name}.{each}',
                       getattr(value, each)) for each in _own(value))
      else:
        yield f'{module.__name__}.{name}', value
  for name in _own(ln_tfp.noise):
    yield f'ln_tfp.noise.{name}', getattr(ln_tfp.noise, name)


def test_every_public_name_is_in_the_reference():
  documented = _documented()
  public = dict(_public())
  objects = [public[name] for name in documented if name in public]
  assert documented <= set(public)
  missing = [name for name, value in public.items()
             if not any(value is each for each in objects)]
  assert not missing


def test_markdown_in_docstrings_becomes_what_sphinx_reads():
  extension = runpy.run_path(str(_DOCS / '_ext' / 'markdown_docstrings.py'))
  converted = extension['convert']("""A `code`s, |r| and rate_.

    p(q) = 1

```python
x = 1
```

| a | b |
|---|---|
| 1 | `c` |
""")
  assert [line for line in converted.splitlines() if line] == [
      r'A ``code``\ s, \|r\| and rate\_.',
      '.. code-block:: text', '   p(q) = 1',
      '.. code-block:: python', '   x = 1',
      '.. list-table::', '   :header-rows: 1',
      '   * - a', '     - b', '   * - 1', '     - ``c``']


def test_prose_is_in_80_columns():
  pages = [*_DOCS.parent.glob('*.md'), *_DOCS.rglob('*.md')]
  long = [f'{page.name}: {line}' for page in pages
          for line in _prose(page.read_text(encoding='utf-8'))
          if len(line) > 80 and ' ' in line.strip()]
  assert len(pages) > 20
  assert not long


def _prose(text):
  """Lines that a person wrapped: no code, table, picture or program's text."""
  for left_out in (r'^<!-- (.+): begin -->.*?^<!-- \1: end -->',
                   r'^ *```.*?^ *```'):
    text = re.sub(left_out, '', text, flags=re.M | re.S)
  return [line for line in text.splitlines()
          if not line.startswith(('|', '    ', '!['))]


def test_the_commands_of_the_papers_tables_have_its_five_seeds():
  readme = (_DOCS.parent / 'README.md').read_text(encoding='utf-8')
  section = readme.partition('## Regenerate the paper')[2].partition('\n## ')[0]
  tables = re.findall(r'^    (python -m experiments\.\w+_noise.*?)  ', section,
                      re.M)
  assert len(tables) == 2
  assert all('--seeds=5' in command for command in tables)


def test_the_extra_for_gpus_is_of_the_pinned_version():
  read = lambda name: (_DOCS.parent / name).read_text(encoding='utf-8')
  pinned = re.search(r'^tensorflow==(\S+)$', read('requirements.txt'), re.M)[1]
  extra = requirements.Requirement(
      re.search(r"'gpu': \['(.*)'\]", read('setup.py'))[1])
  assert extra.extras == {'and-cuda'} and pinned in extra.specifier
  for page in ('README.md', 'docs/scaling.md', 'docs/gpu-checklist.md'):
    assert re.search(r"pip install .*'\.\[gpu\b", read(page)), page


def test_the_first_hour_on_gpus_has_ten_commands():
  page = (_DOCS / 'gpu-checklist.md').read_text(encoding='utf-8')
  rows = re.findall(r'^\| (\d+) \| (`.*?) \| (.+) \|$', page, re.M)
  assert [int(number) for number, _, _ in rows] == list(range(1, 11))

"""Runs the tutorials, and writes what they print into their pages.

    python docs/tutorials/run.py

A page's Python blocks are executed in order; what a block prints stands after
it, in a block of text.
"""

import contextlib
import io
import pathlib
import re

HERE = pathlib.Path(__file__).parent
_BLOCK = re.compile(
    r'^```python\n(?P<code>.*?)^```\n(\n```text\n(?P<printed>.*?)^```\n)?',
    re.DOTALL | re.MULTILINE)


def pages() -> list[pathlib.Path]:
  """Returns the tutorials."""
  return sorted(HERE.glob('*_*.md'))


def execute(text: str, name: str) -> str:
  """Returns a page with what its blocks print now."""
  variables = {'__name__': name}

  def run(match):
    stream = io.StringIO()
    # Lines of the page are lines of the code: errors say where they are.
    above = '\n' * text.count('\n', 0, match.start('code'))
    with contextlib.redirect_stdout(stream):
      exec(compile(above + match['code'], name, 'exec'), variables)
    block = f'```python\n{match["code"]}```\n'
    if stream.getvalue():
      block += f'\n```text\n{stream.getvalue()}```\n'
    return block

  return _BLOCK.sub(run, text)


if __name__ == '__main__':
  for path in pages():
    path.write_text(
        execute(path.read_text(encoding='utf-8'), path.name), encoding='utf-8')

"""Lets autodoc read docstrings in Google's form whose text is Markdown.

Napoleon reads the sections (Args, Returns, ...). Before it does, this turns
Markdown into what Sphinx reads: code, fenced, indented or in a line, tables and
headings. Lists and emphasis are the same in both.
"""

import ast
import re
import textwrap

_BLOCK = re.compile(
    r'^(?P<margin> *)```(?P<language>\w*)\n(?P<fenced>(?:.*\n)*?) *```\n'
    r'|(?<=\n\n)(?P<indented>(?:    .*\n|\n)+)'
    r'|(?P<table>(?:^ *\|.*\n)+)', re.M)
_INLINE = re.compile(r'`([^`]+)`')


def convert(text: str) -> str:
  """Returns a docstring in reStructuredText."""
  parts, end = [], 0
  for block in _BLOCK.finditer(text):
    parts += [_prose(text[end:block.start()]), _render(block)]
    end = block.end()
  return ''.join([*parts, _prose(text[end:])])


def _render(block):
  """Returns a directive for code or a table."""
  if block['table']:
    return _table(block['table'])
  if block['fenced']:
    margin, code = block['margin'], block['fenced']
    language = block['language'] or 'text'
  else:
    margin, code = '', block['indented']
    language = 'python' if _is_python(textwrap.dedent(code)) else 'text'
  return (f'\n{margin}.. code-block:: {language}\n\n' +
          textwrap.indent(textwrap.dedent(code).rstrip(), margin + '   ') +
          '\n\n')


def _is_python(code):
  try:
    ast.parse(code)
  except SyntaxError:  # a formula, a command
    return False
  return True


def _table(text):
  """Returns a Markdown table, the second line of which is a rule."""
  margin = re.match(' *', text)[0]
  header, _, *rows = [
      [_prose(cell.strip()) for cell in line.strip().strip('|').split('|')]
      for line in text.splitlines()]
  lines = [f'{margin}.. list-table::', f'{margin}   :header-rows: 1', '']
  for row in (header, *rows):
    lines += [f'{margin}   {"  " if column else "* "}- {cell}'
              for column, cell in enumerate(row)]
  return '\n'.join(['', *lines, '', ''])


def _prose(text):
  """Returns text between blocks."""
  text = re.sub(r'^#+ (.*)$', r'.. rubric:: \1', text, flags=re.M)
  pieces = _INLINE.split(text)
  pieces[::2] = map(_plain, pieces[::2])
  pieces[1::2] = (f'``{" ".join(piece.split())}``\\ '
                  for piece in pieces[1::2])
  return re.sub(r'``\\ (?=[\s.,:;!?)\]}\'"/-]|$)', '``', ''.join(pieces))


def _plain(text):
  """Returns text without code in it."""
  # Special in reStructuredText alone: names_ and |substitutions|.
  text = re.sub(r'(?<=\w)_(?![\w:])|\|', r'\\\g<0>', text)
  return re.sub(r'\bdocs/(\w+)\.md', r':doc:`/\1`', text)


def _process(app, what, name, obj, options, lines):
  lines[:] = convert('\n'.join([*lines, ''])).split('\n')


def setup(app):
  # Napoleon has the usual priority, 500.
  app.connect('autodoc-process-docstring', _process, priority=400)
  return {'parallel_read_safe': True}

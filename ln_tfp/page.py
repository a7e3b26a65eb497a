"""A self-contained HTML page: text, tables, pictures, and perhaps a script.

The page needs no network (its content security policy forbids it), runs no
script but those it was made with (the policy has their hashes), follows the
reader's choice of light or dark, and fits a narrow screen. All text is
escaped; markup has to be marked as such, by `Html`.
"""

import base64
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import hashlib
import html
import json
import os
import re
from typing import Any

from ln_tfp import files


class Html(str):
  """A string that is markup already and is not escaped."""

  __slots__ = ()


class Page:
  """Collects the blocks of a page, in order.

      report = page.Page('Label audit')
      report.lead('Of 1,300 labels 259 look wrong.')
      report.section('Classes')
      report.table(('class', 'examples'), [('cat', 130), ('dog', 128)])
      report.save('report.html')

  Every method that adds a block returns the page, so that calls can be chained.

  Args:
    title: the title of the window and the heading of the page.
  """

  def __init__(self, title: str):
    self._title = title
    self._blocks = []
    self._styles = []
    self._scripts = []

  def lead(self, text: str) -> 'Page':
    """Adds a paragraph in large type, to open the page."""
    return self.raw(f'<p class="lead">{escape(text)}</p>')

  def section(self, heading: str, text: str | None = None) -> 'Page':
    """Opens a section, perhaps with a first paragraph."""
    return self._heading('h2', heading, text)

  def subsection(self, heading: str, text: str | None = None) -> 'Page':
    """Opens a part of a section."""
    return self._heading('h3', heading, text)

  def paragraph(self, text: str) -> 'Page':
    """Adds a paragraph."""
    return self.raw(f'<p>{escape(text)}</p>')

  def warning(self, text: str) -> 'Page':
    """Adds a paragraph that the reader should not miss."""
    return self.raw(f'<p class="warning" role="note"><strong>Warning</strong> '
                    f'{escape(text)}</p>')

  def note(self, text: str) -> 'Page':
    """Adds a paragraph in small type."""
    return self.raw(f'<p class="note">{escape(text)}</p>')

  def figures(self, values: Mapping[str, Any]) -> 'Page':
    """Adds a row of key figures, from what each is to its value."""
    items = ''.join(
        f'<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>'
        for name, value in values.items())
    return self.raw(f'<dl class="figures">{items}</dl>')

  def table(
      self, header: Sequence[Any], rows: Iterable[Sequence[Any]],
      caption: str = 'Table') -> 'Page':
    """Adds a table; numbers are aligned to the right, wide tables scroll.

    Args:
      header: the names of the columns.
      rows: of each row its cells, as many as there are columns. A cell is
        text (or anything with a `str`), or `Html`.
      caption: what the table shows; stands above it.
    """
    head = ''.join(_cell('th scope="col"', cell) for cell in header)
    body = []
    for row in rows:
      if len(row) != len(header):
        raise ValueError(
            f'Argument `rows` must have {len(header)} cells in each row, as '
            f'the header has. Received: {row!r}.')
      body.append(f'<tr>{"".join(_cell("td", cell) for cell in row)}</tr>')
    return self.raw(
        f'<div class="scroll" tabindex="0" role="region" '
        f'aria-label="{escape(caption)}"><table>'
        f'<caption>{escape(caption)}</caption>'
        f'<thead><tr>{head}</tr></thead>'
        f'<tbody>{"".join(body)}</tbody></table></div>')

  def image(
      self, png: bytes, alt: str, caption: str | None = None) -> 'Page':
    """Adds a PNG picture; `alt` says what it shows to who cannot see it."""
    picture = f'<img alt="{escape(alt)}" src="{data_uri(png)}">'
    return self._figure(picture, caption)

  def svg(self, markup: str, alt: str, caption: str | None = None) -> 'Page':
    """Adds an SVG element, inline: its text can use the colours of the page.

    The style sheet has the variables `--text`, `--muted`, `--line`,
    `--surface`, `--accent` and `--warn`.
    """
    if not markup.lstrip().startswith('<svg'):
      raise ValueError('Argument `markup` must be an svg element. Received: '
                       f'markup={markup[:40]!r}.')
    label = f'<svg role="img" aria-label="{escape(alt)}"'
    return self._figure(markup.lstrip().replace('<svg', label, 1), caption)

  def raw(self, markup: str) -> 'Page':
    """Adds markup as it is."""
    self._blocks.append(markup)
    return self

  def style(self, css: str) -> 'Page':
    """Adds rules to the style sheet."""
    self._styles.append(css)
    return self

  def data(self, name: str, value: Any) -> 'Page':
    """Adds JSON for scripts: the text of the element whose id is `name`."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    # Nothing inside may end the element.
    text = text.replace('<', '\\u003c').replace('&', '\\u0026')
    return self.raw(
        f'<script type="application/json" id="{escape(name)}">{text}</script>')

  def script(self, javascript: str) -> 'Page':
    """Adds a script, which runs after the page is there."""
    if '</script' in javascript or '<!--' in javascript:
      raise ValueError('Argument `javascript` must not have `</script` or '
                       '`<!--` in it, which would end it early.')
    self._scripts.append(javascript)
    return self

  def html(self) -> str:
    """Returns the page."""
    scripts = ''.join(f'<script>{code}</script>\n' for code in self._scripts)
    hashes = ' '.join(map(_script_hash, self._scripts)) or "'none'"
    blocks = '\n'.join(self._blocks)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src '
        "'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src {hashes}; base-uri 'none'; form-action 'none'\">\n"
        '<meta name="viewport" content="width=device-width, '
        'initial-scale=1">\n'
        f'<title>{escape(self._title)}</title>\n'
        f'<style>{_STYLE}{"".join(self._styles)}</style>\n</head>\n<body>\n'
        f'<main>\n<h1>{escape(self._title)}</h1>\n{blocks}\n</main>\n'
        f'{scripts}</body>\n</html>\n')

  def save(self, path: str | os.PathLike) -> None:
    """Writes the page: all of it or, if anything goes wrong, nothing."""
    files.write_atomically(path, self.html().encode())

  def _heading(self, tag, heading, text):
    self.raw(f'<{tag}>{escape(heading)}</{tag}>')
    return self if text is None else self.paragraph(text)

  def _figure(self, picture, caption):
    if caption is not None:
      picture += f'<figcaption>{escape(caption)}</figcaption>'
    return self.raw(f'<figure>{picture}</figure>')


def escape(value: Any) -> str:
  """Returns `str(value)` as markup; `Html` is returned as it is."""
  return value if isinstance(value, Html) else html.escape(str(value))


def data_uri(picture: bytes) -> str:
  """Returns a PNG or JPEG file as the source of an image."""
  kind = 'png' if picture.startswith(b'\x89PNG') else 'jpeg'
  return f'data:image/{kind};base64,{base64.b64encode(picture).decode()}'


def _script_hash(javascript):
  digest = hashlib.sha256(javascript.encode()).digest()
  return f"'sha256-{base64.b64encode(digest).decode()}'"


def _cell(tag, value):
  number = _NUMBER.fullmatch(str(value).strip())
  attribute = ' class="number"' if number else ''
  return f'<{tag}{attribute}>{escape(value)}</{tag.split()[0]}>'


# 7, -1,300.5, 96.5 %, 96.5 ± 0.3, 1e-05, and the dash of a missing number.
_NUMBER = re.compile(
    r'[-+−]?[\d.,]*\d(e[-+]?\d+)?( ?%)?( ?(±|\+-) ?[\d.,]+( ?%)?)?|[-–—]')

_STYLE = """
:root {
  color-scheme: light dark;
  --text: #1c2430; --muted: #5b6675; --line: #d9dee6; --surface: #f4f6f9;
  --background: #ffffff; --accent: #1a66c2; --warn: #b4400f;
}
@media (prefers-color-scheme: dark) {
  :root {
    --text: #e4e8ee; --muted: #9aa5b4; --line: #333c49; --surface: #1c222b;
    --background: #12161c; --accent: #6cabf7; --warn: #f09060;
  }
}
*, *::before, *::after { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--background); color: var(--text);
  font: 16px/1.55 system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif;
  overflow-wrap: anywhere;
}
main { max-width: 62rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: .5rem 0 1rem; }
h2 {
  font-size: 1.25rem; margin: 2.5rem 0 .75rem; padding-top: 1rem;
  border-top: 1px solid var(--line);
}
h3 { font-size: 1.05rem; margin: 1.75rem 0 .5rem; }
p { margin: 0 0 1rem; max-width: 46rem; }
.lead { font-size: 1.15rem; }
.warning {
  border-left: .25rem solid var(--warn); background: var(--surface);
  padding: .75rem 1rem; border-radius: 0 .375rem .375rem 0;
}
.warning strong { color: var(--warn); margin-right: .25rem; }
.note { color: var(--muted); font-size: .875rem; }
a { color: var(--accent); }
code { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .9em; }
.figures { display: flex; flex-wrap: wrap; gap: .75rem; margin: 0 0 1.5rem; }
.figures div {
  flex: 1 1 8.5rem; padding: .75rem 1rem; background: var(--surface);
  border-radius: .5rem;
}
.figures dt { color: var(--muted); font-size: .8125rem; }
.figures dd { margin: 0; font-size: 1.375rem; font-weight: 600; }
.scroll { overflow-x: auto; max-width: 100%; margin: 0 0 1.5rem; }
table { border-collapse: collapse; font-size: .9375rem; }
caption {
  caption-side: top; text-align: left; color: var(--muted);
  font-size: .875rem; padding: 0 0 .5rem;
}
th, td {
  padding: .375rem .75rem; text-align: left; white-space: nowrap;
  border-bottom: 1px solid var(--line);
}
th { font-weight: 600; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
figure { margin: 0 0 1.5rem; }
figure img, figure svg { display: block; max-width: 100%; height: auto; }
figcaption { color: var(--muted); font-size: .875rem; margin-top: .5rem; }
svg text { font-family: inherit; }
button, select {
  font: inherit; color: inherit; background: var(--surface);
  border: 1px solid var(--line); border-radius: .375rem;
  padding: .375rem .75rem; max-width: 100%;
}
button:not(:disabled) { cursor: pointer; }
button:disabled { opacity: .5; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
"""

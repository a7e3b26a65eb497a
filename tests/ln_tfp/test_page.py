"""Tests of the HTML page."""

import io
import os
import re

from PIL import Image
import pytest

from ln_tfp import page
from tests import browser

NASTY = '<script>alert(1)</script>&"\'</script>'


def _png():
  file = io.BytesIO()
  Image.new('L', (4, 4)).save(file, 'png')
  return file.getvalue()


def _page():
  return (
      page.Page(f'Title {NASTY}')
      .lead(f'Lead {NASTY}')
      .figures({f'name {NASTY}': f'value {NASTY}'})
      .section(f'Section {NASTY}', f'text {NASTY}')
      .subsection(f'Subsection {NASTY}')
      .table([f'column {i} {NASTY}' for i in range(9)],
             [[f'cell {i} {NASTY}' for i in range(9)]], f'caption {NASTY}')
      .image(_png(), f'alt {NASTY}', f'caption {NASTY}')
      .svg('<svg viewBox="0 0 2 2" width="900" height="20"></svg>',
           f'alt {NASTY}')
      .note(f'note {NASTY}')
      .data('numbers', {'text': NASTY, 'list': [1, 2.5]})
      .raw('<p id="result"></p>')
      .script('const d = JSON.parse(document.getElementById("numbers")'
              '.textContent); document.getElementById("result").textContent = '
              'd.text + d.list.join();'))


def test_what_is_given_as_text_is_escaped_everywhere():
  html = _page().html()
  assert 'alert(1)' in html
  assert '<script>alert' not in html
  assert html.count('<script') == 2  # the data and the page's own script


def test_markup_in_a_cell_has_to_be_marked_as_such():
  html = page.Page('t').table(
      ('a', 'b'), [('<b>x</b>', page.Html('<i>y</i>'))]).html()
  assert '&lt;b&gt;x&lt;/b&gt;' in html
  assert '<td><i>y</i></td>' in html


@pytest.mark.parametrize('text, is_number', [
    ('7', True), (-1300.5, True), ('96.5 %', True), ('96.5 ± 0.3', True),
    ('1e-05', True), ('—', True), ('1,300', True), ('class 7', False),
    ('', False), ('3-8', False)])
def test_numbers_and_nothing_else_are_aligned_to_the_right(text, is_number):
  html = page.Page('t').table(('a',), [(text,)]).html()
  assert ('<td class="number">' in html) == is_number


def test_a_row_of_another_length_than_the_header_is_an_error():
  with pytest.raises(ValueError, match='`rows` must have 2 cells'):
    page.Page('t').table(('a', 'b'), [('x',)])


def test_a_picture_that_is_no_svg_element_is_an_error():
  with pytest.raises(ValueError, match='`markup` must be an svg element'):
    page.Page('t').svg('<p>', 'alt')


def test_numbers_that_json_does_not_know_are_an_error():
  with pytest.raises(ValueError):
    page.Page('t').data('d', [float('nan')])


def test_every_picture_has_an_alternative_text():
  html = _page().html()
  assert re.search(r'<img alt="alt &lt;', html)
  assert re.search(r'<svg role="img" aria-label="alt &lt;', html)


def test_a_page_that_cannot_be_written_leaves_the_old_one_and_no_litter(
    tmp_path, monkeypatch):
  path = tmp_path / 'page.html'
  page.Page('old').save(path)

  def fail(*_):
    raise KeyboardInterrupt

  monkeypatch.setattr(os, 'replace', fail)
  with pytest.raises(KeyboardInterrupt):
    page.Page('new').save(path)
  assert '<h1>old</h1>' in path.read_text()
  assert os.listdir(tmp_path) == ['page.html']


@pytest.mark.parametrize('dark', [False, True])
def test_a_browser_shows_the_page_on_a_narrow_screen(tmp_path, dark):
  _page().save(tmp_path / 'page.html')
  with browser.open_page(
      tmp_path / 'page.html', width=360, height=640, dark=dark) as tab:
    assert tab.errors() == []
    assert tab.requests() == []
    content, window = tab.widths()
    assert window == 360
    assert content <= window
    assert tab.texts('h1') == [f'Title {NASTY}']
    assert tab.texts('#result') == [f'{NASTY}1,2.5']
    colour = tab.run('return getComputedStyle(document.body).backgroundColor')
    assert colour == ('rgb(18, 22, 28)' if dark else 'rgb(255, 255, 255)')


def test_a_browser_would_tell_of_errors_and_of_a_page_too_wide(tmp_path):
  (page.Page('t').raw('<div style="width: 500px">x</div>')
   .script('undefinedFunction()').save(tmp_path / 'page.html'))
  with browser.open_page(tmp_path / 'page.html', width=360) as tab:
    assert any('undefinedFunction' in error for error in tab.errors())
    assert max(tab.widths()) >= 500


def test_the_page_may_not_use_the_network(tmp_path):
  (page.Page('t').raw('<img alt="" src="http://localhost:9/x.png">')
   .save(tmp_path / 'page.html'))
  with browser.open_page(tmp_path / 'page.html') as tab:
    assert any('Content Security Policy' in error for error in tab.errors())

"""Tests of the page on which labels are reviewed, in a real browser."""

import dataclasses
import os
import re

import numpy as np
import pytest

from ln_tfp.audit import trust
from ln_tfp.audit.review import neighbours
from ln_tfp.audit.review import spreadsheet
from tests import browser
from tests.ln_tfp.audit import reports

pytestmark = pytest.mark.slow
NAMES = ('cat', '<b>dog</b>', '=emu()', '</script>')


def _pictures(num, side=8):
  rng = np.random.default_rng(0)
  return rng.integers(0, 256, (num, side, side, 3), dtype=np.uint8)


def _report(num=120, shown=300):
  """All labels are issues: k looks like k + 1, the first ones most."""
  wrong = np.linspace(.99, .6, num)
  report = reports.make(
      wrong, np.arange(num) % 4, 4, class_names=NAMES, shown=shown,
      ids=np.array([f'<i>{i}.png' for i in range(num)]),
      is_issue=np.ones(num, bool))
  found = {i: neighbours.Neighbours(((i + 4) % num,), ((i + 1) % num,))
           for i in range(num)}
  return dataclasses.replace(
      report, examples=dict(enumerate(_pictures(num))), neighbours=found)


@pytest.fixture(scope='module')
def page(tmp_path_factory):
  path = tmp_path_factory.mktemp('page') / 'audit.html'
  _report().save(path)
  return path


@pytest.fixture
def tab(page):
  with browser.open_page(page) as opened:
    yield opened
    assert opened.errors() == []
    assert opened.requests() == []
    opened.run('localStorage.clear()')


def _identity(tab):
  return tab.texts('#identity')[0]


def _badges(tab):
  return tab.texts('#strip .badge')


def test_mouse_clicks_decide_and_go_on_to_the_next(tab):
  assert _identity(tab) == '<i>0.png'
  assert tab.texts('#decided') == ['0 of 120 decided']
  tab.click('#keep')
  assert _identity(tab) == '<i>1.png'
  tab.click('#accept')
  tab.click('#unsure')
  tab.click('#remove')
  tab.choose('#other', '0')  # of the label 0 with the suggestion 1: kept
  tab.choose('#other', '0')  # of 1, suggested 2: another class
  assert tab.texts('#decided') == ['6 of 120 decided']
  assert _badges(tab) == ['✓', '→', '?', '×', '✓', '→']
  assert tab.run('return document.getElementById("progress").value') == 6


def test_keys_decide_move_and_undo(tab):
  tab.press('k', 'a', 'c', 'x')
  assert _badges(tab) == ['✓', '→', '?', '×']
  tab.press('2')  # the second choice is the suggested class
  assert _badges(tab)[4] == '→'
  assert _identity(tab) == '<i>5.png'
  tab.press('u')
  assert _identity(tab) == '<i>4.png'
  assert len(_badges(tab)) == 4
  tab.press('ARROW_LEFT', 'ARROW_LEFT')
  assert _identity(tab) == '<i>2.png'
  tab.press('1')  # the first choice is the given class
  assert _badges(tab) == ['✓', '→', '✓', '×']
  tab.press('ARROW_RIGHT')
  assert _identity(tab) == '<i>5.png'
  for _ in range(9):
    tab.press('u')
  assert tab.texts('#decided') == ['0 of 120 decided']
  assert not tab.run('return document.querySelector("#undo:enabled")')


def test_keys_that_are_typed_into_a_list_or_switched_off_decide_nothing(tab):
  tab.press('o')
  assert tab.run('return document.activeElement.id') == 'other'
  tab.press('k', 'ESCAPE')
  assert tab.texts('#decided') == ['0 of 120 decided']
  tab.click('#shortcuts')
  tab.run('document.activeElement.blur()')
  tab.press('k')
  assert tab.texts('#decided') == ['0 of 120 decided']


def test_decisions_are_kept_in_the_browser_and_downloaded(tab, tmp_path):
  tab.press('k', 'a', 'c', 'x')
  tab.reload()
  assert tab.texts('#decided') == ['4 of 120 decided']
  assert _identity(tab) == '<i>4.png'
  path = tab.download(tmp_path, '#download')
  assert path.name == 'decisions.csv'
  rows = spreadsheet.read(path)
  assert [row['id'] for row in rows] == [f'<i>{i}.png' for i in range(4)]
  assert [row['position'] for row in rows] == ['0', '1', '2', '3']
  assert [row['decision'] for row in rows] == [
      'keep', 'accept', 'unsure', 'remove']
  assert [row['label'] for row in rows] == ['cat', '=emu()', '', '']
  assert [row['given'] for row in rows] == list(NAMES)
  assert "'=emu()" in path.read_text()


def test_rubbish_in_the_browsers_memory_is_ignored(tab):
  key = tab.run('return "ln_tfp audit " + JSON.parse(document.getElementById('
                '"audit").textContent).fingerprint')
  for rubbish in ('{', '7', '[[0, "toString", 1], [99999, "keep", 0], 5, '
                  '[0, "keep", 77], [0, "keep", "length "]]'):
    tab.run(f'localStorage.setItem({key!r}, {rubbish!r})')
    tab.reload()
    assert tab.texts('#decided') == ['0 of 120 decided']


def test_filters_and_orders_choose_what_is_shown(tab):
  tab.choose('#by-given', '1')
  assert tab.texts('#position') == ['1 of 30']
  assert set(tab.texts('#strip .names')) == {'<b>dog</b> → =emu()'}
  tab.choose('#by-suggested', '0')
  assert tab.texts('#position') == ['none']
  assert not tab.texts('#strip li')
  tab.choose('#by-suggested', '')
  tab.choose('#by-given', '')
  tab.press('k')
  tab.choose('#by-decision', 'keep')
  assert tab.texts('#position') == ['1 of 1']
  tab.choose('#by-decision', 'none')
  assert tab.texts('#position') == ['1 of 119']
  tab.choose('#by-decision', '')
  tab.choose('#by-order', 'pair')
  assert len(set(tab.texts('#strip .names')[:30])) == 1


def test_a_filter_on_undecided_ones_can_be_worked_through(tab):
  tab.choose('#by-given', '0')
  tab.choose('#by-decision', 'none')
  tab.press(*'k' * 30)
  assert tab.texts('#decided') == ['30 of 120 decided']


def test_the_control_sample_estimates_the_precision(tab):
  tab.choose('#by-order', 'control')
  assert tab.texts('#position') == ['1 of 50']
  assert 'None is decided yet' in tab.texts('#message')[0]
  expected = _report().control_sample[0]
  assert _identity(tab) == f'<i>{expected}.png'
  tab.press(*'aaak', 'c')  # what cannot be said does not count
  message = tab.texts('#message')[0]
  assert 'Of 4 decided so far 3 were wrong: a precision of 75 %' in message
  # Wilson's interval of 3 in 4.
  assert '(95 % interval 30 % to 95 %)' in message


def test_neighbours_stand_beside_the_example_as_a_reason(tab):
  assert tab.texts('#reasons h4') == [
      'Most similar with the label cat',
      'Most similar with the label <b>dog</b>']
  assert tab.run('return [...document.images].every(i => i.naturalWidth)')
  sources = tab.run(
      'return [...document.querySelectorAll("#reasons img")].map(i => i.src)')
  own = tab.run('return document.querySelector("#subject img").src')
  assert len({own, *sources}) == 3


def test_every_control_has_a_name_and_every_picture_a_text(tab):
  nameless = tab.run("""
    return [...document.querySelectorAll('button, select, input')].filter(e =>
        !(e.getAttribute('aria-label') || e.textContent.trim() ||
          (e.labels && e.labels.length))).map(e => e.id)""")
  assert nameless == []
  assert tab.run("""
    return [...document.images].every(i => i.alt ||
        i.closest('button').getAttribute('aria-label'))""")
  assert 'given cat, suggested <b>dog</b>, undecided' in tab.run(
      'return document.querySelector("#strip button").ariaLabel')
  tab.press('k')
  assert tab.run('return document.querySelector("#strip button").ariaLabel'
                 ).endswith(', kept')


@pytest.mark.parametrize('dark', [False, True])
def test_a_narrow_screen_has_everything_in_reach(page, dark):
  with browser.open_page(page, width=360, height=640, dark=dark) as tab:
    content, window = tab.widths()
    assert content <= window == 360
    tab.click('#accept')
    tab.click('#next')
    assert tab.texts('#decided') == ['1 of 120 decided']
    heights = tab.run(
        'return [...document.querySelectorAll(".actions button")].map('
        'b => b.getBoundingClientRect().height)')
    assert min(heights) >= 40  # a finger's
    tab.run('localStorage.clear()')


def test_only_the_pages_own_script_runs(page, tmp_path):
  text = page.read_text()
  assert "script-src 'sha256-" in text and "'unsafe-inline'; script" in text
  changed = tmp_path / 'changed.html'
  changed.write_text(text.replace(
      '</main>', '<script>document.title = "hacked"</script></main>'))
  with browser.open_page(changed) as tab:
    assert tab.run('return document.title') == 'Label audit'
    assert any('Content Security Policy' in error for error in tab.errors())
    tab.run('localStorage.clear()')


def test_rows_of_a_table_are_shown_as_rows(tmp_path):
  report = dataclasses.replace(_report(), examples={}, rows={
      i: {'text': f'Line {i}\n<script>', 'stars': str(i)} for i in range(120)})
  report.save(tmp_path / 'audit.html')
  with browser.open_page(tmp_path / 'audit.html') as tab:
    assert tab.texts('#subject dt') == ['text', 'stars']
    assert tab.texts('#subject dd') == ['Line 0\n<script>', '0']
    assert tab.texts('#reasons .text')[0].startswith('text: Line 4')
    assert tab.errors() == []


def test_a_wide_table_shows_its_first_columns(tmp_path):
  report = dataclasses.replace(_report(), examples={}, rows={
      i: {f'c{k}': 'x' * 5_000 for k in range(1_000)} for i in range(120)})
  report.save(tmp_path / 'audit.html')
  assert os.path.getsize(tmp_path / 'audit.html') < 15e6
  text = (tmp_path / 'audit.html').read_text()
  assert '970 more columns' in text and 'c29' in text and 'c30' not in text


def test_features_are_shown_as_numbers_and_examples_without_any_by_name(
    tmp_path):
  report = dataclasses.replace(
      _report(), examples={0: np.arange(20.), 1: np.arange(3.)})
  report.save(tmp_path / 'audit.html')
  with browser.open_page(tmp_path / 'audit.html') as tab:
    assert tab.texts('#subject dd') == [
        '0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, …']
    tab.press('ARROW_RIGHT', 'ARROW_RIGHT')
    assert _identity(tab) == '<i>2.png'
    assert tab.errors() == []


def test_the_page_of_a_thousand_classes_stays_small(tmp_path):
  num, classes = 3_000, 1_000
  report = reports.make(
      np.full(num, .9), np.arange(num) % classes, classes,
      is_issue=np.ones(num, bool), transition_matrix=np.full(
          (classes, classes), 1. / classes))
  report.with_examples(_pictures(num, 32)).save(tmp_path / 'audit.html')
  assert os.path.getsize(tmp_path / 'audit.html') < 8e6
  with browser.open_page(tmp_path / 'audit.html') as tab:
    assert tab.errors() == []
    assert tab.texts('#position') == ['1 of 300']
    assert len(tab.texts('#other option')) == classes + 1


def test_the_page_says_how_far_it_can_be_trusted_before_anything_else(tmp_path):
  report = reports.make([.9, .1, .1, .1], [0, 1, 0, 1])
  report.save(tmp_path / 'audit.html')
  text = re.sub(r'<style>.*</style>', '',
                (tmp_path / 'audit.html').read_text(), flags=re.DOTALL)
  assert text.index('The model predicts 100.0') < text.index('look wrong')
  assert text.index('Fewer than 10 examples') < text.index('Review')
  assert text.index('Labels of each class') < text.index('Review')


def test_a_page_that_is_not_to_be_acted_on_says_so_first(tmp_path):
  report = reports.make(np.full(40, .9), np.arange(40) % 2)
  report = dataclasses.replace(report, trust=trust.assess(
      report.given, np.zeros(40, int), report.is_issue, report.class_names,
      kind='leave-one-out')).flag()
  report.save(tmp_path / 'audit.html')
  text = (tmp_path / 'audit.html').read_text()
  assert text.index('Not to be acted on') < text.index('The model predicts 50')
  assert '<dt>are flagged</dt>' in text and '<dt>look wrong</dt>' not in text

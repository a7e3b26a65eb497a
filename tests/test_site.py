"""Makes the site of the documentation, and opens it in a browser."""

import pathlib
import subprocess
import sys

import pytest

from tests import browser
from tests import waiting

pytestmark = [pytest.mark.slow, pytest.mark.thorough]
_DOCS = pathlib.Path(__file__).resolve().parents[1] / 'docs'


@pytest.fixture(name='site', scope='module')
def _site(tmp_path_factory):
  """The folder of the site."""
  pytest.importorskip('sphinx', reason='sphinx is not installed')
  folder = tmp_path_factory.mktemp('site')
  done = subprocess.run(
      [sys.executable, '-m', 'sphinx', '-W', '--keep-going', '-q', _DOCS,
       folder, '-d', tmp_path_factory.mktemp('doctrees')],
      text=True, capture_output=True)
  assert done.returncode == 0, done.stderr
  return folder


@pytest.mark.parametrize('width', [1200, 360])
@pytest.mark.parametrize('page, title', [
    ('index', 'ln_tfp'), ('learning', 'Learn with noisy labels'),
    ('reference/heads', 'Heads and distribution')])
def test_a_page_needs_no_network_and_fits_the_window(site, page, title, width):
  with browser.open_page(site / f'{page}.html', width=width) as tab:
    assert tab.texts('h1')[0].startswith(title)
    assert not tab.errors()
    assert not tab.requests()
    content, window = tab.widths()
    assert content <= window == width


def test_80_columns_of_code_fit_beside_both_menus(site):
  with browser.open_page(site / 'learning.html', width=1200) as tab:
    widths = tab.run('return [...document.querySelectorAll(".highlight pre")]'
                     '.map(code => [code.scrollWidth, code.clientWidth])')
  assert len(widths) > 10
  assert all(content <= window for content, window in widths)


def test_the_search_finds_a_page(site):
  with browser.open_page(site / 'search.html', query='?q=temperature') as tab:
    # They are shown one after the other.
    waiting.wait_for(lambda: 'Learn with noisy labels' in tab.texts(
        '#search-results li a'), 20.)
    assert not tab.errors()
    assert not tab.requests()

"""Opens pages in headless Chromium, where there is one."""

import atexit
import contextlib
import functools
import json
import pathlib
import shutil
import tempfile

import pytest

from tests import waiting

_ARGUMENTS = (
    '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic',
    '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync',
    '--hide-scrollbars')


@contextlib.contextmanager
def open_page(path, width=1200, height=900, dark=False, query=''):
  """Yields a `Tab` that shows a file; skips the test without a browser.

  Args:
    path: the HTML file.
    width: of the window, in CSS pixels.
    height: of the window, in CSS pixels.
    dark: whether the reader prefers dark pages.
    query: of the address, with its question mark.
  """
  driver = _driver()
  window = driver.current_window_handle
  driver.switch_to.new_window('tab')
  try:
    # Chromium's windows are never narrower than 500 pixels, telephones are.
    driver.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', {
        'width': width, 'height': height, 'deviceScaleFactor': 1,
        'mobile': True})
    driver.execute_cdp_cmd('Emulation.setEmulatedMedia', {'features': [{
        'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}]})
    for log in ('browser', 'performance'):
      driver.get_log(log)  # What came before this page is forgotten.
    driver.get(pathlib.Path(path).resolve().as_uri() + query)
    yield Tab(driver)
  finally:
    driver.close()
    driver.switch_to.window(window)


class Tab:
  """A page in the browser."""

  def __init__(self, driver):
    self._driver = driver

  def errors(self):
    """The messages of the console that are errors or warnings."""
    return [entry['message'] for entry in self._driver.get_log('browser')
            if entry['level'] in ('SEVERE', 'WARNING')]

  def requests(self):
    """The addresses in the network that the page asked for."""
    events = [json.loads(entry['message'])['message']
              for entry in self._driver.get_log('performance')]
    urls = [event['params']['request']['url'] for event in events
            if event['method'] == 'Network.requestWillBeSent']
    return [url for url in urls if url.startswith(('http', 'ws'))]

  def widths(self):
    """The width of the page's content and that of the window."""
    return self.run('return [document.documentElement.scrollWidth, '
                    'document.documentElement.clientWidth]')

  def run(self, javascript):
    """Runs a script and returns what it returns."""
    return self._driver.execute_script(javascript)

  def texts(self, selector):
    """The visible texts of the elements that a CSS selector finds."""
    return [element.text for element in self._find(selector)]

  def click(self, selector):
    """Clicks on the first element that a CSS selector finds."""
    self._find(selector)[0].click()

  def choose(self, selector, value):
    """Chooses an option of a `select` element by its value."""
    from selenium.webdriver.support import ui
    ui.Select(self._find(selector)[0]).select_by_value(value)

  def press(self, *keys):
    """Presses keys, one after the other; names are those of WebDriver."""
    from selenium.webdriver.common import action_chains
    from selenium.webdriver.common import keys as names
    for key in keys:
      pressed = getattr(names.Keys, key) if len(key) > 1 else key
      action_chains.ActionChains(self._driver).send_keys(pressed).perform()

  def reload(self):
    """Opens the page again."""
    self._driver.refresh()

  def download(self, folder, selector):
    """Clicks on what downloads a CSV file, and returns its path."""
    folder = pathlib.Path(folder)
    self._driver.execute_cdp_cmd('Browser.setDownloadBehavior', {
        'behavior': 'allow', 'downloadPath': str(folder)})
    self.click(selector)
    waiting.wait_for(lambda: [
        path for path in folder.iterdir()
        if path.suffix == '.csv'], 20.)
    return next(folder.glob('*.csv'))

  def screenshot(self, path):
    """Writes what the window shows as a PNG file."""
    self._driver.save_screenshot(str(path))

  def _find(self, selector):
    return self._driver.find_elements('css selector', selector)


@functools.cache
def _driver():
  """Starts the browser, once for all tests of the process."""
  webdriver = pytest.importorskip(
      'selenium.webdriver', reason='selenium is not installed')
  browser, driver_path = (
      next(filter(None, map(shutil.which, names)), None)
      for names in (('chromium', 'chromium-browser', 'google-chrome'),
                    ('chromedriver',)))
  if not browser or not driver_path:
    pytest.skip('there is no Chromium, or no chromedriver, on this machine')
  profile = tempfile.TemporaryDirectory()
  options = webdriver.ChromeOptions()
  options.binary_location = browser
  for argument in (*_ARGUMENTS, f'--user-data-dir={profile.name}'):
    options.add_argument(argument)
  options.set_capability(
      'goog:loggingPrefs', {'browser': 'ALL', 'performance': 'ALL'})
  driver = webdriver.Chrome(
      options, webdriver.ChromeService(executable_path=driver_path))
  atexit.register(profile.cleanup)
  atexit.register(driver.quit)  # before the clean-up: last in, first out
  return driver

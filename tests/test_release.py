"""Tests of what a release consists of."""

import email
import pathlib
import re
import zipfile

import pytest

import ln_tfp
import release


@pytest.mark.slow
def test_the_packages_are_the_library_alone(tmp_path):
  # Without isolation, which would need the network.
  packages = release.build(tmp_path, '--no-isolation')
  assert [path.suffix for path in packages] == ['.whl', '.gz']
  assert not release.check_content(packages)

  wheel = packages[0]
  package = pathlib.Path(ln_tfp.__file__).parent
  files = {f'ln_tfp/{path.relative_to(package).as_posix()}'
           for path in package.rglob('*')
           if path.is_file() and '__pycache__' not in path.parts}
  assert {name for name in release.list_files(wheel)
          if name.startswith('ln_tfp/')} == files
  assert 'ln_tfp/py.typed' in files

  with zipfile.ZipFile(wheel) as archive:
    name = next(name for name in archive.namelist()
                if name.endswith('/METADATA'))
    about = email.message_from_bytes(archive.read(name))
  assert about['Version'] == ln_tfp.__version__
  required = {re.match(r'[\w-]+', line)[0].lower()
              for line in about.get_all('Requires-Dist') if 'extra' not in line}
  assert required == {
      'keras', 'numpy', 'scikit-learn', 'scipy', 'tensorflow',
      'tensorflow-probability', 'tf-keras'}


def test_a_stranger_in_a_package_is_named(tmp_path):
  path = tmp_path / f'ln_tfp-{ln_tfp.__version__}-py3-none-any.whl'
  with zipfile.ZipFile(path, 'w') as archive:
    archive.writestr('ln_tfp/heads.py', '')
    archive.writestr('tests/conftest.py', '')
  assert release.check_content([path]) == [
      f'{path.name} has tests/conftest.py.']


def test_the_changelog_tells_of_this_version_and_not_of_the_next():
  assert not release.check_changelog(ln_tfp.__version__)
  assert release.check_changelog('999.0') == [
      'CHANGELOG.md has nothing under "## 999.0".']

"""Tests of what a release consists of."""

import email
import pathlib
import re
import subprocess
import sys
import types
import zipfile

import pytest

import ln_tfp
import release


@pytest.fixture(name='packages', scope='module')
def _packages(tmp_path_factory):
  """The packages of this tree."""
  # Without isolation, which would need the network.
  return release.build(tmp_path_factory.mktemp('dist'), '--no-isolation')


@pytest.mark.slow
def test_the_packages_are_the_library_alone(packages):
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


@pytest.mark.slow
def test_twine_finds_no_fault_with_the_packages(packages):
  pytest.importorskip('twine', reason='twine is not installed')
  done = subprocess.run(
      [sys.executable, '-m', 'twine', 'check', '--strict', *packages],
      text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
  assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_what_is_in_the_packages_and_what_they_need_is_shown(packages, capsys):
  release.show(packages)
  shown = capsys.readouterr().out.splitlines()
  assert '  ln_tfp/heads.py' in shown
  assert '  keras <4,>=3.12' in shown


def test_what_a_package_needs_is_a_tree():
  tree = list(release.dependency_tree('ln_tfp'))
  direct = [line.split()[0] for line in tree if line[0] != ' ']
  assert direct == [
      'keras', 'numpy', 'scikit-learn', 'scipy', 'tensorflow-probability',
      'tensorflow', 'tf-keras']
  names = [line.split()[0] for line in tree]
  assert {'absl-py', 'h5py', 'threadpoolctl'} <= set(names)
  # What packages need stands once; extras are not needed.
  assert names.count('mdurl') == 1
  assert 'pytest' not in names


def test_what_is_missing_for_a_release_is_said_before_it_builds(
    monkeypatch, capsys):
  monkeypatch.setattr(release, '_has', lambda name: name != 'twine')
  monkeypatch.setattr(release, 'build', lambda *_: pytest.fail('it builds'))
  assert release.main([]) == 1
  assert capsys.readouterr().out == (
      'No twine here: pip install build twine\n')


@pytest.mark.parametrize('status, after', [
    (0, ['push']), (1, ['tag --delete'])])
def test_a_tag_comes_before_the_upload_and_leaves_with_it(
    monkeypatch, status, after):
  done = []

  def run(*arguments):
    done.append(' '.join(arguments[1:3]))
    return types.SimpleNamespace(returncode=status)

  monkeypatch.setattr(release, '_run', run)
  monkeypatch.setattr(release, '_git', lambda *arguments: done.append(
      ' '.join(arguments[:1 if arguments[0] == 'push' else 2])))
  assert release.upload([], 'v9.0') == status
  assert done == ['tag --annotate', 'twine upload', *after]


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

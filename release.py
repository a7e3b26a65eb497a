"""Makes a release: checks, builds, and with --upload tags and uploads.

    python release.py             # what it would do; changes nothing but dist
    python release.py --upload    # does it

It needs `pip install build twine`. The version is the one of
`ln_tfp/version.py`, and CHANGELOG.md has an entry for it. The packages are left
in `dist`. What the wheel has in it is listed, and what it needs, where `ln_tfp`
is installed.
"""

import argparse
from collections.abc import Iterator
from importlib import metadata
import pathlib
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).parent
# What an sdist has beside the package itself.
_SDIST = ('CHANGELOG.md', 'CITATION.cff', 'LICENSE', 'MANIFEST.in', 'PKG-INFO',
          'README.md', 'ln_tfp.egg-info/', 'pyproject.toml', 'setup.cfg',
          'setup.py')
# Copies without them are small, and free of what earlier builds left.
_LEFT_OUT = ('.*', '__pycache__', '*.egg-info', 'build', 'dist', 'results')


def main(argv: list[str] | None = None) -> int:
  """Makes a release and returns the exit status."""
  parser = argparse.ArgumentParser(
      description='Checks and builds a release of ln_tfp.')
  parser.add_argument('--upload', action='store_true',
                      help='tag the commit and upload the packages')
  arguments = parser.parse_args(argv)
  if missing := [name for name in ('build', 'twine') if not _has(name)]:
    print(f'No {" and no ".join(missing)} here: pip install build twine')
    return 1
  version = read_version()
  tag = f'v{version}'
  packages = build(ROOT / 'dist')
  print(f'ln_tfp {version}')
  show(packages)
  problems = [*check_tree(tag), *check_changelog(version),
              *check_content(packages)]
  if _run('-m', 'twine', 'check', '--strict', *packages).returncode:
    problems.append('twine finds fault with the packages.')
  if problems:
    print('No release:', *problems, sep='\n  ')
    return 1
  if not arguments.upload:
    print(f'Ready. --upload would tag this commit {tag}, upload '
          f'{len(packages)} packages and push the tag to origin.')
    return 0
  return upload(packages, tag)


def show(packages: list[pathlib.Path]) -> None:
  """Prints what is in the packages, and what the library needs."""
  for package in packages:
    print(f'  {package.name}: {len(list_files(package))} files, '
          f'{package.stat().st_size / 1e3:.0f} kB')
  (wheel,) = (path for path in packages if path.suffix == '.whl')
  print('In the wheel:', *sorted(list_files(wheel)), sep='\n  ')
  if _has('ln_tfp'):
    print('What it needs, and what that needs:', *dependency_tree('ln_tfp'),
          sep='\n  ')


def upload(packages: list[pathlib.Path], tag: str) -> int:
  """Tags the commit, uploads, pushes the tag, and returns the exit status.

  The tag comes first: what can be downloaded has one.
  """
  _git('tag', '--annotate', tag, f'--message=ln_tfp {tag[1:]}')
  status = _run('-m', 'twine', 'upload', *packages).returncode
  if status:
    _git('tag', '--delete', tag)
    print(f'The upload failed; there is no tag {tag}.')
  else:
    _git('push', 'origin', tag)
  return status


def read_version() -> str:
  """Returns the version, from the one place where it stands."""
  return runpy.run_path(str(ROOT / 'ln_tfp/version.py'))['__version__']


def check_tree(tag: str) -> list[str]:
  """Returns what git has against a release."""
  problems = []
  if _git('status', '--porcelain'):
    problems.append('The tree has changes that are not committed.')
  if _git('tag', '--list', tag):
    problems.append(f'There is a tag {tag}: raise ln_tfp/version.py.')
  return problems


def check_changelog(version: str) -> list[str]:
  """Returns a complaint unless CHANGELOG.md tells of a version."""
  text = (ROOT / 'CHANGELOG.md').read_text(encoding='utf-8')
  if re.search(rf'^## {re.escape(version)}$\n+[^#\s]', text, re.MULTILINE):
    return []
  return [f'CHANGELOG.md has nothing under "## {version}".']


def build(folder: pathlib.Path, *options: str) -> list[pathlib.Path]:
  """Builds an sdist, a wheel from it, and returns their paths, sorted.

  Args:
    folder: where to; packages of the same version there are replaced.
    *options: of `python -m build`.
  """
  with tempfile.TemporaryDirectory() as parent:
    copy = pathlib.Path(parent) / 'source'
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*_LEFT_OUT))
    done = _run('-m', 'build', *options, '--outdir', folder, copy,
                stdout=subprocess.DEVNULL)
  if done.returncode:
    raise RuntimeError('The packages could not be built.')
  return sorted(folder.glob(f'ln_tfp-{read_version()}[.-]*'))


def list_files(package: pathlib.Path) -> list[str]:
  """Returns the names of the files in an sdist or a wheel."""
  if package.suffix == '.whl':
    with zipfile.ZipFile(package) as wheel:
      return wheel.namelist()
  with tarfile.open(package) as sdist:
    return [file.name for file in sdist if file.isfile()]


def dependency_tree(
    name: str, indent: str = '', seen: set[str] | None = None
) -> Iterator[str]:
  """Yields a line for each package that an installed one needs, as a tree.

  What a package needs stands below the first line with its name. Extras are
  left out, as are packages that this machine does not need.

  Args:
    name: of the package at the root, which has no line.
    indent: before each line.
    seen: packages with a line already.
  """
  from packaging import requirements  # which `build` needs, too

  seen = set() if seen is None else seen
  for text in sorted(metadata.requires(name) or (), key=str.lower):
    needed = requirements.Requirement(text)
    if needed.marker and not needed.marker.evaluate({'extra': ''}):
      continue
    key = re.sub('[-_.]+', '-', needed.name).lower()
    is_new = key not in seen
    seen.add(key)
    bounds = f' {needed.specifier}' if needed.specifier else ''
    yield f'{indent}{key}{bounds}'
    if is_new and _has(needed.name):
      yield from dependency_tree(needed.name, f'{indent}  ', seen)


def check_content(packages: list[pathlib.Path]) -> list[str]:
  """Returns a complaint for each file of a package that is not the library's.
  """
  version = re.escape(read_version())
  sdist = '|'.join(map(re.escape, _SDIST))
  known = re.compile(
      rf'ln_tfp/|ln_tfp-{version}\.dist-info/|'
      rf'ln_tfp-{version}/(ln_tfp/|{sdist})')
  return [f'{package.name} has {name}.' for package in packages
          for name in list_files(package) if not known.match(name)]


def _has(name):
  """Whether a package is installed; a folder of its name is no package."""
  try:
    metadata.distribution(name)
  except metadata.PackageNotFoundError:
    return False
  return True


def _run(*arguments, **options):
  return subprocess.run([sys.executable, *arguments], **options)


def _git(*arguments):
  return subprocess.run(['git', *arguments], cwd=ROOT, check=True, text=True,
                        stdout=subprocess.PIPE).stdout


if __name__ == '__main__':
  sys.exit(main())

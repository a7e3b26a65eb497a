"""Fingerprints of the code that a run depends on.

Of each part of a run (model, method, loss, data, noise, training) a digest of
the modules that it uses, and of no others: those that they import, too, where
names that a package passes on count as imported from where they are defined.
What computes nothing does not count: comments, docstrings, layout, search
grids, checks of arguments.

The sources are read when this module is imported. A process whose files are
edited while it trains says what it has computed with, not what is there now.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
import functools
import hashlib
import importlib.util
import json
import pathlib
import sys
from typing import Any

from experiments import data
from experiments import methods
from experiments.training import results
from experiments.training import runs

_PACKAGES = ('experiments', 'ln_tfp')
# They compute nothing; what they hold of a run, its fingerprint has elsewhere.
# And what another backend needs: runs are TensorFlow's.
_NO_NUMBERS = (
    'experiments.data.registry', 'experiments.methods.registry',
    'ln_tfp.backend.on_torch', 'ln_tfp.checks', 'ln_tfp.files')
_TRAINING = tuple(
    f'experiments.training.{name}'
    for name in (
        'companions', 'evaluation', 'loading', 'runner', 'steps', 'trainer'))
_DATA = tuple(
    f'experiments.data.{name}'
    for name in ('batches', 'examples', 'preprocessing'))
# Of the registered traits of a data set, those that change its examples.
_TRAITS = (
    'images', 'preprocessing', 'label_sets', 'clean', 'mapping',
    'mapping_of_code', 'authors_sizes', 'anchor_percentile')
# Settings of a run whose value changes nothing in what code it takes.
_NO_CODE = ('noise', 'seed')
# The points of a search.
_GRIDS = ('grid', 'ratio_grid')
# Sources that make of every run what those before them made, to the last bit:
# (module, first digits of its digest): digest before. Training with both showed
# it. They came with the head's warm-up, which no run has, with PyTorch, with
# the classes that a history has apart, and with features of folders.
_AS_BEFORE = {
    ('ln_tfp.heads', 'a6468cd09089'):
        '9b9d2e243c7b60542d02d771dcdf328372091a2685d346c3afdfb71b194b6c80',
    ('experiments.methods.ln', '087fa41eaf00'):
        'ee5c3c8136e1b7ac9798ea3a684183514a5fdcb71c43029d613869566a50e9a6',
    ('experiments.methods.sgn', '0f137f818d73'):
        '013493933f86096f9cd7a20761e16331ad7f66a2526146950293606a95e40989',
    ('ln_tfp.normal', '5a04f1609cee'):
        'bc13b32aad5d5d919f62b546116782ae5068436c1c40b7b56b2a6a8828d638da',
    ('ln_tfp.labels', '170ff11a9bf0'):
        '34326711f73c3f864141585e791799c35c8d07ef5491560c87c0096ae12806f8',
    ('ln_tfp.backend', 'deb7c2cc217d'):
        'fc7579e6d52bb94d8143827fa9de873e7a4d87bb0a62a517cff08c95c9e323f6',
    ('ln_tfp.losses.monte_carlo_scan', 'd46775028d55'):
        '09f5265ddbdda44150e7341c909fb4487a710fa0ef2e845cf241f04dfc21cfb0',
    ('experiments.training.evaluation', '123f369f2c2d'):
        'dc7d6855456c101e4763c37d73d37dc6eb82ccdf3c83519a7914ac064de064bb',
    ('experiments.training.trainer', 'c9277091f2dc'):
        'f63c9e61d868effd688e86fa56dcf0b7bc306b15c14785b2d7a7a8420a4b3353',
    ('experiments.data.features', '0bc1480c16c5'):
        'd0ea6c261b72e67b365ea0f674c54553f1acfaf30ebbabf74cc68fcc289ad293',
}
# What a run leaves for another one; none of its own numbers depends on it.
LEAVES = 'leaves'


def of(run: runs.Run) -> dict[str, str]:
  """The digest of each part of the code that a run depends on."""
  return dict(_of(*_decisive(run)))


def differences(result: results.Result) -> tuple[str, ...] | None:
  """The parts in which the code of a result is not this process's.

  None where the result does not say, as those of older versions do not.
  """
  if not result.code:
    return None
  decisive = _decisive_of(json.dumps({
      name: value for name, value in result.run.items()
      if name not in _NO_CODE}))
  if decisive is None:
    return None
  now = dict(_of(*decisive))
  return tuple(
      part for part in sorted({*now, *result.code})
      if now.get(part) != result.code.get(part))


def notes(
    stored: Iterable[results.Result], names: bool = True) -> list[str]:
  """A line about the numbers that other code has made, if there are any.

  Args:
    stored: the results behind a table.
    names: whether the runs are named.
  """
  stored = list(stored)
  changed = {result.key: set(differences(result) or ()) - {LEAVES}
             for result in stored}
  old = [result for result in stored if changed[result.key]]
  if not old:
    return []
  parts = sorted(set().union(*changed.values()))
  line = (f'{len(old)} of {len(stored)} runs are of other code than this '
          f'(changed: {", ".join(parts)}); --retrain makes them anew')
  return [f'{line}: {_names(old)}.' if names else f'{line}.']


def _names(stored: Iterable[results.Result]) -> str:
  """Runs for a person: LN sym:0.4 seed 0-4."""
  seeds = {}
  for result in stored:
    run = result.run
    seeds.setdefault((run['method'], run['noise']), []).append(run['seed'])
  return ', '.join(f'{method} {noise} seed {_ranges(found)}'
                   for (method, noise), found in seeds.items())


def _ranges(numbers: Iterable[int]) -> str:
  """Whole numbers for a person: 0-4, 7."""
  ordered = sorted(set(numbers))
  parts = []
  for number in ordered:
    if parts and parts[-1][1] == number - 1:
      parts[-1][1] = number
    else:
      parts.append([number, number])
  return '+'.join(
      str(first) if first == last else f'{first}-{last}'
      for first, last in parts)


def _module_of(method: str) -> str:
  return type(methods.get(method)).__module__


def _decisive(run: runs.Run) -> tuple[str, str, str, str | None]:
  """What of a run decides which code it takes: arguments of `_of`."""
  asks = methods.asks(run.resolve_method())
  return (run.dataset, run.model, _module_of(run.method),
          None if asks is None else _module_of(asks.name))


@functools.lru_cache(maxsize=10_000)
def _decisive_of(
    settings: str) -> tuple[str, str, str, str | None] | None:
  """The same of a run as JSON; None where it is not known here."""
  try:
    return _decisive(runs.Run.from_dict(json.loads(settings)))
  except (TypeError, ValueError):
    return None


@functools.cache
def _of(
    dataset: str, model: str, method: str,
    asks: str | None) -> tuple[tuple[str, str], ...]:
  own = _closure([method], _within('experiments.methods'))
  traits = data.traits(dataset)
  loader = [f'experiments.data.{traits.module}'] if traits.module else []
  parts = {
      'model': _digest(_closure(
          ['experiments.models.network',
           _exports('experiments.models').get(model, 'experiments.models')],
          _within('experiments.models', 'ln_tfp'))),
      'method': _digest(own),
      'loss': _digest(_closure(_library(own), _within('ln_tfp'))),
      'data': _digest(
          _closure([*_DATA, *loader], _within('experiments.data', 'ln_tfp')),
          repr([(name, getattr(traits, name)) for name in _TRAITS])),
      'noise': _digest(_closure(['ln_tfp.noise'], _within('ln_tfp'))),
      # Of what they take of the library, metrics and noise, no further.
      'training': _digest([*_TRAINING, *_library(_TRAINING)]),
  }
  if asks is not None:
    theirs = _closure([asks], _within('experiments.methods'))
    parts[LEAVES] = _digest(
        [*theirs, *_closure(_library(theirs), _within('ln_tfp'))])
  return tuple(sorted(parts.items()))


def _within(*packages: str) -> Callable[[str], bool]:
  return lambda module: module not in _NO_NUMBERS and any(
      module == package or module.startswith(f'{package}.')
      for package in packages)


def _library(modules: Iterable[str]) -> list[str]:
  """What modules take of the library itself."""
  return sorted({
      needed for module in modules for needed in _imports(module)
      if _within('ln_tfp')(needed)})


def _closure(
    roots: Iterable[str], allowed: Callable[[str], bool]) -> list[str]:
  """Modules with all that they import, as far as it is allowed."""
  found, left = set(), list(roots)
  while left:
    module = left.pop()
    if module not in found:
      found.add(module)
      left.extend(filter(allowed, _imports(module)))
  return sorted(found)


def _digest(modules: Iterable[str], more: str = '') -> str:
  text = '\n'.join([
      *(f'{module} {_digest_of(module)}' for module in modules), more])
  return hashlib.sha256(text.encode()).hexdigest()[:12]


def _digest_of(module: str) -> str:
  found = _source_digest(_source(module))
  return _AS_BEFORE.get((module, found[:12]), found)


@functools.cache
def _source_digest(source: bytes) -> str:
  words = '\n'.join(_words(_parse(source)))
  return hashlib.sha256(words.encode(errors='backslashreplace')).hexdigest()


def _words(node: Any) -> Iterator[str]:
  """What a syntax tree says, without docstrings and places.

  Fields that are empty are left out, as Python's versions differ in those.
  """
  if isinstance(node, list):
    for item in node:
      yield from _words(item)
  elif isinstance(node, ast.AST):
    if isinstance(node, ast.FunctionDef) and node.name in _GRIDS:
      return
    yield type(node).__name__
    for name, value in ast.iter_fields(node):
      if name == 'body' and isinstance(value, list):
        value = _without_docstring(value)
      if value is not None and value != []:
        yield name
        yield from _words(value)
    yield '.'
  else:
    yield repr(node)


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
  first = body[0] if body else None
  is_text = (isinstance(first, ast.Expr)
             and isinstance(first.value, ast.Constant)
             and isinstance(first.value.value, str))
  return body[1:] if is_text else body


@functools.cache
def _imports(module: str) -> tuple[str, ...]:
  """The modules of our packages that a module uses."""
  tree, found, packages = _parse(_source(module)), set(), {}
  for node in ast.walk(tree):
    if isinstance(node, ast.ImportFrom) and _is_ours(node.module):
      for name in node.names:
        target = f'{node.module}.{name.name}'
        if _is_package(target):
          packages[name.asname or name.name] = target
        else:
          found.add(_defining(node.module, name.name))
    elif isinstance(node, ast.Import):
      packages |= {name.asname or name.name: name.name for name in node.names
                   if name.name in _PACKAGES}
  for node in ast.walk(tree):
    if (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        and node.value.id in packages):
      found.add(_defining(packages[node.value.id], node.attr))
  return tuple(sorted(found - {module}))


def _defining(package: str, name: str) -> str:
  """The module in which something is defined that a package passes on."""
  if f'{package}.{name}' in _SOURCES:
    return f'{package}.{name}'
  return _exports(package).get(name, package)


@functools.cache
def _exports(package: str) -> dict[str, str]:
  """What a package passes on, imported at once or with `experiments.lazy`."""
  if not _is_package(package):
    return {}
  found = {}
  for node in ast.walk(_parse(_source(package))):
    if isinstance(node, ast.ImportFrom) and _is_ours(node.module):
      for name in node.names:
        if node.module in _SOURCES and node.module != package:
          found[name.asname or name.name] = node.module
    elif isinstance(node, ast.Dict):
      for key, value in zip(node.keys, node.values):
        place = getattr(value, 'value', None)
        if isinstance(place, str) and _is_ours(place) and ':' in place:
          found[key.value] = place.partition(':')[0]
  return found


def _is_ours(module: str | None) -> bool:
  return (module or '').partition('.')[0] in _PACKAGES


def _is_package(module: str) -> bool:
  return module in _SOURCES and _SOURCES[module][0]


def _source(module: str) -> bytes:
  if module in _SOURCES:
    return _SOURCES[module][1]
  file = getattr(sys.modules.get(module), '__file__', None)
  return pathlib.Path(file).read_bytes() if file else b''


_parse = functools.cache(ast.parse)


def _read_sources() -> dict[str, tuple[bool, bytes]]:
  """All modules of our packages: whether it is a package, and its source."""
  found = {}
  for package in _PACKAGES:
    [directory, *_] = importlib.util.find_spec(
        package).submodule_search_locations
    for file in pathlib.Path(directory).rglob('*.py'):
      parts = file.relative_to(pathlib.Path(directory).parent).parts
      is_package = parts[-1] == '__init__.py'
      name = '.'.join(
          parts[:-1] if is_package else (*parts[:-1], file.stem))
      found[name] = is_package, file.read_bytes()
  return found


_SOURCES = _read_sources()

"""Finds the methods of files in this folder that no list names."""

from __future__ import annotations

from collections.abc import Iterable
import importlib
import inspect
import pathlib
import pkgutil

from experiments.methods import base

_FOLDER = pathlib.Path(__file__).parent


def others(known: Iterable[type[base.Method]]) -> dict[str, type[base.Method]]:
  """Methods by name that are not among the known ones."""
  listed = {method.__module__ for method in known} | {
      f'{__package__}.{name}' for name in ('base', 'discovery', 'registry')}
  found = {}
  for info in pkgutil.iter_modules([str(_FOLDER)], f'{__package__}.'):
    if info.name not in listed:
      module = importlib.import_module(info.name)
      found |= {
          member.name: member for member in vars(module).values()
          if inspect.isclass(member) and member.__module__ == info.name
          and issubclass(member, base.Method) and not inspect.isabstract(member)
          and hasattr(member, 'name')}
  return found

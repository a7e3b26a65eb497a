"""Settings written as text: `temperature=0.5 rank=4`.

Values are JSON, or plain words. The form serves in flags, in recipes and in
the tables of hyperparameters.
"""

from collections.abc import Mapping
import json
from typing import Any


def parse(text: str) -> dict[str, Any]:
  """The settings by name, in their order; raises a `ValueError`."""
  settings = {}
  for pair in text.split():
    name, equals, value = pair.partition('=')
    if not (name and equals and value):
      raise ValueError(
          f'Settings must be NAME=VALUE, separated by blanks. Received: {text}')
    if name in settings:
      raise ValueError(f'{name} is given twice. Received: {text}')
    try:
      settings[name] = json.loads(value)
    except json.JSONDecodeError:
      settings[name] = value
    except RecursionError as error:
      raise ValueError(f'{name} is nested too deep.') from error
  return settings


def write(settings: Mapping[str, Any]) -> str:
  """The inverse of `parse`."""
  return ' '.join(
      f'{name}={_text(value)}' for name, value in settings.items())


def _text(value: Any) -> str:
  if isinstance(value, str):
    return value
  return json.dumps(value, separators=(',', ':'))

"""Issues as tasks of Label Studio, with the suggestions as predictions.

A labelling configuration that fits the tasks (`config`) asks for one choice,
called `label`, about an object called `example`.
"""

from collections.abc import Sequence
import json
import os
from typing import Any

from ln_tfp import files
from ln_tfp import page
from ln_tfp.audit.review import pictures


def config(class_names: Sequence[str], kind: str = 'Image') -> str:
  """Returns a labelling configuration.

  Args:
    class_names: the choices.
    kind: 'Image', or 'Text' for rows of tables and everything else.
  """
  choices = ''.join(
      f'<Choice value="{page.escape(name)}"/>' for name in class_names)
  return (f'<View><{kind} name="example" value="${kind.lower()}"/>'
          f'<Choices name="label" toName="example">{choices}</Choices></View>')


def tasks(report, prefix: str = '') -> list[dict[str, Any]]:
  """Returns a task for each issue, the worst first.

  Args:
    report: a `LabelReport`.
    prefix: what to put before an id to make it the address of an image, such
      as '/data/local-files/?d=images/'.
  """
  if not prefix and any(map(pictures.is_picture, report.examples.values())):
    raise ValueError(
        'Argument `prefix` must say where Label Studio finds the pictures, '
        "such as '/data/local-files/?d=images/'. Received: prefix=''.")
  found = []
  for i in report.ranked_issues.tolist():
    given, suggested = (
        report.class_names[labels[i]] for labels in (
            report.given, report.suggested))
    data = {'id': str(report.ids[i]), 'position': i, 'given': given,
            'suggested': suggested}
    if i in report.rows:
      data['text'] = '\n'.join(
          f'{name}: {cell}' for name, cell in report.rows[i].items())
    elif prefix:
      data['image'] = f'{prefix}{report.ids[i]}'
    else:
      data['text'] = str(report.ids[i])
    found.append({'data': data, 'predictions': [{
        'model_version': 'ln_tfp',
        'score': round(float(report.wrong_probability[i]), 6),
        'result': [{
            'from_name': 'label', 'to_name': 'example', 'type': 'choices',
            'value': {'choices': [suggested]}}]}]})
  return found


def write(report, path: str | os.PathLike, prefix: str = '') -> None:
  """Writes the tasks as JSON."""
  text = json.dumps(tasks(report, prefix), ensure_ascii=False, indent=1)
  files.write_atomically(path, text.encode())

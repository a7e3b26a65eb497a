"""The page of a `LabelReport`: to look at issues and to decide about them.

Its parts are in `assets`: markup, style and script of the review. What the
script knows of the examples is in one JSON element, `audit`.
"""

import functools
import importlib.resources

import numpy as np

from ln_tfp import page as page_lib
from ln_tfp.audit.review import pictures

_MAX_PAIRS = 15
_MAX_CLASSES = 30
_MAX_FEATURES = 12
_MAX_CELL = 2_000  # characters of a cell of a table
_MAX_COLUMNS = 30
# Sides of pictures in pixels: of the examples, and of neighbours. Many
# examples get smaller ones, so that the page can still be opened.
_LARGE, _SMALL, _MANY = 256, 96, 500
_TINY = 16  # side of pictures of which every pixel matters


def make(report, title: str) -> page_lib.Page:
  """Returns the page of a report."""
  num_issues = len(report.ranked_issues)
  page = page_lib.Page(title)
  _add_trust(page, report)
  figures = {
      'labels': f'{len(report):,}',
      'classes': f'{len(report.class_names):,}',
      _found(report): f'{num_issues:,}',
  }
  if report.trust.has_learnt:
    figures['noise rate'] = f'{100 * report.noise_rate:.1f} %'
    page.figures(figures).note(f'The noise rate: {report.noise_rate_kind}.')
  else:
    page.figures(figures)
  _add_classes(page, report)
  _add_review(page, report)
  _add_confusions(page, report)
  page.section('Quality of the labels')
  page.svg(
      pictures.histogram(report.quality, report.is_issue),
      f'Histogram of the quality of {len(report)} labels, of which {num_issues}'
      ' are issues.',
      'Number of labels over their quality, on a scale of square roots; issues '
      f'and the rest in two colours. Issues have a quality below '
      f'{report.threshold:.4g}.')
  return page


def _add_trust(page, report):
  trust = report.trust
  percent = lambda share: f'{100 * share:.1f}\u00a0%'  # never broken
  warnings = trust.warnings
  if not trust.has_learnt:  # before anything else
    page.warning(warnings.pop(0))
  own = '' if trust.own is None else (
      f" The network's own outputs: {percent(trust.own.accuracy)} "
      f'({trust.own.kind}).')
  page.lead(
      f'The model predicts {percent(trust.accuracy)} of the labels '
      f'({trust.kind}), where chance is {percent(trust.chance)}.{own} Of '
      f'{len(report):,} labels {len(report.ranked_issues):,} {_found(report)}.')
  for warning in warnings:
    page.warning(warning)


def _found(report):
  """Says what issues are; those of a model that knows little are no news."""
  return 'look wrong' if report.trust.has_learnt else 'are flagged'


def _add_review(page, report):
  page.section('Review')
  if not len(report.ranked_issues):
    page.paragraph('There is nothing to show.')
    return
  page.style(_asset('review.css')).data('audit', _data(report))
  page.raw(_asset('review.html')).script(_asset('review.js'))
  if report.shown < len(report.ranked_issues):
    page.note(f'These are the worst {report.shown:,} of '
              f'{len(report.ranked_issues):,} issues, and a random sample.')


def _add_classes(page, report):
  """What the model knows of each class: a table of the worst of them."""
  trust = report.trust
  page.section('Classes')
  percent = lambda share: '–' if np.isnan(share) else f'{100 * share:.1f} %'
  page.table(
      ('class', 'labels', 'predicted', 'chance', 'flagged'),
      [(report.class_names[k], f'{trust.class_sizes[k]:,}',
        percent(trust.class_accuracy[k]), percent(trust.class_chance[k]),
        percent(trust.class_flagged[k]))
       for k in trust.worst_first[:_MAX_CLASSES]],
      'Labels of each class: how many there are, how many the model predicts '
      f'({trust.kind}), how often it says the class at all, how many are '
      'flagged')
  if len(report.class_names) > _MAX_CLASSES:
    page.note(f'These are the {_MAX_CLASSES} of {len(report.class_names):,} '
              'classes of which most is flagged.')


def _add_confusions(page, report):
  page.section('Confused classes')
  if len(report.class_names) <= _MAX_CLASSES:
    page.svg(
        pictures.transition_matrix(
            report.transition_matrix, report.class_names),
        'Heat map of the estimated transition matrix; the table of confused '
        'classes has its largest entries.',
        'Which labels (columns) the examples of each class (rows) have got, in '
        'percent; estimated as the noise rate is.')
  if report.confused_pairs:
    positions = {name: i for i, name in enumerate(report.class_names)}
    rows = []
    for pair in report.confused_pairs[:_MAX_PAIRS]:
      share = f'{100 * pair.share:.1f} %'
      if report.transition_stderr is not None:
        error = report.transition_stderr[
            positions[pair.true], positions[pair.given]]
        share = f'{100 * pair.share:.1f} ± {100 * error:.1f} %'
      rows.append((pair.true, pair.given, f'{pair.count:,}', share))
    page.table(('true class', 'given label', 'labels', 'share of the class'),
               rows, 'Most frequent confusions')


def _data(report):
  """Returns what the script needs to know."""
  shown = report.shown_positions.tolist()
  control = {i: rank for rank, i in enumerate(report.control_sample.tolist())}
  items = []
  for rank, i in enumerate(shown):
    near = report.neighbours.get(i, ((), ()))
    items.append({
        'position': i,
        'id': str(report.ids[i]),
        'given': int(report.given[i]),
        'suggested': int(report.suggested[i]),
        'wrong': round(float(report.wrong_probability[i]), 4),
        'nearest': _nearest(report, i),
        'near': [list(part) for part in near],
        'worst': rank < report.shown,
        'control': control.get(i, -1),
    })
  needed = {*shown, *(i for item in items for part in item['near']
                      for i in part)}
  images = {i: report.examples[i] for i in needed if i in report.examples and
            pictures.is_picture(report.examples[i])}
  return {
      'fingerprint': report.fingerprint,
      'names': report.class_names,
      'numIssues': len(report.ranked_issues),
      'items': items,
      'pictures': _pictures(images, set(shown)),
      'pixels': {i: 1 for i, image in images.items()
                 if max(image.shape[:2]) <= _TINY},
      'rows': {i: _row(report, i) for i in needed if i not in images},
  }


def _nearest(report, i):
  """Returns the likeliest classes with their shares; the given is one."""
  found = {
      int(k): round(float(share), 4) for k, share in zip(
          report.nearest_classes[i], report.nearest_probabilities[i])}
  found.setdefault(
      int(report.given[i]), round(1. - float(report.wrong_probability[i]), 4))
  return list(found.items())


def _pictures(images, shown):
  low, high = pictures.value_range(images.values())
  large = _LARGE if len(shown) <= _MANY else _SMALL
  return {
      i: page_lib.data_uri(pictures.thumbnail(
          image, low, high, large if i in shown else _SMALL))
      for i, image in images.items()}


def _row(report, i):
  """Returns an example without a picture as pairs of a name and a text."""
  if i in report.rows:
    cells = list(report.rows[i].items())
    shown = [[str(name), _shorten(str(cell))]
             for name, cell in cells[:_MAX_COLUMNS]]
    if len(cells) > _MAX_COLUMNS:
      shown.append(['…', f'{len(cells) - _MAX_COLUMNS:,} more columns'])
    return shown
  if i not in report.examples:
    return []
  values = np.ravel(report.examples[i])
  texts = [f'{value:.4g}' if isinstance(value, np.floating) else str(value)
           for value in values[:_MAX_FEATURES]]
  return [['features', ', '.join(texts) + (
      ', …' if len(values) > _MAX_FEATURES else '')]]


def _shorten(text):
  return text if len(text) <= _MAX_CELL else f'{text[:_MAX_CELL]} …'


@functools.cache
def _asset(name):
  return importlib.resources.files(__package__).joinpath(
      'assets', name).read_text(encoding='utf-8')

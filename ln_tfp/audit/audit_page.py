"""The page that shows a `LabelReport`."""

import numpy as np

from ln_tfp import page as page_lib
from ln_tfp.audit import pictures

_MAX_PAIRS = 15
_MAX_FEATURES = 12


def make(report, title: str) -> page_lib.Page:
  """Returns the page of a report."""
  num_issues = len(report.ranked_issues)
  page = page_lib.Page(title)
  page.lead(f'Of {len(report):,} labels {num_issues:,} look wrong, '
            f'{100 * report.noise_rate:.1f} %.')
  page.figures({
      'labels': f'{len(report):,}',
      'classes': len(report.class_names),
      'issues': f'{num_issues:,}',
      'estimated noise': f'{100 * report.noise_rate:.1f} %',
  })
  _add_gallery(page, report)
  _add_confusions(page, report)
  page.section('Quality of the labels')
  page.svg(
      pictures.histogram(report.quality, report.is_issue),
      f'Histogram of the quality of {len(report)} labels, of which {num_issues}'
      ' are issues.',
      'Number of labels over their quality, on a scale of square roots; issues '
      'and the rest in two colours.')
  page.note(
      f'A label is an issue if its quality is below {report.threshold:.4g}. '
      'There are as many issues as examples that the model places nearer to '
      'another class than to that of their label.')
  return page


def _add_confusions(page, report):
  page.section('Confused classes')
  page.svg(
      pictures.transition_matrix(report.transition_matrix, report.class_names),
      'Heat map of the estimated transition matrix; the table of confused '
      'classes has its largest entries.',
      'Which labels (columns) the examples of each class (rows) have got, in '
      'percent.')
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


def _add_gallery(page, report):
  page.section('The worst labels')
  shown = [i for i in report.ranked_issues.tolist() if i in report.examples]
  if not shown:
    page.paragraph('There is nothing to show.')
    return
  page.style(_STYLE).data('issues', _items(report, shown))
  page.data('class-names', report.class_names).raw(_GALLERY).script(_SCRIPT)
  if len(shown) < len(report.ranked_issues):
    page.note(f'These are {len(shown):,} of {len(report.ranked_issues):,} '
              'issues.')


def _items(report, shown):
  """Returns what the script needs to know of each example."""
  arrays = [report.examples[i] for i in shown]
  low, high = _range(arrays)
  items = []
  for i, array in zip(shown, arrays):
    item = {
        'id': str(report.ids[i]),
        'given': int(report.given[i]),
        'suggested': int(report.suggested[i]),
        'quality': f'{report.quality[i]:.4f}',
    }
    if pictures.is_picture(array):
      item['picture'] = page_lib.data_uri(
          pictures.thumbnail(array, low, high))
    else:
      values = np.ravel(array)
      item['features'] = ', '.join(
          f'{value:.4g}' if isinstance(value, np.floating) else str(value)
          for value in values[:_MAX_FEATURES])
      if len(values) > _MAX_FEATURES:
        item['features'] += ', …'
    items.append(item)
  return items


def _range(arrays):
  """Returns what is black and what is white in the pictures."""
  numbers = [array for array in arrays if pictures.is_picture(array)]
  if not numbers:
    return 0., 1.
  low = min(float(array.min()) for array in numbers)
  high = max(float(array.max()) for array in numbers)
  if low >= 0.:
    # Pixels in [0, 1], 0..16 (digits) or 0..255 keep their brightness.
    fulls = [full for full in (1., 16., 255.) if high <= full]
    return 0., fulls[0] if fulls else high
  return low, high


_GALLERY = """
<div class="controls">
<label>given <select id="by-given"></select></label>
<label>suggested <select id="by-suggested"></select></label>
<span class="pager">
<button type="button" id="previous">Previous</button>
<output id="position" aria-live="polite"></output>
<button type="button" id="next">Next</button>
</span>
</div>
<ul id="gallery" class="gallery"></ul>
<noscript><p>The gallery needs JavaScript.</p></noscript>
"""

_STYLE = """
.controls {
  display: flex; flex-wrap: wrap; gap: .75rem; align-items: center;
  margin: 0 0 1rem;
}
.controls label { color: var(--muted); font-size: .875rem; }
.pager { display: inline-flex; gap: .5rem; align-items: center; }
.gallery {
  list-style: none; margin: 0 0 1rem; padding: 0; display: grid; gap: .75rem;
  grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr));
}
.gallery li {
  background: var(--surface); border-radius: .5rem; padding: .75rem;
  font-size: .875rem;
}
.gallery img {
  display: block; width: 6rem; height: 6rem; object-fit: contain;
  image-rendering: pixelated; margin: 0 0 .5rem;
}
.gallery .features { color: var(--muted); margin: 0 0 .5rem; }
.gallery .given { text-decoration: line-through; color: var(--warn); }
.gallery .id { color: var(--muted); font-size: .75rem; }
"""

_SCRIPT = """
'use strict';
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const issues = read('issues');
  const names = read('class-names');
  const size = 24;
  const filters = {};
  let first = 0;

  const add = (parent, tag, name, text) => {
    const element = document.createElement(tag);
    if (name) element.className = name;
    if (text !== undefined) element.textContent = text;
    return parent.appendChild(element);
  };

  const card = (list, issue) => {
    const item = add(list, 'li');
    if (issue.picture) {
      const image = add(item, 'img');
      image.alt = 'Example ' + issue.id;
      image.src = issue.picture;
    } else {
      add(item, 'p', 'features', issue.features);
    }
    add(item, 'span', 'given', names[issue.given]);
    add(item, 'span', '', ' \\u2192 ');
    add(item, 'strong', 'suggested', names[issue.suggested]);
    add(item, 'div', '', 'quality ' + issue.quality);
    add(item, 'div', 'id', issue.id);
  };

  const show = () => {
    const chosen = issues.filter((issue) =>
        Object.entries(filters).every(([key, select]) =>
            select.value === '' || issue[key] === Number(select.value)));
    first = Math.max(0, Math.min(first, chosen.length - 1));
    first -= first % size;
    const list = document.getElementById('gallery');
    list.replaceChildren();
    const part = chosen.slice(first, first + size);
    part.forEach((issue) => card(list, issue));
    document.getElementById('position').textContent = chosen.length ?
        `${first + 1}\\u2013${first + part.length} of ${chosen.length}` :
        'none';
    document.getElementById('previous').disabled = first === 0;
    document.getElementById('next').disabled = first + size >= chosen.length;
  };

  for (const key of ['given', 'suggested']) {
    const select = filters[key] = document.getElementById('by-' + key);
    add(select, 'option', '', 'all classes').value = '';
    [...new Set(issues.map((issue) => issue[key]))].sort((a, b) => a - b)
        .forEach((k) => { add(select, 'option', '', names[k]).value = k; });
    select.addEventListener('change', () => { first = 0; show(); });
  }
  document.getElementById('next').addEventListener('click', () => {
    first += size;
    show();
  });
  document.getElementById('previous').addEventListener('click', () => {
    first -= size;
    show();
  });
  show();
})();
"""

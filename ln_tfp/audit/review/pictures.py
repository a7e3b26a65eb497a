"""Pictures for the page: drawn as SVG, or small files of examples."""

from collections.abc import Iterable
from collections.abc import Sequence
import io

import numpy as np

from ln_tfp import page
from ln_tfp.audit import pillow

_EXACT = 64  # side of pictures that are kept pixel by pixel
_NUM_BINS = 40
# Beyond so many classes cells are too small for numbers and names.
_MAX_LABELLED = 20


def transition_matrix(matrix: np.ndarray, names: Sequence[str]) -> str:
  """Returns a heat map of P(given | true) as an SVG element."""
  size = len(matrix)
  labelled = size <= _MAX_LABELLED
  cell = 44 if labelled else max(4, 640 // size)
  names = [name if len(name) <= 14 else f'{name[:13]}…' for name in names]
  margin = 24
  if labelled:
    margin += 16 + 8 * max(map(len, names))
  extent = margin + cell * size
  parts = []
  for i, row in enumerate(matrix):
    for j, share in enumerate(row):
      x, y = margin + cell * j, margin + cell * i
      # Confusions are what matters: they have a colour of their own.
      colour = 'var(--accent)' if i == j else 'var(--warn)'
      title = f'true {names[i]}, given {names[j]}: {100 * share:.1f} %'
      parts.append(
          f'<rect x="{x}" y="{y}" width="{cell - 1}" height="{cell - 1}" '
          f'fill="{colour}" fill-opacity="{min(1., share**.5) * .85:.3f}">'
          f'<title>{page.escape(title)}</title></rect>')
      if labelled and share >= .005:
        parts.append(_text(x + cell / 2, y + cell / 2 + 4, f'{100 * share:.0f}',
                           'middle'))
  if labelled:
    for i, name in enumerate(names):
      middle = margin + cell * (i + .5)
      parts.append(_text(margin - 6, middle + 4, name, 'end'))
      parts.append(_text(middle, margin - 6, name, 'start',
                         f'rotate(-45 {middle} {margin - 6})'))
  parts.append(_text(margin + cell * size / 2, 14, 'given label', 'middle'))
  middle = margin + cell * size / 2
  parts.append(_text(14, middle, 'true class', 'middle',
                     f'rotate(-90 14 {middle})'))
  return _svg(extent + .7 * margin, extent, parts)  # the last slanted name


def histogram(quality: np.ndarray, is_issue: np.ndarray) -> str:
  """Returns histograms of the quality, issues and the rest, as SVG.

  The heights are on a scale of square roots, so that few issues can be seen
  beside many good labels.
  """
  edges = np.linspace(0., 1., _NUM_BINS + 1)
  groups = [(np.histogram(quality[mask], edges)[0], colour)
            for mask, colour in ((~is_issue, 'var(--accent)'),
                                 (is_issue, 'var(--warn)'))]
  tallest = max(int(counts.max()) for counts, _ in groups) or 1
  width, height, left, bottom = 640, 220, 50, 30
  bar = (width - left) / _NUM_BINS
  parts = []
  for counts, colour in groups:
    for i, count in enumerate(counts):
      if count:
        tall = (height - bottom - 16) * (count / tallest)**.5
        title = (f'{count} labels of quality {edges[i]:.3f} to '
                 f'{edges[i + 1]:.3f}')
        parts.append(
            f'<rect x="{left + bar * i:.1f}" '
            f'y="{height - bottom - tall:.1f}" width="{bar - 1:.1f}" '
            f'height="{tall:.1f}" fill="{colour}" fill-opacity=".75">'
            f'<title>{title}</title></rect>')
  parts.append(f'<path d="M{left} {height - bottom}H{width}" '
               'stroke="var(--line)"/>')
  for tick in (0., .25, .5, .75, 1.):
    anchor = {0.: 'start', 1.: 'end'}.get(tick, 'middle')
    parts.append(_text(left + tick * (width - left), height - 10, f'{tick:g}',
                       anchor))
  parts.append(_text(left - 6, 20, f'{tallest:,}', 'end'))
  parts.append(_text(left - 6, height - bottom, '0', 'end'))
  return _svg(width, height, parts)


def is_picture(example: np.ndarray) -> bool:
  """Whether an example can be shown as a picture."""
  return example.ndim == 2 or (
      example.ndim == 3 and example.shape[-1] in (1, 3, 4))


def value_range(examples: Iterable[np.ndarray]) -> tuple[float, float]:
  """Returns what is black and what is white in pictures."""
  ends = [(float(array.min()), float(array.max())) for array in examples]
  if not ends:
    return 0., 1.
  low, high = min(end[0] for end in ends), max(end[1] for end in ends)
  if low >= 0.:
    # Pixels in [0, 1], 0..16 (digits) or 0..255 keep their brightness.
    return 0., next((full for full in (1., 16., 255.) if high <= full), high)
  return low, high


def thumbnail(
    example: np.ndarray, low: float, high: float, side: int) -> bytes:
  """Returns an image `[H, W]` or `[H, W, C]` as a small file.

  Tiny ones and those with transparency are PNG, others JPEG.

  Args:
    example: the image.
    low: the value that is black.
    high: the value that is white.
    side: largest width and height.
  """
  scaled = (example.astype(np.float64) - low) / max(high - low, 1e-12)
  pixels = np.round(255. * np.clip(scaled, 0., 1.)).astype(np.uint8)
  if pixels.ndim == 3 and pixels.shape[-1] == 1:
    pixels = pixels[..., 0]
  image = pillow.load().Image.fromarray(pixels)
  image.thumbnail((side, side))
  file = io.BytesIO()
  if max(image.size) <= _EXACT or image.mode == 'RGBA':
    image.save(file, 'png', optimize=True)
  else:
    image.save(file, 'jpeg', quality=85)
  return file.getvalue()


def _svg(width, height, parts):
  return (f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
          f'height="{height:g}" font-size="13" fill="var(--text)">'
          f'{"".join(parts)}</svg>')


def _text(x, y, text, anchor, transform=None):
  turned = f' transform="{transform}"' if transform else ''
  return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turned}>'
          f'{page.escape(text)}</text>')

"""Features from the columns of a table, by scikit-learn's transformers.

Numbers are standardised (a missing one becomes the median, and a column says
that it was missing), categories are one-hot or, if there are many, hashed;
texts become TF-IDF weights of words and pairs of words, reduced by a truncated
SVD. A column of names that are all different says nothing of a class.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import re
from typing import Any

import numpy as np
from sklearn import decomposition
from sklearn import feature_extraction
from sklearn import impute
from sklearn import pipeline
from sklearn import preprocessing

from ln_tfp.audit.files import dataset
from ln_tfp.audit.files import tables

_MAX_CATEGORIES = 50  # that are one-hot
_NUM_HASHED = 128
_NUM_TEXT = 200  # dimensions of a column of texts
_MAX_WORDS = 50_000
_WORDS_OF_TEXT = 3.  # mean number from which on a column is text
_UNIQUE = .9  # share of different cells from which on they are names
_NUMBER = re.compile(r'[-+]?(\d+([.,]\d*)?|[.,]\d+)(e[-+]?\d+)?', re.IGNORECASE)


def featurize(
    columns: Mapping[str, Sequence[Any]]) -> tuple[np.ndarray, list[str]]:
  """Returns features `[N, F]`, and notes on what became of each column."""
  parts, kinds = [], {}
  for name, cells in columns.items():
    try:
      kind, part = _featurize(cells)
    except dataset.InputError as error:
      raise dataset.InputError(f'column {name}: {error}') from error
    kinds.setdefault(kind, []).append(name)
    if part is not None and part.shape[1]:
      parts.append(np.asarray(part, np.float32))
  if not parts:
    raise dataset.InputError(
        'there is no column to learn from beside the labels.')
  notes = [f'Read as {kind}: {", ".join(names[:8])}' + (
      f' and {len(names) - 8} more' if len(names) > 8 else '')
           for kind, names in kinds.items()]
  return np.concatenate(parts, axis=1), notes


def _featurize(cells):
  """Returns the kind of a column and its features, or None for no use."""
  if isinstance(cells, np.ndarray):  # Parquet's numbers
    return 'numbers', _numbers(cells.reshape(len(cells), -1))
  texts = ['' if tables.is_missing(cell) else str(cell).strip()
           for cell in cells]
  present = [text for text in texts if text]
  different = set(present)
  if len(different) < 2 and len(present) == len(texts):
    return 'constant, left out', None
  if all(map(_NUMBER.fullmatch, present)):
    values = [float(text.replace(',', '.')) if text else np.nan
              for text in texts]
    return 'numbers', _numbers(np.array(values)[:, np.newaxis])
  if np.mean([len(text.split()) for text in present]) >= _WORDS_OF_TEXT:
    return 'text', _text(texts)
  if len(different) <= _MAX_CATEGORIES:
    encoder = preprocessing.OneHotEncoder(sparse_output=False)
    return 'categories', encoder.fit_transform(
        np.array(texts, object)[:, np.newaxis])
  if len(different) > _UNIQUE * len(present):
    return 'names, left out', None
  hasher = feature_extraction.FeatureHasher(_NUM_HASHED, input_type='string')
  return 'categories (hashed)', hasher.transform(
      [[text] for text in texts]).toarray()


def _numbers(values):
  bad = np.isinf(values) | (np.abs(values) > 1e30)
  if bad.any():
    raise dataset.InputError(
        f'row {int(np.argmax(bad.any(axis=1)))} has a number beyond 1e30.')
  if np.isnan(values).all():
    return None
  return pipeline.make_pipeline(
      impute.SimpleImputer(strategy='median', add_indicator=True),
      preprocessing.StandardScaler()).fit_transform(values)


def _text(texts):
  vectorizer = feature_extraction.text.TfidfVectorizer(
      sublinear_tf=True, ngram_range=(1, 2), max_features=_MAX_WORDS,
      min_df=2 if len(texts) >= 200 else 1)
  try:
    weights = vectorizer.fit_transform(texts)
  except ValueError:  # no words at all
    return None
  size = min(_NUM_TEXT, *(side - 1 for side in weights.shape))
  if size < 1:
    return weights.toarray()
  return decomposition.TruncatedSVD(
      size, random_state=0).fit_transform(weights)

"""Bad arguments of the public API: a ValueError that names them."""

import functools
import re

import keras
import numpy as np

import ln_tfp
from ln_tfp.audit import files
from ln_tfp.audit.review import decisions
from ln_tfp.audit.review import spreadsheet
from tests.hostile import cases
from tests.hostile.cases import call
from tests.hostile.cases import csv
from tests.hostile.cases import raw

_X = np.random.default_rng(0).normal(size=(40, 3)) + 5. * (
    np.arange(40)[:, np.newaxis] % 2)
_Y = np.arange(40) % 2
_LABELS = np.arange(9) % 2
_LOGITS = np.zeros((9, 3), np.float32)


def _packed():
  return ln_tfp.LogisticNormalHead(3)(np.ones((4, 5), np.float32))


def _het():
  return ln_tfp.HeteroscedasticHead(3)(np.ones((4, 5), np.float32))


def _loss(make, labels, outputs):
  return lambda: make()(labels, outputs() if callable(outputs) else outputs)


def _refused_labels(name, labels, says):
  """Labels that no audit takes, and no noise can be put into."""
  return [
      call(f'{name} for audit_features', lambda: ln_tfp.audit_features(
          _X, labels), says),
      call(f'{name} for corrupt', lambda: ln_tfp.noise.corrupt(
          labels, 'sym:0.2'), r'labels'),
  ]


_LABELS_OF_ANY_KIND = [
    *_refused_labels('Complex labels', _Y.astype(complex), r'complex'),
    *_refused_labels('Infinite labels', np.where(_Y, np.inf, 1.), r'inf'),
    *_refused_labels('Infinite labels in half precision', np.where(
        _Y, np.inf, 1.).astype(np.float16), r'inf'),
    *_refused_labels('Labels beyond int64', _Y.astype(np.uint64) + np.uint64(
        2**63), r'9223372036854775808|2\*\*63|int64'),
    *_refused_labels('Labels that are fractions of one', _Y + .5, r'0\.5'),
    *_refused_labels('Labels of three dimensions', np.zeros([40, 2, 2]),
                     r'\(40, 2, 2\)'),
    *_refused_labels('Labels of records', np.zeros(40, [('a', 'i4')]),
                     r'dtype.*a'),
    *_refused_labels('Labels beyond int64 as objects', np.array(
        [2**70, 2**71] * 20, object), r'1180591620717411303424'),
    *_refused_labels('Labels of bytes as objects', np.array(
        [b'a', b'b'] * 20, object), r"b'a'"),
    *_refused_labels('Labels of bytes', np.array([b'a', b'b'] * 20), r'S1'),
    *_refused_labels('Labels that are dates', np.zeros(40, 'datetime64[D]'),
                     r'datetime'),
]


def _separate():
  labels = files.encode(['1', '01', '1_0', '١'] * 3)
  if len(labels[1]) != 4:
    raise AssertionError(f'Silently wrong: {labels[1]}')


def _equal_noise():
  if not (ln_tfp.noise.parse_noise('sym:0.0') == ln_tfp.noise.parse_noise(
      'none') == ln_tfp.noise.parse_noise('asym:0')):
    raise AssertionError('Silently wrong.')


def _reversible():
  cells = ['=cmd()', '+1+1', '-2-3', '@sum', '\tx', "'=x", "''=x", '-3.5', 'a',
           "'", '', '\rx', '１', '=', '-']
  for cell in cells:
    written = spreadsheet.safe(cell)
    if spreadsheet.plain(written) != cell or (
        written[:1] in '=+-@\t\r' and written and written != '-3.5'):
      raise AssertionError(f'Silently wrong: {cell!r} -> {written!r}')


@functools.cache
def _report():
  wrong = np.arange(40) == 7
  return ln_tfp.audit_features(_X, np.where(wrong, 1 - _Y, _Y))


def _hashed():
  """No script runs on the page but those that the page was made with."""
  _report().flag(3).save('page.html')
  with open('page.html', encoding='utf-8') as file:
    policy = re.search(r'script-src ([^;]*)', file.read()).group(1)
  if 'unsafe' in policy or 'sha256-' not in policy:
    raise AssertionError(f'Silently wrong: {policy}')


_SILENT = [
    call('Names that look like numbers stay names', _separate, None),
    call('Symmetric noise of rate zero is none', _equal_noise, None),
    call('Cells of a spreadsheet are harmless, reversibly', _reversible, None),
    call("The page's scripts have hashes", _hashed, None,
         changes=('page.html',)),
]

_LOSSES = [
    call('A label beyond the classes', _loss(
        lambda: ln_tfp.nll, np.array([0, 1, 2, 9]), _packed),
         r'Received:\] \[9\]'),
    call('A negative label', _loss(
        lambda: ln_tfp.nll, np.array([0, 1, 2, -1]), _packed), r'-1'),
    call('A label that is a fraction', _loss(
        lambda: ln_tfp.nll, np.array([0, 1, 2, .5]), _packed), r'0?\.5'),
    call('A label that is NaN', _loss(
        lambda: ln_tfp.nll, np.array([0, 1, 2, np.nan]), _packed), r'nan'),
    call('Labels of another length', _loss(
        lambda: ln_tfp.nll, np.arange(7) % 3, _packed), r'\(7,\)'),
    call('Labels that are texts', _loss(
        lambda: ln_tfp.nll, np.array(['a', 'b', 'c', 'a']), _packed),
         r'y_true.*(string|<U1)'),
    call('Logits in place of a packed output', _loss(
        lambda: ln_tfp.nll, _LABELS, _LOGITS), r'\(9, 3\)'),
    call('A smoothing of zero', lambda: ln_tfp.NegativeLogLikelihood(
        label_smoothing=0), r'label_smoothing=0'),
    call('A smoothing that is NaN', lambda: ln_tfp.NegativeLogLikelihood(
        label_smoothing=float('nan')), r'label_smoothing=nan'),
    call('A smoothing that is a word', lambda: ln_tfp.NegativeLogLikelihood(
        label_smoothing='much'), r'label_smoothing'),
    call('An ignored class that is a fraction',
         lambda: ln_tfp.NegativeLogLikelihood(ignore_class=.5),
         r'ignore_class=0\.5'),
    call('A q of two', lambda: ln_tfp.losses.GeneralizedCrossEntropy(2.),
         r'q=2'),
    call('A q that is NaN', lambda: ln_tfp.losses.GeneralizedCrossEntropy(
        float('nan')), r'q=nan'),
    call('A q that is None', lambda: ln_tfp.losses.GeneralizedCrossEntropy(
        None), r'q=None'),
    call('A negative sigma', lambda: ln_tfp.losses.NoiseAgainstNoise(-1.),
         r'sigma=-1'),
    call('An infinite sigma', lambda: ln_tfp.losses.NoiseAgainstNoise(
        float('inf')), r'sigma=inf'),
    call('A gradient of an unknown kind',
         lambda: ln_tfp.losses.NoiseAgainstNoise(gradient='zebra'), r'zebra'),
    call('A seed of a loss that is a fraction',
         lambda: ln_tfp.losses.NoiseAgainstNoise(seed=.5), r'seed=0\.5'),
    call('No samples', lambda: ln_tfp.losses.HeteroscedasticNLL(samples=0),
         r'samples=0'),
    call('A temperature of a loss that is negative',
         lambda: ln_tfp.losses.HeteroscedasticNLL(temperature=-1),
         r'temperature=-1'),
    call('A matrix whose rows do not sum to one',
         lambda: ln_tfp.losses.ForwardCorrection([[1., 1.], [0., 1.]]),
         r'transition'),
    call('A matrix that is not square',
         lambda: ln_tfp.losses.ForwardCorrection([[.5, .5]]), r'\(1, 2\)'),
    call('A matrix with NaN in it', lambda: ln_tfp.losses.ForwardCorrection(
        [[np.nan, 1.], [0., 1.]]), r'transition'),
    call('A matrix of texts', lambda: ln_tfp.losses.ForwardCorrection('zebra'),
         r'transition'),
    call('A matrix of other classes than the logits', _loss(
        lambda: ln_tfp.losses.ForwardCorrection(np.eye(7)), _LABELS, _LOGITS),
         r'7'),
    call('Probabilities for a matrix that are none',
         lambda: ln_tfp.losses.estimate_transition(np.full([5, 3], np.nan)),
         r'probabilities'),
    call('Probabilities for a matrix of one dimension',
         lambda: ln_tfp.losses.estimate_transition(np.ones(5)), r'\(5,\)'),
    call('A percentile of 101', lambda: ln_tfp.losses.estimate_transition(
        np.full([5, 2], .5), 101), r'101'),
]

_HEADS = [
    call('A head of no classes', lambda: ln_tfp.LogisticNormalHead(0),
         r'num_classes=0'),
    call('A head of half a class', lambda: ln_tfp.LogisticNormalHead(2.5),
         r'num_classes=2\.5'),
    call('A head of True classes', lambda: ln_tfp.LogisticNormalHead(True),
         r'num_classes=True'),
    call('A head of a word', lambda: ln_tfp.LogisticNormalHead('ten'),
         r"num_classes='ten'"),
    call('A head of a rank beyond its classes',
         lambda: ln_tfp.LogisticNormalHead(3, rank=50), r'rank=50'),
    call('A heteroscedastic head of a rank beyond its classes',
         lambda: ln_tfp.HeteroscedasticHead(3, rank=50), r'rank=50'),
    call('A head of a negative rank', lambda: ln_tfp.HeteroscedasticHead(
        3, rank=-1), r'rank=-1'),
    call('A head of no temperature', lambda: ln_tfp.LogisticNormalHead(
        3, temperature=0), r'temperature=0'),
    call('A head of a temperature that is NaN',
         lambda: ln_tfp.LogisticNormalHead(3, temperature=float('nan')),
         r'temperature=nan'),
    call('A head of a negative scale', lambda: ln_tfp.LogisticNormalHead(
        3, min_scale=-1), r'min_scale=-1'),
    call('A head of an unknown covariance', lambda: ln_tfp.LogisticNormalHead(
        3, covariance='zebra'), r'zebra'),
    call('A head on inputs without features',
         lambda: ln_tfp.LogisticNormalHead(3)(np.float32(1)), r'\(\)'),
    call('Many classes that are none', lambda: ln_tfp.ManyClassesHead(0),
         r'num_classes=0'),
    call('Probabilities of logits', lambda: ln_tfp.probabilities(_LOGITS),
         r'\(9, 3\)'),
    call('Probabilities of other classes', lambda: ln_tfp.probabilities(
        _packed(), num_classes=9), r'9'),
    call('A distribution of logits', lambda: ln_tfp.to_distribution(_LOGITS),
         r'\(9, 3\)'),
    call('Bins without number', lambda: ln_tfp.ExpectedCalibrationError(0),
         r'num_bins=0'),
    call('An accuracy of no classes', lambda: ln_tfp.Accuracy(num_classes=0),
         r'num_classes=0'),
    call('A classifier of no model', lambda: ln_tfp.to_classifier('zebra'),
         r'model'),
    call('A classifier of a model without a head', lambda: ln_tfp.to_classifier(
        keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])),
         r'[Hh]ead'),
    call('A head for what is no classifier', lambda: ln_tfp.from_classifier(
        3), r'model'),
    call('A distribution of no temperature', lambda: ln_tfp.LogisticNormal(
        [0., 0.], [1., 1.], temperature=0.), r'temperature=0'),
]

_NOISE = [
    call('Noise of an unknown kind', lambda: ln_tfp.noise.corrupt(
        _Y, 'zebra:0.2'), r"noise='zebra:0\.2'"),
    call('Noise that is no text', lambda: ln_tfp.noise.corrupt(_Y, .2),
         r'noise.*0\.2'),
    call('Noise that is None', lambda: ln_tfp.noise.corrupt(_Y, None),
         r'noise.*None'),
    call('Noise of rate NaN', lambda: ln_tfp.noise.corrupt(_Y, 'sym:nan'),
         r"noise='sym:nan'"),
    call('Noise of a rate in underscores', lambda: ln_tfp.noise.corrupt(
        _Y, 'sym:0.0_1'), r"noise='sym:0\.0_1'"),
    call('Noise without a mapping', lambda: ln_tfp.noise.corrupt(
        _Y, 'asym:0.2'), r'mapping'),
    call('A mapping to a class that is not there', lambda: ln_tfp.noise.corrupt(
        _Y, 'asym:0.2', mapping={0: 7}), r'0 -> 7'),
    call('A mapping of texts', lambda: ln_tfp.noise.corrupt(
        _Y, 'asym:0.2', mapping={'a': 'b'}), r"'a'"),
    call('A matrix of noise with negative entries',
         lambda: ln_tfp.noise.corrupt(_Y, 'matrix', mapping=[[2, -1], [0, 1]]),
         r'-1'),
    call('A matrix of noise with NaN', lambda: ln_tfp.noise.corrupt(
        _Y, 'matrix', mapping=[[np.nan, 1], [0, 1]]), r'nan'),
    call('Ids that repeat', lambda: ln_tfp.noise.corrupt(
        _Y, 'sym:0.2', ids=np.zeros(40, int)), r'ids'),
    call('Fewer ids than labels', lambda: ln_tfp.noise.corrupt(
        _Y, 'sym:0.2', ids=np.arange(3)), r'40 and 3'),
    call('A seed of corrupt that is a word', lambda: ln_tfp.noise.corrupt(
        _Y, 'sym:0.2', seed='zebra'), r'seed'),
    call('A seed of corrupt that is a fraction', lambda: ln_tfp.noise.corrupt(
        _Y, 'sym:0.2', seed=.5), r'seed'),
    call('A mode of an unknown kind', lambda: ln_tfp.noise.corrupt(
        _Y, 'sym:0.2', mode='zebra'), r'zebra'),
    call('A label beyond the number of classes', lambda: ln_tfp.noise.corrupt(
        _Y, 'sym:0.2', num_classes=1), r'0\.\.1'),
    call('Negative labels for corrupt', lambda: ln_tfp.noise.corrupt(
        _Y - 1, 'sym:0.2'), r'-1'),
    call('Human labels of a length of their own', lambda: ln_tfp.noise.corrupt(
        _Y, 'human:a', human_labels={'a': [1]}), r'\(1,\)'),
    call('Human labels that are fractions', lambda: ln_tfp.noise.corrupt(
        _Y, 'human:a', human_labels={'a': _Y + .5}), r'human_labels'),
]


def _fit(x=_X, y=_Y, weight=None, certain=None, **settings):
  return lambda: ln_tfp.LogisticNormalProcess(**settings).fit(
      x, y, weight, certain)


_PROCESS = [
    call('A kernel of an unknown kind', _fit(kernel='zebra'), r'zebra'),
    call('A kernel that is a number', _fit(kernel=3), r'kernel'),
    call('No inducing points', _fit(kernel='rbf', num_inducing=0),
         r'num_inducing=0'),
    call('A regularisation of zero', _fit(regularization=0),
         r'regularization=0'),
    call('A regularisation that is a word', _fit(regularization='zebra'),
         r'zebra'),
    call('Rounds below zero', _fit(relabel_rounds=-1), r'relabel_rounds=-1'),
    call('A length scale that is NaN', _fit(length_scale=float('nan')),
         r'length_scale=nan'),
    call('A noise model that is a word', _fit(noise_model='zebra'),
         r'noise_model'),
    call('Features with NaN', _fit(np.where(_X > 5, np.nan, _X)), r'NaN'),
    call('Features whose squares overflow', _fit(_X * 1e200), r'beyond'),
    call('Features that overflow float32', _fit((_X * 1e25).astype(
        np.float32), kernel='rbf'), r'beyond'),
    call('Features of one dimension', _fit(np.arange(40.)), r'2D|shape'),
    call('Features of texts', _fit(_X.astype(str)), r'.'),
    call('Features that are complex', _fit(_X.astype(complex)), r'[Cc]omplex'),
    call('No features', _fit(np.ones([40, 0])), r'0 feature'),
    call('No rows', _fit(np.ones([0, 3]), _Y[:0]), r'0 sample'),
    call('One class', _fit(y=np.zeros(40, int)), r'one class'),
    call('Labels of another number', _fit(y=_Y[:7]), r'7'),
    call('Labels that are infinite for the process', _fit(
        y=np.where(_Y, np.inf, 1).astype(np.float16)), r'inf'),
    call('Labels with NaN', _fit(y=np.where(_Y, np.nan, 1)), r'NaN'),
    call('Weights that are negative', _fit(weight=-np.ones(40)),
         r'[Nn]egative'),
    call('Weights that are all zero', _fit(weight=np.zeros(40)), r'.'),
    call('Weights that are NaN', _fit(weight=np.full(40, np.nan)), r'NaN'),
    call('Fewer weights than rows', _fit(weight=np.ones(3)), r'3'),
    call('Certain rows of another number', _fit(certain=np.ones(3, bool)),
         r'3'),
    call('Shares that do not sum to one', _fit(y=np.ones([40, 2])), r'sum'),
    call('An iterator that ends', _fit(iter([(_X, _Y)]), None), r'iterator'),
    call('Batches of different widths', _fit(lambda: iter(
        [(_X, _Y), (_X[:, :2], _Y)]), None), r'2 features'),
    call('A prediction before the fit',
         lambda: ln_tfp.LogisticNormalProcess().predict(_X), r'not fitted'),
    call('A prediction of other features', lambda: _fit()().predict(
        _X[:, :2]), r'2 features'),
    call('A prediction of NaN', lambda: _fit()().predict_proba(
        np.full([1, 3], np.nan)), r'NaN'),
    call('A further fit of unknown classes',
         lambda: ln_tfp.LogisticNormalProcess().partial_fit(
             _X, _Y + 5, classes=[0, 1]), r'5'),
    call('A further fit without classes',
         lambda: ln_tfp.LogisticNormalProcess().partial_fit(_X, _Y),
         r'classes'),
]

_AUDIT = [
    call('No labels', lambda: ln_tfp.audit_features(_X), r'labels=None'),
    call('Features and labels of other lengths', lambda: ln_tfp.audit_features(
        _X, _Y[:9]), r'40 rows and 9'),
    call('Features that are a number', lambda: ln_tfp.audit_features(3., _Y),
         r'features'),
    call('Labels that are a number', lambda: ln_tfp.audit_features(_X, 3),
         r'labels'),
    call('Features that are None', lambda: ln_tfp.audit_features(None, _Y),
         r'features'),
    call('Features that are texts', lambda: ln_tfp.audit_features(
        _X.astype(str), _Y), r'features|X'),
    call('Features that are objects', lambda: ln_tfp.audit_features(
        np.array([[{}, 1, 2]] * 40), _Y), r'features|X'),
    call('Features that are NaN', lambda: ln_tfp.audit_features(
        np.where(_X > 5, np.nan, _X), _Y), r'NaN'),
    call('Features that overflow', lambda: ln_tfp.audit_features(
        _X * 1e300, _Y), r'beyond'),
    call('Labels of one class', lambda: ln_tfp.audit_features(
        _X, np.zeros(40, int)), r'one class|at least (2|two) classes'),
    call('Labels that are all missing', lambda: ln_tfp.audit_features(
        _X, np.full(40, np.nan)), r'label'),
    call('Labels that are all ignored', lambda: ln_tfp.audit_features(
        _X, np.full(40, -1), ignore_class=-1), r'label'),
    call('Labels that are negative and not ignored',
         lambda: ln_tfp.audit_features(_X, _Y - 1), r'-1 at position 0'),
    call('Labels of mixed kinds', lambda: ln_tfp.audit_features(
        _X, np.array([1, 'a'] * 20, object)), r"1 and 'a'"),
    call('Names of classes that repeat', lambda: ln_tfp.audit_features(
        _X, _Y, class_names=['a', 'a']), r'class_names'),
    call('Fewer names than classes', lambda: ln_tfp.audit_features(
        _X, _Y, class_names=['a']), r'1 at position 1'),
    call('Fewer ids than rows', lambda: ln_tfp.audit_features(
        _X, _Y, ids=[1, 2]), r'40 entries.*2'),
    call('Certain labels as numbers', lambda: ln_tfp.audit_features(
        _X, _Y, certain=np.arange(40)), r'certain'),
    call('A process that is none', lambda: ln_tfp.audit_features(
        _X, _Y, process='zebra'), r'process'),
    call('Soft labels that are negative', lambda: ln_tfp.audit_features(
        _X, np.tile([2., -1.], (40, 1))), r'position 0'),
    call('A model that is none', lambda: ln_tfp.audit_labels(
        'zebra', _X, _Y), r'model'),
    call('A model without a head', lambda: ln_tfp.audit_labels(
        keras.Sequential([keras.Input((3,)), keras.layers.ReLU()]), _X, _Y),
         r'model|head|output'),
    call('A batch of nothing', lambda: ln_tfp.audit_labels(
        keras.Sequential([keras.Input((3,)), ln_tfp.LogisticNormalHead(2)]),
        _X, _Y, batch_size=0), r'batch_size=0'),
    call('Examples of another number than labels', lambda: ln_tfp.audit_labels(
        keras.Sequential([keras.Input((3,)), ln_tfp.LogisticNormalHead(2)]),
        _X, _Y[:9]), r'40.*9'),
    call('A budget below zero', lambda: _report().flag(budget=-1),
         r'budget=-1'),
    call('A budget that is a fraction', lambda: _report().flag(budget=2.5),
         r'budget=2\.5'),
    call('A precision beyond one', lambda: _report().flag(precision=1.5),
         r'precision=1\.5'),
    call('A budget with a precision', lambda: _report().flag(3, .9),
         r'exclude'),
    call('Votes of one annotator', lambda: ln_tfp.consensus(
        _X, _Y[:, np.newaxis]), r'\(40, 1\)'),
    call('Votes of nobody', lambda: ln_tfp.consensus(
        _X, np.full([40, 2], -1)), r'votes'),
    call('Votes that are fractions', lambda: ln_tfp.consensus(
        _X, np.full([40, 2], .5)), r'0\.5'),
    call('Votes that are complex', lambda: ln_tfp.consensus(
        _X, np.ones([40, 2], complex)), r'complex'),
    call('Votes that are infinite', lambda: ln_tfp.consensus(
        _X, np.full([40, 2], np.inf)), r'inf'),
    call('Votes of other examples', lambda: ln_tfp.consensus(
        _X, np.ones([9, 2], int)), r'40 rows and 9|9'),
    call('Fewer names than annotators', lambda: ln_tfp.consensus(
        _X, np.stack([_Y, _Y], 1), annotators=['a']), r'2 names'),
    call('Decisions that are a number', lambda: _report().apply(3),
         r'decisions'),
    call('Decisions from a pipe', lambda: _report().apply('d.csv'),
         r'd\.csv.*regular', cases.pipe('d.csv')),
    call('Decisions that are words', lambda: _report().apply(['zebra']),
         r'decisions'),
    call('Decisions about nobody', lambda: _report().apply([decisions.Decision(
        'zebra', '0', 'keep', '0')]), r"'zebra'"),
    call('A decision that is none', lambda: _report().apply([
        decisions.Decision('3', '1', 'perhaps', '1')]), r'perhaps'),
    call('Decisions for an unknown class', lambda: _report().apply([
        decisions.Decision('3', '1', 'class', 'cow')]), r"'cow'"),
    call('A page in no folder of this world', lambda: _report().save(
        '\0.html'), r'null'),
    call('Texts in place of a spreadsheet', lambda: decisions.read('d.csv'),
         r'd\.csv', raw('d.csv', bytes(range(128, 256)))),
    call('A spreadsheet of another kind', lambda: decisions.read('d.csv'),
         r'd\.csv.*columns', csv('d.csv', 'a', '1')),
]

CASES = (*_LABELS_OF_ANY_KIND, *_SILENT, *_LOSSES, *_HEADS, *_NOISE, *_PROCESS,
         *_AUDIT)

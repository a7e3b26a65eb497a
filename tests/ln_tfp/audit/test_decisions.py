"""Tests of labels after decisions, and of the way to Label Studio and back."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn import datasets

import ln_tfp
from ln_tfp import noise
from ln_tfp.audit.review import decisions
from ln_tfp.audit.review import label_studio
from ln_tfp.audit.review import spreadsheet
from tests.ln_tfp.audit import reports

NAMES = ('cat', 'dog', 'emu')
HEADER = ('id', 'position', 'given', 'suggested', 'decision', 'label')


def _report():
  return reports.make(
      [.9, .8, .7, .6, .1, .1], [0, 0, 1, 1, 2, 2], 3, class_names=NAMES,
      ids=np.array(list('abcdef'))).flag(budget=4)


def _write(path, rows):
  spreadsheet.write(path, HEADER, rows)
  return path


DECIDED = [
    ('a', 0, 'cat', 'dog', 'keep', 'cat'),
    ('b', 1, 'cat', 'dog', 'accept', 'dog'),
    ('c', 2, 'dog', 'emu', 'class', 'cat'),
    ('d', 3, 'dog', 'emu', 'unsure', ''),
    ('e', 4, 'emu', 'cat', 'remove', ''),
]


def test_decisions_change_labels_and_make_them_certain(tmp_path):
  report = _report()
  after = report.apply(_write(tmp_path / 'd.csv', DECIDED))
  assert after.labels.tolist() == [0, 1, 0, 1, 2, 2]
  assert after.certain.tolist() == [True, True, True, False, False, False]
  assert after.kept.tolist() == [True] * 4 + [False, True]
  assert after.changes == [
      ('b', 'cat', 'dog', 'accept'), ('c', 'dog', 'cat', 'class'),
      ('e', 'emu', '', 'remove')]
  assert report.given.tolist() == [0, 0, 1, 1, 2, 2]
  after.write_log(tmp_path / 'log.csv')
  assert [row['after'] for row in spreadsheet.read(tmp_path / 'log.csv')] == [
      'dog', 'cat', '']


def test_applying_the_same_decisions_again_changes_nothing_more(tmp_path):
  path = _write(tmp_path / 'd.csv', DECIDED)
  names = np.array(NAMES)[_report().given]
  once = decisions.apply(path, list('abcdef'), names)
  twice = decisions.apply(path, list('abcdef'), once.labels)
  assert twice.labels.tolist() == once.labels.tolist()
  assert twice.certain.tolist() == once.certain.tolist()
  assert [change.decision for change in twice.changes] == ['remove']


def test_examples_of_one_name_are_told_apart_by_their_position():
  decided = [decisions.Decision('a', 'cat', 'accept', 'dog', 1)]
  after = decisions.apply(decided, ['a', 'a'], ['cat', 'cat'])
  assert after.labels.tolist() == ['cat', 'dog']


@pytest.mark.parametrize('row, message', [
    (('z', 0, 'cat', 'dog', 'keep', 'cat'), "no example 'z'"),
    (('a', 0, 'dog', 'emu', 'keep', 'dog'),
     "about the label 'dog', but its label is 'cat'"),
    (('b', 1, 'cat', 'dog', 'keep', 'cat'), "'b' was decided twice"),
    (('a', 0, 'cat', 'dog', 'maybe', ''), "one of keep, accept.*not 'maybe'"),
    (('a', 0, 'cat', 'dog', 'keep', ''), 'must have a label'),
    (('a', 0, 'cat', 'dog', 'remove', 'cat'), 'must not have a label'),
    (('a', 0, 'cat', 'dog', 'class', 'yak'), "'yak', which is no class"),
])
def test_decisions_that_do_not_fit_are_refused(row, message, tmp_path):
  path = _write(tmp_path / 'd.csv', [DECIDED[1], row])
  with pytest.raises(ValueError, match=message):
    _report().apply(path)


@pytest.mark.parametrize('content, message', [
    (b'id,label\na,b\n', 'must have the columns'),
    (b'id,given,decision,label\na\n', 'line 2 has 1 cells'),
    (b'\xff\xfe\x00', 'no file of decisions'),
    (b'', None),
])
def test_files_that_are_no_decisions_are_refused(content, message, tmp_path):
  (tmp_path / 'd.csv').write_bytes(content)
  if message is None:
    assert decisions.read(tmp_path / 'd.csv') == []
    return
  with pytest.raises(ValueError, match=message):
    decisions.read(tmp_path / 'd.csv')


def test_label_studio_gets_tasks_with_suggestions_worst_first(tmp_path):
  report = _report()
  report.to_label_studio(tmp_path / 'tasks.json', prefix='/data/')
  tasks = json.loads((tmp_path / 'tasks.json').read_text())
  assert [task['data']['id'] for task in tasks] == list('abcd')
  assert tasks[0]['data']['image'] == '/data/a'
  prediction = tasks[1]['predictions'][0]
  assert prediction['score'] == .8
  config = ElementTree.fromstring(label_studio.config(NAMES))
  choices = config.find('Choices')
  # What the prediction refers to is in the configuration.
  assert prediction['result'][0]['from_name'] == choices.get('name')
  assert prediction['result'][0]['to_name'] == choices.get('toName')
  assert config.find('Image').get('name') == choices.get('toName')
  assert prediction['result'][0]['value']['choices'][0] in [
      choice.get('value') for choice in choices]


def test_annotations_of_label_studio_come_back_as_decisions(tmp_path):
  report = _report()
  tasks = label_studio.tasks(report)
  for task, label in zip(tasks, ('cat', 'emu', 'dog')):
    task['annotations'] = [{'result': [{
        'from_name': 'label', 'to_name': 'example', 'type': 'choices',
        'value': {'choices': [label]}}]}]
  (tmp_path / 'export.json').write_text(json.dumps(tasks))
  after = report.apply(tmp_path / 'export.json')
  assert after.labels.tolist() == [0, 2, 1, 1, 2, 2]
  assert after.certain.tolist() == [True, True, True, False, False, False]


@pytest.mark.parametrize('content', ['{}', '[1]', '[{"data": {}}]', '{'])
def test_json_that_is_no_export_is_refused(content, tmp_path):
  (tmp_path / 'export.json').write_text(content)
  with pytest.raises(ValueError, match='no file of decisions'):
    decisions.read(tmp_path / 'export.json')


def test_rows_of_tables_are_texts_for_label_studio():
  report = reports.make([.9], rows={0: {'review': 'bad', 'stars': '5'}}).flag(
      budget=1)
  assert label_studio.tasks(report)[0]['data']['text'] == (
      'review: bad\nstars: 5')


def test_label_studio_gets_the_rows_of_issues_that_the_page_does_not_show():
  num = 200
  report = reports.make(np.full(num, .9), shown=3).flag(budget=num)
  report = report.with_examples(None, rows=[{'n': i} for i in range(num)])
  assert len(report.shown_positions) < num
  texts = [task['data']['text'] for task in label_studio.tasks(report)]
  assert sorted(texts) == sorted(f'n: {i}' for i in range(num))


def test_pictures_need_a_prefix_that_says_where_they_are():
  report = _report().with_examples(np.zeros((6, 8, 8)))
  with pytest.raises(ValueError, match='`prefix` must say where'):
    label_studio.tasks(report)
  assert label_studio.tasks(report, '/d/')[3]['data']['image'] == '/d/d'


@pytest.mark.slow
def test_a_second_audit_goes_on_where_the_review_has_ended():
  digits = datasets.load_digits()
  x, true = digits.data[:900], digits.target[:900]
  given = noise.corrupt(true, 'sym:0.3', seed=1, num_classes=10)
  process = ln_tfp.LogisticNormalProcess(kernel='rbf')
  report = ln_tfp.audit_features(x, given, process=process)
  reviewed = report.ranked_issues[::2]
  after = report.apply([
      decisions.Decision(str(i), str(given[i]),
                         'keep' if given[i] == true[i] else 'class',
                         str(true[i])) for i in reviewed])
  again = ln_tfp.audit_features(
      x, after.labels, certain=after.certain,
      process=ln_tfp.LogisticNormalProcess(
          kernel='rbf', noise_model=process.noise_model_))
  wrong = after.labels != true
  assert wrong.sum() > 50
  assert len(again.ranked_issues) < .7 * len(report.ranked_issues)
  assert not again.is_issue[reviewed].any()
  assert (wrong & again.is_issue).sum() > .85 * wrong.sum()


@pytest.mark.slow
def test_a_noise_model_of_other_classes_is_refused():
  x = np.random.default_rng(0).normal(size=(40, 3))
  process = ln_tfp.LogisticNormalProcess('linear').fit(x, np.arange(40) % 4)
  with pytest.raises(ValueError, match='must be of 2 classes'):
    ln_tfp.LogisticNormalProcess(
        'linear', noise_model=process.noise_model_).fit(x, np.arange(40) % 2)

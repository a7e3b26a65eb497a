"""Results say of which code they are."""

import pytest

from experiments import training
from experiments.output import tables
from experiments.sweep import plan as plan_lib
from experiments.training import fingerprint
from tests.experiments.sweep import fake_worker
from tests.experiments.training import tiny


@pytest.fixture(name='edit')
def _edit(monkeypatch):
  """A function that edits modules, as far as fingerprints see them."""

  def edit(module, old, new):
    is_package, source = fingerprint._SOURCES[module]
    assert old.encode() in source
    monkeypatch.setitem(fingerprint._SOURCES, module, (
        is_package, source.replace(old.encode(), new.encode(), 1)))
    for name in ('_imports', '_exports'):  # of the others they are known
      known = getattr(fingerprint, name)
      monkeypatch.setattr(
          fingerprint, name, lambda other, known=known: (
              known.__wrapped__ if other == module else known)(other))
    fingerprint._of.cache_clear()

  yield edit
  monkeypatch.undo()
  fingerprint._of.cache_clear()


def _stored(method='LN', seed=0, code=None, **settings):
  run = training.Run(method=method, noise='sym:0.4', seed=seed, **settings)
  return training.Result(
      **fake_worker.document(run.to_dict(), run.key),
      code=fingerprint.of(run) if code is None else code)


def _changed(before):
  return {result.run['method']: fingerprint.differences(result)
          for result in before}


@pytest.fixture(name='stored', scope='module')
def _all_stored():
  return [_stored(method) for method in ('CE', 'GCE', 'Forward', 'LN')]


def test_results_of_this_code_are_told_from_no_others(stored):
  assert set(_changed(stored).values()) == {()}
  assert fingerprint.notes(stored) == []


@pytest.mark.parametrize('old, new', [
    ('"""', '"""Other words. '), ('\n\n\n', '\n\n\n# Because.\n\n')])
def test_comments_and_docstrings_do_not_count(stored, edit, old, new):
  edit('ln_tfp.losses.gce', old, new)
  assert set(_changed(stored).values()) == {()}


def test_a_loss_counts_for_its_own_method_only(stored, edit):
  edit('ln_tfp.losses.gce', 'import keras', 'import keras\nX = 1')
  assert _changed(stored) == {
      'CE': (), 'GCE': ('loss',), 'Forward': (), 'LN': ()}


def test_a_method_counts_for_itself_and_for_those_that_build_on_it(
    stored, edit):
  edit('experiments.methods.ce', "name: ClassVar[str] = 'CE'",
       "name: ClassVar[str] = 'CE'\n  other = 1")
  changed = _changed(stored)
  assert changed['CE'] == (fingerprint.LEAVES, 'method')
  assert changed['Forward'] == ('method',)
  assert changed['GCE'] == changed['LN'] == ()


@pytest.mark.parametrize('module, name', [
    ('gce', 'grid'), ('ln', 'ratio_grid')])
def test_the_grid_of_a_search_does_not_count(stored, edit, module, name):
  line = f'def {name}(cls, dataset):\n'
  edit(f'experiments.methods.{module}', line, f'{line}    dataset = None\n')
  assert set(_changed(stored).values()) == {()}


@pytest.mark.parametrize('module, part', [
    ('experiments.training.steps', 'training'),
    ('experiments.training.runner', 'training'),
    ('ln_tfp.metrics', 'training'),
    ('experiments.models.backbones', 'model'),
    ('experiments.data.embedded', 'data'),
    ('experiments.data.batches', 'data'),
    ('ln_tfp.noise', 'noise')])
def test_what_all_runs_depend_on_counts_for_all(stored, edit, module, part):
  source = fingerprint._SOURCES[module][1].decode()
  line = next(line for line in source.splitlines() if 'import ' in line)
  edit(module, f'\n{line}\n', f'\n{line}\nX = 1\n')
  assert all(part in changed for changed in _changed(stored).values())


@pytest.mark.parametrize('module', [
    'experiments.data.clothing1m', 'experiments.models.resnet',
    'ln_tfp.many_classes', 'experiments.sweep.plan', 'ln_tfp.checks'])
def test_what_a_run_does_not_use_does_not_count(stored, edit, module):
  edit(module, 'import', 'X = 1\nimport')
  assert set(_changed(stored).values()) == {()}


def test_what_a_run_leaves_is_no_number_of_its_own(edit):
  before = _stored('CE')
  edit('ln_tfp.losses.forward', 'import keras', 'import keras\nX = 1')
  assert fingerprint.differences(before) == (fingerprint.LEAVES,)
  assert fingerprint.notes([before]) == []


def test_results_that_do_not_say_are_no_news():
  result = _stored(code={})
  assert fingerprint.differences(result) is None
  assert fingerprint.notes([result]) == []
  assert training.Result.from_json(result.to_json()) == result


def test_a_table_names_the_runs_of_other_code(edit):
  results = {result.key: result for result in (
      *(_stored('LN', seed) for seed in (0, 1, 2, 4)), _stored('CE'))}
  runs = {(method, 'sym:0.4'): [
      training.Run.from_dict(result.run) for result in results.values()
      if result.run['method'] == method] for method in ('CE', 'LN')}
  build = lambda: tables.build(
      'T', ['CE', 'LN'], [tables.noise_column('sym:0.4')], runs, results)
  before = build()
  edit('ln_tfp.losses.ln', 'import keras', 'import keras\nX = 1')
  after = build()
  assert after.cells == before.cells
  [note] = set(after.notes) - set(before.notes)
  assert note == (
      '4 of 5 runs are of other code than this (changed: loss); --retrain '
      'makes them anew: LN sym:0.4 seed 0-2+4.')


@pytest.mark.slow
def test_a_trained_result_has_its_fingerprint_and_retraining_is_done_once(
    tmp_path, edit):
  run = tiny.run(epochs=1)
  train = lambda **settings: training.train(
      run, source=tiny.source(), output_dir=tmp_path, strategy='one',
      **settings)
  first = train()
  assert first.code == fingerprint.of(run)
  assert train(retrain=True) == first
  edit('experiments.methods.ce', 'import dataclasses',
       'import dataclasses\nX = 1')
  assert train() == first
  assert plan_lib.Plan([run], tmp_path).results[run.key] == first
  assert list(plan_lib.Plan([run], tmp_path, retrain=True).pending) == [
      run.key]
  second = train(retrain=True)
  assert second.code == fingerprint.of(run) != first.code
  assert second.metrics == first.metrics
  assert plan_lib.Plan([run], tmp_path, retrain=True).results[
      run.key] == second


def test_results_that_do_not_say_are_retrained_where_that_is_asked_for(
    tmp_path):
  result = _stored(code={})
  training.write_result(result, tmp_path)
  run = training.Run.from_dict(result.run)
  assert not plan_lib.Plan([run], tmp_path).pending
  assert plan_lib.Plan([run], tmp_path, retrain=True).pending


@pytest.mark.slow
def test_a_checkpoint_of_other_code_is_not_gone_on_with(tmp_path, edit):
  run = tiny.run(epochs=3)
  arguments = dict(source=tiny.source(), strategy='one')

  def stop(epoch, record):
    del record
    if epoch == 2:
      raise KeyboardInterrupt

  with pytest.raises(KeyboardInterrupt):
    training.train(run, output_dir=tmp_path, progress=stop, **arguments)
  edit('experiments.methods.ce', 'import dataclasses',
       'import dataclasses\nX = 1')
  epochs = []
  result = training.train(
      run, output_dir=tmp_path,
      progress=lambda epoch, record: epochs.append(epoch), **arguments)
  assert epochs == [1, 2, 3]
  assert result.code == fingerprint.of(run)


def test_sources_that_are_as_before_are_those_of_now(stored, edit):
  for module, digits in fingerprint._AS_BEFORE:  # others are dead
    now = fingerprint._source_digest(fingerprint._source(module))
    assert now.startswith(digits), module
  edit('ln_tfp.heads', 'full_like(loc, min_scale)',
       'full_like(loc, 2. * min_scale)')
  assert _changed(stored)['LN'] == ('loss',)

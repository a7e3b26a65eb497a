"""From a run to its result, in this process."""

import dataclasses
import json
import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from experiments import data
from experiments import methods
from experiments import training
from experiments.training import companions
from experiments.training import devices
from experiments.training import evaluation
from experiments.training import loading
from experiments.training import results
from experiments.training import runner
from experiments.training import steps
from experiments.training import store as store_lib
from experiments.training import trainer as trainer_lib
from ln_tfp import losses
from tests.experiments.training import tiny


def _train(run, **arguments):
  arguments.setdefault('source', tiny.source())
  return training.train(run, strategy='one', **arguments)


def _what_is_exact(result):
  """All of a result that does not depend on the clock."""
  document = dataclasses.asdict(result)
  for name in ('seconds', 'steps_per_second', 'weights'):
    document.pop(name)
  return document


@pytest.fixture(name='kept', scope='module')
def _kept(tmp_path_factory):
  """An LN run with its weights: the run, its result, its directory."""
  directory = tmp_path_factory.mktemp('kept')
  run = tiny.run(method='LN', epochs=3)
  return run, _train(run, output_dir=directory, keep_weights=True), directory


@pytest.mark.slow
def test_result_has_everything_a_table_needs(kept):
  run, result, _ = kept
  assert result.status == 'finished'
  assert result.divergence is None
  assert training.Run.from_dict(result.run) == run
  assert result.hyperparameters['temperature'] == .5
  assert result.options['noise_mode'] == 'coin'
  assert result.examples == {'train': 90, 'validation': 10, 'test': 37}
  assert result.parameters == (4 * 8 + 8) + 2 * (8 * 3 + 3)
  assert {len(values) for values in result.history.values()} == {3}
  assert len(result.seconds['epochs']) == 3
  assert result.seconds['wall'] >= sum(result.seconds['epochs'])
  assert result.steps_per_second > 0
  assert result.device['replicas'] == 1
  assert set(result.versions) >= {'tensorflow', 'keras', 'python'}
  assert set(result.metrics) == {
      'test_accuracy', 'test_nll', 'test_ece', 'test_nll_classes',
      'test_ece_classes', 'validation_accuracy_noisy',
      'validation_accuracy_clean', 'train_accuracy_given',
      'train_accuracy_clean_part', 'train_accuracy_mislabelled_given',
      'train_accuracy_mislabelled_true'}
  assert all(value >= 0 for value in result.metrics.values())


def test_result_survives_json(kept):
  _, result, directory = kept
  assert training.Result.from_json(result.to_json()) == result
  assert training.read_result(directory / f'{result.key}.json') == result
  json.loads(result.to_json(), parse_constant=pytest.fail)


def test_a_damaged_result_is_an_error_that_names_the_file(tmp_path, kept):
  _, result, _ = kept
  file = training.write_result(result, tmp_path)
  file.write_text(file.read_text()[:100])
  with pytest.raises(training.DamagedResultError, match=result.key):
    training.read_result(file)


def test_metrics_are_those_of_the_kept_weights(kept):
  run, result, directory = kept
  model = training.load_model(run, directory)
  splits = training.load_splits(run, source=tiny.source())
  method = run.resolve_method()

  def predict(split, dummy_class):
    return method.probabilities(
        model(split.inputs), num_classes=3, dummy_class=dummy_class).numpy()

  test = splits.test
  classes = predict(test, False)
  assert result.metrics['test_accuracy'] == np.mean(
      classes.argmax(-1) == test.true)
  all_columns = predict(test, True)
  assert all_columns.shape == (37, 4)
  nll = -np.mean(np.log(all_columns[np.arange(37), test.true]))
  np.testing.assert_allclose(result.metrics['test_nll'], nll, rtol=1e-5)
  nll = -np.mean(np.log(classes[np.arange(37), test.true]))
  np.testing.assert_allclose(
      result.metrics['test_nll_classes'], nll, rtol=1e-5)
  train = splits.train
  predictions = predict(train, False).argmax(-1)
  counts = evaluation.training_counts(predictions, train.given, train.true)
  for name, value in evaluation.training_accuracies(counts).items():
    assert result.metrics[name] == value
  validation = splits.validation
  predictions = predict(validation, False).argmax(-1)
  assert result.metrics['validation_accuracy_noisy'] == np.mean(
      predictions == validation.given)
  assert result.metrics['validation_accuracy_clean'] == np.mean(
      predictions == validation.true)


def test_weights_are_kept_by_the_paths_of_the_variables(kept):
  _, result, directory = kept
  with np.load(directory / result.weights['file']) as weights:
    assert set(weights) == {
        'model/dense_1/kernel', 'model/dense_1/bias',
        'model/logistic_normal/loc/kernel', 'model/logistic_normal/loc/bias',
        'model/logistic_normal/scale/kernel',
        'model/logistic_normal/scale/bias'}


def test_two_variables_of_one_name_are_refused_rather_than_one_lost():
  variables = [keras.Variable([float(i)], name='twin') for i in range(2)]
  with pytest.raises(ValueError, match='twin'):
    loading.by_path(variables)


def test_weights_that_were_kept_by_number_are_still_read(kept, tmp_path):
  _, result, directory = kept
  model = training.load_model(result, directory)
  content = store_lib.arrays_to_bytes({
      f'model/{i:04d}': v.numpy() for i, v in enumerate(model.variables)})
  (tmp_path / 'old.npz').write_bytes(content)
  old = dataclasses.replace(result, weights={
      'file': 'old.npz', 'sha256': results.sha256(content)})
  for variable, expected in zip(
      training.load_model(old, tmp_path).variables, model.variables):
    np.testing.assert_array_equal(variable.numpy(), expected.numpy())


def test_a_finished_run_is_not_trained_again(kept, monkeypatch):
  run, result, directory = kept
  monkeypatch.setattr(
      trainer_lib.Trainer, 'train_epoch',
      lambda *_: pytest.fail('trained again'))
  assert _train(run, output_dir=directory) == result
  assert _train(run, output_dir=directory, keep_weights=True) == result


@pytest.mark.slow
def test_wanted_weights_that_are_damaged_are_trained_again(kept, tmp_path):
  run, result, directory = kept
  for file in directory.glob('*.*'):
    (tmp_path / file.name).write_bytes(file.read_bytes())
  weights = tmp_path / result.weights['file']
  whole = weights.read_bytes()
  weights.write_bytes(whole[:-1])
  with pytest.raises(ValueError, match='does not hold'):
    training.load_model(result, tmp_path)
  again = _train(run, output_dir=tmp_path, keep_weights=True)
  second = tmp_path / store_lib.SECOND / weights.name
  assert second.read_bytes() == whole  # the result stays as it was
  assert _what_is_exact(again) == _what_is_exact(result)


def test_nothing_is_left_but_result_and_weights(kept):
  _, result, directory = kept
  files = [file.name for file in directory.rglob('*') if file.is_file()]
  assert sorted(files) == [f'{result.key}.json', f'{result.key}.npz']


class _InterruptError(Exception):
  pass


def _interrupt_after(epochs, monkeypatch):
  original = trainer_lib.Trainer.train_epoch

  def train_epoch(self, epoch, *arguments):
    if epoch == epochs:
      raise _InterruptError
    return original(self, epoch, *arguments)

  monkeypatch.setattr(trainer_lib.Trainer, 'train_epoch', train_epoch)


@pytest.mark.parametrize('method, damaged', [
    ('CE', True), ('NAN', False), ('Het-tau-Sigma', False)])
@pytest.mark.slow
def test_an_interrupted_run_ends_bit_identical(
    tmp_path, monkeypatch, method, damaged):
  run = tiny.run(method=method, epochs=4, optimizer='adam')
  whole = _train(run, output_dir=tmp_path / 'whole', keep_weights=True)
  broken = tmp_path / 'broken'
  with monkeypatch.context() as patch, pytest.raises(_InterruptError):
    patch.setattr(runner, '_SAVING_SHARE', math.inf)  # every epoch
    _interrupt_after(3, patch)
    _train(run, output_dir=broken)
  saved = sorted((broken / 'checkpoints' / run.key).iterdir())
  assert len(saved) == 2
  state = store_lib.State.from_bytes(saved[0].read_bytes())
  if damaged:
    saved[1].write_bytes(saved[1].read_bytes()[:-5])
  result = _train(run, output_dir=broken, keep_weights=True)
  assert _what_is_exact(result) == _what_is_exact(whole)
  assert result.weights == whole.weights
  # It went on, and did not begin again.
  assert result.seconds['epochs'][:2] == state.records['epoch_seconds']


@pytest.mark.slow
def test_a_checkpoint_of_other_variables_is_not_used(tmp_path):
  run = tiny.run(epochs=3)
  store_lib.Checkpoints(tmp_path / 'checkpoints' / run.key).save(
      1, store_lib.State({'model/0000': np.zeros(3)}, {}))
  result = _train(run, output_dir=tmp_path)
  assert _what_is_exact(result) == _what_is_exact(_train(run))


@pytest.mark.slow
def test_only_a_run_that_a_method_asks_for_leaves_estimates():
  for name in ('CE', 'GCE'):
    result = _train(tiny.run(method=name))
    assert bool(result.transition_estimates) == (name == 'CE')


def test_ctrl_c_leaves_the_last_checkpoint(tmp_path, monkeypatch):
  run = tiny.run(epochs=3)
  original = trainer_lib.Trainer.validate
  calls = []

  def validate(self):
    calls.append(None)
    if len(calls) == 2:
      raise KeyboardInterrupt
    return original(self)

  monkeypatch.setattr(trainer_lib.Trainer, 'validate', validate)
  with pytest.raises(KeyboardInterrupt):
    _train(run, output_dir=tmp_path)
  saved = list((tmp_path / 'checkpoints' / run.key).iterdir())
  assert [file.name for file in saved] == ['epoch-000001.ckpt']


def test_divergence_ends_the_run_and_says_where(tmp_path):
  run = tiny.run(optimizer='gd', learning_rate=1e30, epochs=5)
  result = _train(run, output_dir=tmp_path, keep_weights=True)
  assert result.status == 'diverged'
  assert result.divergence['epoch'] <= 2
  assert result.divergence['quantity'].startswith(
      ('loss', 'probabilities'))
  assert result.metrics == {}
  assert result.weights is None
  assert training.read_result(tmp_path / f'{run.key}.json') == result
  assert _train(run, output_dir=tmp_path, keep_weights=True) == result


@pytest.mark.slow
def test_forward_takes_its_matrix_from_the_ce_run(tmp_path):
  run = tiny.run(method='Forward', epochs=4, learning_rate=.01)
  result = _train(run, output_dir=tmp_path, keep_weights=True)
  ce_run, = run.prerequisites()
  ce = training.read_result(tmp_path / f'{ce_run.key}.json')
  assert result.transition == ce.transition_estimates['last']
  np.testing.assert_allclose(np.sum(result.transition, axis=1), 1.)
  # Trained with keep_weights, the same run shows where the matrix is from.
  _train(ce_run, output_dir=tmp_path, keep_weights=True)
  model = training.load_model(ce_run, tmp_path)
  splits = training.load_splits(ce_run, source=tiny.source())
  images = np.concatenate([splits.train.inputs, splits.validation.inputs])
  expected = losses.estimate_transition(tf.nn.softmax(model(images)))
  np.testing.assert_allclose(result.transition, expected, rtol=1e-4)
  best = _train(dataclasses.replace(
      run, hyperparameters={'estimate_from': 'best'}), output_dir=tmp_path)
  assert best.transition == ce.transition_estimates['best']
  assert best.key != result.key


@pytest.mark.slow
def test_estimate_from_best_uses_the_best_epoch(tmp_path):
  run = tiny.run(epochs=6, learning_rate=.03, seed=2)
  result = _train(run)
  accuracies = result.history['validation_accuracy_noisy']
  best = int(np.argmax(accuracies)) + 1
  assert best < 6, 'the test needs a run that does not end at its best'
  shorter = _train(dataclasses.replace(run, epochs=best))
  assert result.transition_estimates['best'] == (
      shorter.transition_estimates['last'])
  assert result.transition_estimates['best'] != (
      result.transition_estimates['last'])


def test_forward_after_a_diverged_ce_run_is_diverged():
  result = _train(tiny.run(
      method='Forward', optimizer='gd', learning_rate=1e30))
  assert result.status == 'diverged'
  assert '-CE-' in result.divergence['quantity']


# All of them: test_methods_on_digits.
@pytest.mark.parametrize('name', methods.GROUPS['paper'])
@pytest.mark.slow
def test_a_method_trains_and_tells_the_rate(name):
  result = _train(tiny.run(method=name, epochs=1, weight_decay=1e-3))
  assert result.status == 'finished'
  splits = training.load_splits(tiny.run(), source=tiny.source())
  wrong = np.concatenate(
      [splits.train.is_noisy, splits.validation.is_noisy])
  assert result.noise['rate'] == wrong.mean()


def test_one_step_is_nesterov_on_the_mean_loss_plus_penalty():
  run = tiny.run(
      optimizer='sgd', learning_rate=.1, weight_decay=.5, epochs=1,
      batch_size=None, noise='none')
  splits = training.load_splits(run, source=tiny.source())
  loop = trainer_lib.Trainer(
      run, run.resolve_method(), splits, devices.create('one'))
  before = [v.numpy().astype(np.float64) for v in loop.model.variables]
  kernel_1, bias_1, kernel_2, bias_2 = before
  x, y = splits.train.inputs.astype(np.float64), splits.train.given
  hidden = np.maximum(x @ kernel_1 + bias_1, 0.)
  logits = hidden @ kernel_2 + bias_2
  p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
  loss = -np.log(p[np.arange(len(y)), y]).mean()
  loss += .25 * sum((w**2).sum() for w in before)
  d_logits = (p - np.eye(3)[y]) / len(y)
  d_hidden = d_logits @ kernel_2.T * (hidden > 0)
  gradients = [
      x.T @ d_hidden, d_hidden.sum(0), hidden.T @ d_logits, d_logits.sum(0)]
  record = loop.train_epoch(0)
  assert record['loss'] == pytest.approx(loss, rel=1e-5)
  for variable, w, gradient in zip(loop.model.variables, before, gradients):
    step = .1 * (gradient + .5 * w)
    np.testing.assert_allclose(
        variable.numpy(), w - 1.9 * step, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_weight_decay_can_leave_batch_normalisation_alone():
  """Losses of weight zero: what moves is moved by weight decay."""
  model = keras.Sequential([
      keras.Input((3,)), keras.layers.Dense(2),
      keras.layers.BatchNormalization(beta_initializer='ones'),
      keras.layers.Dense(3)])
  examples = data.Batch(
      np.ones([4, 3], np.float32), np.zeros(4, np.int32), np.arange(4))
  moved = {}
  for decay in ('all', 'kernels_and_biases'):
    optimizer = keras.optimizers.SGD(.1)
    optimizer.build(model.trainable_variables)
    before = [v.numpy() for v in model.trainable_variables]
    method, strategy = methods.get('CE'), devices.create('one')
    step = steps.Step(
        strategy, model, method, optimizer,
        companions.Auxiliary(tiny.run(), method, model, (3,), 3),
        companions.ExampleState(
            strategy, {}, examples.ids, num_classes=3, seed=0),
        num_classes=3, seed=0, steps_per_epoch=1, epochs=1, weight_decay=1.,
        decay=decay)
    step([examples], 10**30)
    moved[decay] = {
        v.name for v, old in zip(model.trainable_variables, before)
        if not np.array_equal(v.numpy(), old)}
  assert moved['all'] >= {'kernel', 'gamma', 'beta'}
  assert moved['kernels_and_biases'] == {'kernel', 'bias'}


@pytest.mark.slow
def test_random_methods_draw_anew_at_each_step():
  still = dict(optimizer='gd', learning_rate=1e-30, epochs=3, batch_size=None)
  for name, number in (('CE', 1), ('NAN', 3), ('Het', 3)):
    losses = _train(tiny.run(method=name, **still)).history['loss']
    # Order changes the last bits of a sum.
    assert len({round(loss, 5) for loss in losses}) == number


@pytest.mark.slow
def test_learning_rate_drops_where_the_option_says():
  run = tiny.run(optimizer='gd', epochs=3, options={'drop_epoch': 2})
  plain = tiny.run(optimizer='gd', epochs=3)
  dropped, constant = _train(run), _train(plain)
  assert dropped.history['loss'][:2] == constant.history['loss'][:2]
  assert dropped.history['loss'][2] > constant.history['loss'][2]


def test_short_batches_are_evaluated_unless_the_protocol_drops_them():
  splits = training.load_splits(tiny.run(), source=tiny.source())
  assert len(splits.test) == 37
  for options, size in (({}, 37), ({'drop_remainder': True}, 32)):
    run = tiny.run(options=options)
    loop = trainer_lib.Trainer(
        run, run.resolve_method(), splits, devices.create('one'))
    right = loop.predict(splits.test).argmax(-1) == splits.test.true
    assert loop.evaluate()['test_accuracy'] == right[:size].mean()


def test_evaluation_in_parts_equals_evaluation_at_once(monkeypatch):
  splits = training.load_splits(tiny.run(), source=tiny.source())
  run = tiny.run()
  loop = trainer_lib.Trainer(
      run, run.resolve_method(), splits, devices.create('one'))
  at_once = loop.predict(splits.test)
  monkeypatch.setattr(trainer_lib, '_EVALUATION_BATCH', 10)
  np.testing.assert_allclose(loop.predict(splits.test), at_once, rtol=1e-5)


def test_dummy_class_counts_as_an_error_under_the_authors_protocol():
  source = tiny.source()
  run = tiny.run(method='LN', options={'dummy_class': True})
  splits = training.load_splits(run, source=source)
  loop = trainer_lib.Trainer(
      run, run.resolve_method(), splits, devices.create('one'))
  for variable in loop.model.trainable_variables:
    variable.assign(-tf.ones_like(variable.value))  # every class below 0
  predictions = loop.predict(splits.test).argmax(-1)
  assert np.all(predictions == 3)
  assert loop.evaluate()['test_accuracy'] == 0.


@pytest.mark.slow
def test_jit_and_mixed_precision_train_and_leave_no_trace():
  before = keras.config.dtype_policy()
  plain = _train(tiny.run(method='LN', epochs=3))
  compiled = _train(tiny.run(method='LN', epochs=3, jit=True))
  np.testing.assert_allclose(
      compiled.history['loss'], plain.history['loss'], rtol=1e-3)
  mixed = _train(tiny.run(method='LN', epochs=3, mixed_precision=True))
  np.testing.assert_allclose(
      mixed.history['loss'], plain.history['loss'], rtol=.1)
  assert mixed.history['loss'] != plain.history['loss']
  assert keras.config.dtype_policy() == before


@pytest.mark.slow
def test_batch_normalisation_is_trained_and_restored(tmp_path, monkeypatch):
  rng = np.random.default_rng(0)

  def examples(size):
    labels = rng.integers(3, size=size)
    return data.Examples(
        rng.integers(256, size=[size, 8, 8, 3]).astype(np.uint8), labels,
        labels, np.arange(size))

  source = data.Source(
      'blobs', ('a', 'b', 'c'), examples(50), examples(20),
      data.Preprocessing(pad=1, flip=True))
  run = tiny.run(
      model='wide_resnet', model_arguments={'depth': 10, 'width': 1},
      optimizer='sgd', learning_rate=1e-2)
  whole = _train(run, source=source)
  with monkeypatch.context() as patch, pytest.raises(_InterruptError):
    _interrupt_after(1, patch)
    _train(run, source=source, output_dir=tmp_path)
  result = _train(run, source=source, output_dir=tmp_path)
  assert _what_is_exact(result) == _what_is_exact(whole)


@pytest.mark.slow
def test_each_epoch_is_told_with_its_numbers():
  told = []
  result = _train(
      tiny.run(epochs=3),
      progress=lambda epoch, record: told.append((epoch, dict(record))))
  assert [epoch for epoch, _ in told] == [1, 2, 3]
  for name, values in result.history.items():
    assert [record[name] for _, record in told] == values


@pytest.mark.slow
def test_tensorboard_logs_hold_the_history(tmp_path):
  run = tiny.run()
  result = _train(run, tensorboard_dir=tmp_path)
  files = list((tmp_path / run.key).glob('*tfevents*'))
  losses = {}
  for record in tf.compat.v1.io.tf_record_iterator(str(files[0])):
    event = tf.compat.v1.Event.FromString(record)
    for value in event.summary.value:
      if value.tag == 'loss':
        losses[event.step] = float(tf.make_ndarray(value.tensor))
  assert losses == pytest.approx(
      dict(enumerate(result.history['loss'], start=1)))


def test_full_batch_takes_one_step_an_epoch():
  run = tiny.run(batch_size=None)
  splits = training.load_splits(run, source=tiny.source())
  loop = trainer_lib.Trainer(
      run, run.resolve_method(), splits, devices.create('one'))
  assert loop.steps_per_epoch == 1


@pytest.mark.parametrize('settings, arguments, message', [
    (dict(dataset='nothing'), dict(source=None), 'nothing'),
    (dict(dataset='digits'), {}, 'source'),
    (dict(noise='asym:0.3'), {}, 'mapping'),
    (dict(noise='human:worst'), {}, 'worst'),
    (dict(model='vgg'), {}, 'vgg'),
    (dict(method='Het-tau-Sigma', hyperparameters={'rank': 4}), {}, 'rank'),
    (dict(method='LN', hyperparameters={'rank': 4}), {}, 'rank'),
    (dict(per_class=1000), {}, 'per_class'),
    ({}, dict(keep_weights=True), 'output_dir'),
    ({}, dict(strategy='some'), 'strategy'),
])
def test_wrong_combinations_are_refused_before_training(
    settings, arguments, message, monkeypatch):
  monkeypatch.setattr(
      trainer_lib.Trainer, 'train_epoch', lambda *_: pytest.fail('trained'))
  arguments = {'source': tiny.source(), 'strategy': 'one', **arguments}
  with pytest.raises(ValueError, match=message):
    training.train(tiny.run(**settings), **arguments)


def test_an_output_directory_that_cannot_be_is_refused_at_once(tmp_path):
  file = tmp_path / 'file'
  file.write_text('')
  with pytest.raises(OSError):
    _train(tiny.run(), output_dir=file)


def test_result_file_is_named_by_the_key(kept):
  run, result, directory = kept
  assert results.path(directory, run.key).name == f'{result.key}.json'

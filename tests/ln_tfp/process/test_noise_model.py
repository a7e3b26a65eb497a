"""The noise model: its posterior, its EM, and what it finds."""

import numpy as np
import pytest
from scipy import optimize
from scipy import special

from ln_tfp.process import noise_model
from ln_tfp.process import votes as votes_lib

NUM_CLASSES = 4


def make(size=2_000, transition=None, seed=0, num_annotators=1, blur=.2):
  """Means near the one-hot true classes, and labels by the transition."""
  random = np.random.default_rng(seed)
  true = random.integers(NUM_CLASSES, size=size)
  loc = np.eye(NUM_CLASSES)[true] * .8 + blur * random.normal(
      size=[size, NUM_CLASSES])
  if transition is None:
    transition = np.eye(NUM_CLASSES)
  labels = np.stack(
      [annotate(true, transition, random) for _ in range(num_annotators)],
      axis=1)
  return loc, true, votes_lib.Votes(
      labels, NUM_CLASSES, np.zeros(size, bool))


def annotate(true, transition, random):
  cumulative = np.cumsum(transition, axis=1)[true]
  return np.sum(random.random([len(true), 1]) > cumulative[:, :-1], axis=1)


def pairs(rate):
  """Noise of two pairs of classes."""
  identity = np.eye(NUM_CLASSES)
  return (1. - rate) * identity + rate * identity[[1, 0, 3, 2]]


def symmetric(rate):
  return ((1. - rate) * np.eye(NUM_CLASSES)
          + rate / NUM_CLASSES * np.ones([NUM_CLASSES, NUM_CLASSES]))


def test_the_posterior_is_bayes_rule():
  loc, _, votes = make(50, symmetric(.3), num_annotators=2)
  random = np.random.default_rng(1)
  model = noise_model.NoiseModel(
      3., random.normal(size=NUM_CLASSES),
      random.dirichlet(np.ones(NUM_CLASSES), size=[2, NUM_CLASSES]))
  prior = special.softmax(3. * loc + model.bias, axis=1)
  joint = prior * np.prod([
      model.transition[m][:, votes.labels[:, m]].T for m in range(2)], axis=0)
  np.testing.assert_allclose(model.probabilities(loc), prior, rtol=1e-10)
  np.testing.assert_allclose(
      model.posterior(loc, votes), joint / joint.sum(axis=1, keepdims=True),
      rtol=1e-8)
  np.testing.assert_allclose(
      model.log_likelihood(loc, votes), np.log(joint.sum(axis=1)), rtol=1e-8)


def test_without_noise_the_fit_is_the_penalised_maximum():
  loc, _, votes = make(300)
  model = noise_model.fit(
      loc, votes, np.ones(300), learn_transition=False)

  def loss(parameters):
    log_beta, bias = parameters[0], parameters[1:]
    logits = np.exp(log_beta) * loc + bias
    chosen = special.log_softmax(logits, axis=1)[
        np.arange(300), votes.labels[:, 0]]
    return (-chosen.sum() + .5 * (log_beta - np.log(20.))**2
            + .5 * np.sum(bias**2))

  best = optimize.minimize(
      loss, np.zeros(NUM_CLASSES + 1), tol=1e-10).x
  np.testing.assert_allclose(
      model.inverse_temperature, np.exp(best[0]), rtol=5e-3)
  np.testing.assert_allclose(model.bias, best[1:], atol=2e-2)
  np.testing.assert_array_equal(model.transition[0], np.eye(NUM_CLASSES))


@pytest.mark.parametrize('dtype, tolerance', [
    (np.float64, 0.), (np.float32, 1e-2)])
@pytest.mark.parametrize('transition', [
    np.eye(NUM_CLASSES), symmetric(.5), pairs(.4)])
def test_the_objective_never_falls(transition, dtype, tolerance):
  loc, _, votes = make(1_000, transition, blur=.4)
  model = noise_model.fit(
      loc.astype(dtype), votes, np.ones(1_000, dtype))
  assert len(model.objective) > 1
  assert np.all(np.diff(model.objective) >= -tolerance)


@pytest.mark.parametrize('kind', ['plain', 'annotators', 'soft'])
@pytest.mark.parametrize('certain', [False, True])
def test_no_climb_falls_whatever_the_labels_are(kind, certain, monkeypatch):
  climbs = []
  run = noise_model._Climb.run

  def recorded(climb, model):
    climbs.append(run(climb, model))
    return climbs[-1]

  monkeypatch.setattr(noise_model._Climb, 'run', recorded)
  random = np.random.default_rng(0)
  loc, _, votes = make(600, pairs(.3), num_annotators=3, blur=.4)
  labels = votes.labels
  if kind == 'annotators':
    labels[random.random(labels.shape) < .3] = votes_lib.MISSING
  elif kind == 'soft':
    labels = .7 * np.eye(NUM_CLASSES)[labels[:, 0]] + .3 * random.dirichlet(
        np.ones(NUM_CLASSES), size=600)
  else:
    labels = labels[:, :1]
  votes = votes_lib.Votes(
      labels, NUM_CLASSES, certain & (random.random(600) < .2))
  model = noise_model.fit(loc, votes, random.uniform(.2, 3., size=600))
  noise_model.fit(loc, votes, np.ones(600), start=model)
  assert len(climbs) > 6
  for climb in climbs:
    assert len(climb.objective) > 1
    assert np.all(np.diff(climb.objective) >= -1e-9)


@pytest.mark.parametrize('num_annotators', [1, 2])
@pytest.mark.parametrize('num_classes', [2, 3, 5])
def test_means_that_tell_nothing_are_not_explained_by_noise(
    num_classes, num_annotators):
  random = np.random.default_rng(0)
  loc = 1. / num_classes + .1 * random.normal(size=[40, num_classes])
  labels = random.integers(num_classes, size=[40, num_annotators])
  votes = votes_lib.Votes(labels, num_classes, np.zeros(40, bool))
  model = noise_model.fit(loc, votes, np.ones(40))
  shares = np.bincount(labels.ravel(), minlength=num_classes) / labels.size
  np.testing.assert_allclose(
      model.probabilities(loc).mean(axis=0), shares, atol=.1)


@pytest.mark.parametrize('transition', [
    np.eye(NUM_CLASSES), symmetric(.4), pairs(.3)])
def test_the_transition_matrix_is_found(transition):
  loc, true, votes = make(4_000, transition)
  model = noise_model.fit(loc, votes, np.ones(4_000))
  np.testing.assert_allclose(model.transition[0], transition, atol=.03)
  quality = model.posterior(loc, votes)[np.arange(4_000), votes.labels[:, 0]]
  wrong = votes.labels[:, 0] != true
  assert abs(np.mean(1. - quality) - wrong.mean()) < .01


def test_every_annotator_has_a_matrix_and_missing_labels_do_not_count():
  random = np.random.default_rng(3)
  loc, true, _ = make(3_000)
  labels = np.stack([annotate(true, matrix, random)
                     for matrix in (symmetric(.1), pairs(.4))], axis=1)
  labels[random.random(labels.shape) < .2] = votes_lib.MISSING
  votes = votes_lib.Votes(labels, NUM_CLASSES, np.zeros(3_000, bool))
  model = noise_model.fit(loc, votes, np.ones(3_000))
  np.testing.assert_allclose(model.transition[0], symmetric(.1), atol=.03)
  np.testing.assert_allclose(model.transition[1], pairs(.4), atol=.04)
  consensus = model.posterior(loc, votes).argmax(axis=1)
  for column in labels.T:
    assert np.mean(consensus == true) > np.mean(column == true) + .1


def test_a_certain_label_is_believed_and_says_nothing_of_the_noise():
  loc, true, votes = make(2_000, pairs(.4))
  wrong = votes.labels[:, 0] != true
  sure = votes_lib.Votes(
      np.where(wrong[:, np.newaxis], true[:, np.newaxis], votes.labels),
      NUM_CLASSES, wrong)
  model = noise_model.fit(loc, sure, np.ones(2_000))
  posterior = model.posterior(loc, sure)
  np.testing.assert_array_equal(
      posterior[wrong], np.eye(NUM_CLASSES)[true[wrong]])
  # Of the others no label is wrong.
  assert np.trace(model.transition[0]) > .99 * NUM_CLASSES


def test_a_row_without_label_has_the_probabilities_as_posterior():
  loc, _, votes = make(500, symmetric(.2))
  votes.labels[:100] = votes_lib.MISSING
  model = noise_model.fit(loc, votes, np.ones(500))
  np.testing.assert_allclose(
      model.posterior(loc, votes)[:100], model.probabilities(loc)[:100],
      rtol=1e-9)


def test_symmetric_confusions_share_a_rate_and_paired_ones_do_not():
  alike = np.full([5, 5], 20.) + np.diag([400.] * 5)
  paired = np.diag([400.] * 5)
  paired[0, 1] = paired[2, 3] = 200.
  assert noise_model.concentration(alike) > 1e3 * noise_model.concentration(
      paired)


def test_a_classes_permutation_permutes_the_model():
  loc, _, votes = make(800, pairs(.3))
  order = np.array([2, 0, 3, 1])
  model = noise_model.fit(loc, votes, np.ones(800))
  permuted = noise_model.fit(
      np.ascontiguousarray(loc[:, order]),
      votes_lib.Votes(np.argsort(order)[votes.labels], NUM_CLASSES,
                      votes.certain), np.ones(800))
  np.testing.assert_allclose(
      permuted.transition[0], model.transition[0][np.ix_(order, order)],
      atol=1e-6)
  np.testing.assert_allclose(permuted.bias, model.bias[order], atol=1e-5)


@pytest.mark.parametrize('transition', [np.eye(NUM_CLASSES), pairs(.3)])
def test_of_two_basins_the_one_that_predicts_held_out_rows_is_chosen(
    transition):
  # Means shrunk by noise, from which a plain beginning finds no noise.
  loc, true, votes = make(300, transition, blur=.1)
  model = noise_model.fit(loc @ transition, votes, np.ones(300))
  quality = model.posterior(loc @ transition, votes)[
      np.arange(300), votes.labels[:, 0]]
  wrong = votes.labels[:, 0] != true
  assert abs(np.mean(1. - quality) - wrong.mean()) < .03


@pytest.mark.slow
def test_the_noise_of_many_classes_is_found():
  random = np.random.default_rng(0)
  size, num_classes = 3_000, 60
  true = random.integers(num_classes, size=size)
  loc = np.eye(num_classes)[true] * .3 + .05 * random.normal(
      size=[size, num_classes])
  wrong = random.random(size) < .4
  labels = np.where(wrong, random.integers(num_classes, size=size), true)
  votes = votes_lib.Votes(
      labels[:, np.newaxis], num_classes, np.zeros(size, bool))
  model = noise_model.fit(loc, votes, np.ones(size))
  quality = model.posterior(loc, votes)[np.arange(size), labels]
  assert abs(np.mean(1. - quality) - np.mean(labels != true)) < .02

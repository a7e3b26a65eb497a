"""The options that the paper's text and the authors' code decide apart."""

import dataclasses

from experiments import training


def test_paper_is_the_default_everywhere():
  for dataset in ('digits', 'mnist', 'cifar10', 'clothing1m'):
    assert training.Run(
        dataset=dataset).resolve_options() == training.Options()


def test_authors_sets_all_options_of_a_data_set():
  options = training.Run(
      dataset='mnist', protocol='authors').resolve_options()
  assert options == training.Options(
      noise_mode='exact', split='authors', drop_remainder=True,
      dummy_class=True)
  options = training.Run(
      dataset='cifar10', protocol='authors').resolve_options()
  assert options == training.Options(
      truck=True, split='authors', drop_remainder=True, dummy_class=True)


def test_clothing1m_of_the_authors_changes_the_recipe():
  run = training.Run(
      dataset='clothing1m', protocol='authors', weight_decay=1e-3)
  assert run.resolve_weight_decay() == 5e-4
  assert run.resolve_options().drop_epoch == 5
  assert run.resolve_options().decay == 'kernels_and_biases'
  assert run.resolve_method().label_smoothing == .1
  paper = dataclasses.replace(run, protocol='paper')
  assert paper.resolve_weight_decay() == 1e-3
  assert paper.resolve_method().label_smoothing == .01


def test_a_single_option_is_stronger_than_the_protocol():
  run = training.Run(
      dataset='cifar10', protocol='authors', options={'truck': False})
  assert not run.resolve_options().truck
  assert run.resolve_options().split == 'authors'
  # An option at the protocol's own value is no change at all.
  same = training.Run(
      dataset='cifar10', protocol='authors', options={'truck': True})
  assert same == training.Run(dataset='cifar10', protocol='authors')

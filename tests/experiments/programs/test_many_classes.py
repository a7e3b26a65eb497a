"""The experiment with thousands of classes, here with few."""

from absl import flags
from absl.testing import flagsaver
import pytest

from experiments import many_classes
from tests.experiments.programs import calling

FLAGS = flags.FLAGS


@pytest.fixture(autouse=True)
def _restore_flags():
  with flagsaver.flagsaver():
    yield


@pytest.mark.slow
def test_a_table_and_a_figure_come_from_measurements_made_once(
    tmp_path, monkeypatch):
  monkeypatch.setattr(many_classes, '_BATCH', 64)
  arguments = ('--classes=20', '--epochs=2', '--noise=sym:0.4',
               f'--output_dir={tmp_path}')
  status, output, errors = calling.call(many_classes, *arguments)
  assert not status, errors
  for method in many_classes.METHODS:
    assert f'| sym:0.4 | {method} | 2 |' in output
  assert (tmp_path / 'figures/many_classes.png').stat().st_size
  before = (tmp_path / 'many_classes/measurements.csv').read_bytes()
  monkeypatch.setattr(
      many_classes, 'measure', lambda *_: pytest.fail('measured again'))
  calling.call(many_classes, *arguments)
  assert (tmp_path / 'many_classes/measurements.csv').read_bytes() == before


def test_noise_is_in_the_training_labels_alone():
  x, given, test_x, test = many_classes.make_data(50, 'asym:0.4')
  _, clean, other_x, other = many_classes.make_data(50, 'none')
  wrong = given != clean
  assert .3 < wrong.mean() < .5
  assert set((given - clean)[wrong] % 50) == {1}
  assert (test_x == other_x).all() and (test == other).all()
  assert x.shape == (500, 64)

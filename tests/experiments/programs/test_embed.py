"""The program that embeds images."""

import keras
import numpy as np
from PIL import Image
import pytest

from experiments import embed
from ln_tfp import backbones
from tests.experiments.programs import calling


@pytest.mark.parametrize('arguments, message', [
    (['--backbone=x.keras'], 'There is no backbone x.keras'),
    ([], '--backbone: say which')])
def test_what_it_cannot_embed_with_is_refused_in_one_line(
    arguments, message, tmp_path):
  status, _, _ = calling.call(
      embed, '--dataset=digits', f'--data_dir={tmp_path}',
      f'--output_dir={tmp_path}', *arguments)
  assert message in status
  assert '\n' not in status


def _photographs(root):
  rng = np.random.default_rng(0)
  for name, label in (('1.png', 'dog'), ('2.png', 'cat'), ('3.png', 'dog')):
    (root / label).mkdir(parents=True, exist_ok=True)
    size = rng.integers(20, 40, 2)
    Image.fromarray(rng.integers(0, 256, (*size, 3), np.uint8)).save(
        root / label / name)


def test_a_folder_becomes_features_and_labels_in_one_order(tmp_path):
  _photographs(tmp_path / 'photographs')
  keras.Sequential([
      keras.Input((16, 16, 3)), keras.layers.Conv2D(5, 3),
      keras.layers.GlobalAveragePooling2D()]).save(tmp_path / 'tiny.keras')
  arguments = [
      f'--folder={tmp_path / "photographs"}', f'--data_dir={tmp_path}',
      f'--output_dir={tmp_path / "results"}',
      f'--backbone={tmp_path / "tiny.keras"}']
  status, output, errors = calling.call(embed, *arguments)
  assert status in (0, None), errors
  made = tmp_path / 'features' / 'photographs'
  assert str(made) in output
  assert (made / 'labels.csv').read_text() == (
      'file,label\ncat/2.png,cat\ndog/1.png,dog\ndog/3.png,dog\n')
  found = np.load(made / 'features.npy')
  backbone = backbones.load(tmp_path / 'tiny.keras')
  for row, name in zip(found, ('cat/2.png', 'dog/1.png', 'dog/3.png')):
    image = Image.open(tmp_path / 'photographs' / name).resize((16, 16))
    np.testing.assert_allclose(
        row, backbone(np.asarray(image)[np.newaxis])[0], rtol=2e-3, atol=.1)
  # A second call finds them; one of other images makes them anew.
  before = (made / 'features.npy').stat().st_mtime_ns
  calling.call(embed, *arguments)
  assert (made / 'features.npy').stat().st_mtime_ns == before
  (tmp_path / 'photographs' / 'dog' / '3.png').unlink()
  calling.call(embed, *arguments)
  np.testing.assert_array_equal(np.load(made / 'features.npy'), found[:2])


@pytest.mark.parametrize('name', ['nothing', 'cifar10'])
def test_what_is_no_folder_of_images_is_refused(name, tmp_path):
  if name == 'cifar10':
    _photographs(tmp_path / name)
  keras.Sequential([
      keras.Input((16, 16, 3)), keras.layers.GlobalAveragePooling2D()
  ]).save(tmp_path / 'tiny.keras')
  status, _, _ = calling.call(
      embed, f'--folder={tmp_path / name}', f'--data_dir={tmp_path}',
      f'--output_dir={tmp_path / "results"}',
      f'--backbone={tmp_path / "tiny.keras"}')
  assert status.startswith('embed: --folder: ')
  assert '\n' not in status

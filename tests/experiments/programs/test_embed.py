"""The program that embeds images."""

import pytest

from experiments import embed
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

"""All hostile cases: a new feature adds its rows to one of the tables."""

from tests.hostile import api
from tests.hostile import audit_files
from tests.hostile import audit_flags
from tests.hostile import audit_images
from tests.hostile import audit_output
from tests.hostile import programs
from tests.hostile import results

# What a case may need, imported once.
IMPORTS = (
    'ln_tfp', 'ln_tfp.audit.__main__', 'ln_tfp.logistic_normal',
    'PIL.Image', 'PIL.PngImagePlugin',
    'PIL.TiffImagePlugin', 'PIL.JpegImagePlugin', 'sklearn.datasets',
    'experiments.cli.app', 'experiments.synthetic_noise',
    'experiments.natural_noise', 'experiments.data.embedded',
    'experiments.data.clothing1m', 'experiments.data.cifar_n',
    'experiments.data.features', 'experiments.training.loading')

CASES = (*audit_files.CASES, *audit_images.CASES, *audit_output.CASES,
         *audit_flags.CASES, *programs.CASES, *results.CASES,
         *api.CASES)

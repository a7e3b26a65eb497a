"""What the command audits: arrays, folders of images, tables; and labels."""

from ln_tfp.audit.files.dataset import Dataset
from ln_tfp.audit.files.dataset import InputError
from ln_tfp.audit.files.dataset import check_memory
from ln_tfp.audit.files.dataset import reason
from ln_tfp.audit.files.images import ImageFolder
from ln_tfp.audit.files.labels import encode
from ln_tfp.audit.files.loading import load

__all__ = ['Dataset', 'ImageFolder', 'InputError', 'check_memory', 'encode',
           'load', 'reason']

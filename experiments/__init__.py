"""One program for each table and figure of the paper.

    python -m experiments.synthetic_noise --dataset=cifar100 --seeds=5

See docs/experiments.md.
"""

import os

from experiments.cli import console

# A user's own setting wins.
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
with console.quiet_startup():
  import tensorflow

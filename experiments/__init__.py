"""One program for each table and figure of the paper.

    python -m experiments.synthetic_noise --dataset=cifar100 --seeds=5

See docs/experiments.md.
"""

import ln_tfp  # before TensorFlow, which it starts without noise

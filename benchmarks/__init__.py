"""Ratios, measured side by side in one run.

    python -m benchmarks.data
    python -m benchmarks.loop
    python -m benchmarks.audit
"""

import ln_tfp  # before TensorFlow, which it starts without noise

"""Ratios, measured side by side in one run.

    python -m benchmarks            # all but those below, one table
    python -m benchmarks.audit
    python -m benchmarks.ray_overhead
"""

import ln_tfp  # before TensorFlow, which it starts without noise

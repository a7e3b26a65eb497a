"""Ratios, measured side by side in one run.

    python -m benchmarks            # all but the audit, one table
    python -m benchmarks.audit
"""

import ln_tfp  # before TensorFlow, which it starts without noise

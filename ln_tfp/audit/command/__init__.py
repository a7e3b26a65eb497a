"""The work of `python -m ln_tfp.audit`."""

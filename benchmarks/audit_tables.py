"""The tables of docs/audit.md, from the results of `benchmarks.audit`."""
def write_docs(results): pass

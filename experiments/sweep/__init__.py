"""Many runs: planned, spread over processes or machines, stored."""

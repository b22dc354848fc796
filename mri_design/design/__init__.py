"""Which k-space line to measure next: candidates, constraints, the sequential engine, its record and its end."""

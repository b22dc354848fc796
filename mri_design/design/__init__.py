"""Which line, sample or shot to measure next: candidates, constraints, the engine, its record and its end."""

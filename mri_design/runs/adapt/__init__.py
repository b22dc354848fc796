"""A design at the scanner: lines are asked for, measured and answered with the next ones."""

"""What other scans tell a design: an earlier one of the same object, and those that a training has seen."""

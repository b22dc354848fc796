"""Where a scanner samples k-space: spokes and spirals, what gradients can play of them, and their point spread."""

"""Where a scanner samples k-space: spokes and spirals, what hardware can play of them, and what they are worth."""

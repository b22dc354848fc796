"""Which label of a pool to ask next, for classifiers."""

"""NumPy arrays and archives, read as streams within bounds."""

"""Readers of files that nobody has checked, a module per format, and writers that never leave half a file."""

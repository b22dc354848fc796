"""Experiments of the five papers, one file each: ``python -m papers --help``."""

"""Readers of files that nobody has checked, a module per format, and writers that never leave half a file."""

from mri_design.fronts import front

__getattr__, __dir__, __all__ = front(__name__, __file__)

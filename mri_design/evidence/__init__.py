"""Measured lines that are held back from a reconstruction to choose its model, its correction and its error bars."""

from mri_design.fronts import front

__getattr__, __dir__, __all__ = front(__name__, __file__)

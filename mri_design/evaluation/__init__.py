"""Judging and showing: error measures, predictions held against the truth, figures, tables and pages."""

from mri_design.fronts import front

__getattr__, __dir__, __all__ = front(__name__, __file__)

"""The sparse linear model: a likelihood, blocks of sites, and its posterior's precision matrix."""

from mri_design.fronts import front

__getattr__, __dir__, __all__ = front(__name__, __file__)

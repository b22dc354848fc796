"""Marginal variances of the posterior: z = diag(B A^-1 B^H)."""

from mri_design.fronts import front

__getattr__, __dir__, __all__ = front(__name__, __file__)
